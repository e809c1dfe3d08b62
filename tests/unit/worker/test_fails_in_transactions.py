"""What fails takes its batch back, wherever and however; rows that did not fail are not counted as if they had (C44)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from stormspark import ArrowBolt, BasicBolt, Bolt, Count, FailedException, Fields, TopologyBuilder
from stormspark.api import ROW_BY_ROW, SourceSpout
from stormspark.errors import ComponentError, ReportedFailedException
from stormspark.transactional import (
    BatchBolt,
    Committer,
    Coordinator,
    Emitter,
    TransactionalSpout,
    TransactionalTopologyBuilder,
)
from tests.unit.worker.components import Call, Script
from tests.unit.worker.rig import Rig, two
from tests.unit.worker.test_windows_as_state import Marks, Replayed, Windows, fired, rows

ONCE = {"stormspark.exactly.once": True}


class Log:
    """What components have done, in all lives of theirs; begins empty in each test."""

    done: ClassVar[list[Any]] = []


@pytest.fixture(autouse=True)
def log() -> list[Any]:
    Log.done.clear()
    fired.clear()
    return Log.done


class Typed(Windows):
    """Its stream is for vectorised bolts, too."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(pa.schema({"value": pa.int64()}))


class Rows(SourceSpout):
    def __init__(self, reliable: bool = True) -> None:
        super().__init__(["row"])
        self.reliable = reliable

    def stream(self, spark: Any) -> Any:
        raise AssertionError


class Plain(Bolt):
    """Its stream has one number."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.kept: list[Any] = []

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(pa.schema({"value": pa.int64()}))


def sink(bolt: Any, tup: Any) -> None:
    Log.done.append(tup[0])
    bolt.collector.ack(tup)


def stops(rig: Rig, reason: str) -> None:
    """Nothing of the first batch is ever committed, and that is said."""
    with pytest.raises(ComponentError, match=reason):
        rig.batches(2)
    assert rig.cluster._committed == -1


# -- what can't be sent ----------------------------------------------------------------------------------------------------


def emits_once(marks: Marks, bad: Callable[[], Any]) -> Any:
    def fire(bolt: Any, window: Any) -> None:
        first = next(iter(window))[0]
        bolt.collector.emit((bad() if first == 2 and marks.first("bad") else first,))

    return fire


@pytest.mark.parametrize(
    "bad",
    [threading.Lock, lambda: "x" * 5_000_000, threading.local],
    ids=["lock", "large", "local"],
)
@pytest.mark.parametrize("workers", [2, 3])
def test_what_a_window_emits_and_cant_be_sent_takes_the_batch_back(bad: Any, workers: int) -> None:
    """C41, C44: it is in no tree, so nobody else says that it is lost."""
    builder = TopologyBuilder()
    builder.set_spout("a", Replayed(rows(*range(6))))
    builder.set_bolt("b", Windows(emits_once(Marks(), bad)).with_tumbling_window(Count(2))).shuffle_grouping(
        "a"
    )
    builder.set_bolt("c", Call(sink)).global_grouping("b")
    rig = Rig(builder, workers, **ONCE, **{"stormspark.tuple.max.bytes": 4_000_000})
    homes = {task.name: worker.index for worker in rig.workers for task in worker.tasks.values()}
    assert homes["b[0]"] != homes["c[0]"]
    rig.batches(2)
    assert rig.cluster._attempt == 1
    assert Log.done[-3:] == [0, 2, 4] and Log.done.count(2) == 1
    assert fired[-3:] == [[0, 1], [2, 3], [4, 5]] and len(fired) == 6


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_window_emits_and_is_no_row_takes_the_batch_back(workers: int) -> None:
    """C44: a vectorised bolt behind it can't be given the value."""

    class Sees(ArrowBolt):
        def execute_batch(self, batch: Any, collector: Any) -> None:
            Log.done.extend(batch["value"].to_pylist())

        def declare_output_fields(self, declarer: Any) -> None:
            pass

    builder = TopologyBuilder()
    builder.set_spout("a", Replayed(rows(*range(6))))
    fire = emits_once(Marks(), lambda: "no number")
    builder.set_bolt("b", Typed(fire).with_tumbling_window(Count(2))).shuffle_grouping("a")
    builder.set_bolt("c", Sees()).global_grouping("b")
    rig = Rig(builder, workers, **ONCE)
    rig.batches(2)
    assert rig.cluster._attempt == 1 and Log.done[-3:] == [0, 2, 4] and Log.done.count(2) == 1


@pytest.mark.parametrize("by_row", [False, True])
def test_rows_of_no_tree_that_are_too_large_to_be_sent_take_the_batch_back(by_row: bool) -> None:
    """C44: what a vectorised bolt emits, of rows of no tree."""

    class Grows(ArrowBolt):
        def execute_batch(self, batch: Any, collector: Any) -> None:
            large = pa.record_batch({"text": ["x" * 2_000_000 for _ in range(batch.num_rows)]})
            collector.emit_batch(large, anchors=ROW_BY_ROW if by_row else None)

        def declare_output_fields(self, declarer: Any) -> None:
            declarer.declare(pa.schema({"text": pa.string()}))

    class Sees(ArrowBolt):
        def execute_batch(self, batch: Any, collector: Any) -> None:
            Log.done.append(batch.num_rows)

        def declare_output_fields(self, declarer: Any) -> None:
            pass

    def fire(bolt: Any, window: Any) -> None:
        bolt.collector.emit((1,))

    builder = TopologyBuilder()
    builder.set_spout("a", Replayed(rows(*range(4))))
    builder.set_bolt("b", Typed(fire).with_tumbling_window(Count(2))).shuffle_grouping("a")
    builder.set_bolt("grows", Grows()).local_or_shuffle_grouping("b")
    builder.set_bolt("sees", Sees(), 2).all_grouping("grows")
    rig = Rig(builder, 2, **ONCE, **{"stormspark.tuple.max.bytes": 1_000_000, "stormspark.max.attempts": 3})
    stops(rig, r"grows\[0\]: failed to send: .* has [24],000,0.. bytes")


class Always(Coordinator):
    def is_ready(self) -> bool:
        return True

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        return txid


class Three(Emitter):
    def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None:
        if metadata <= 3:
            collector.emit((attempt, metadata))


class Numbers(TransactionalSpout):
    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return Always()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return Three()

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "n"))


class Middle(BatchBolt):
    def __init__(self, marks: Marks) -> None:
        self.marks = marks

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.collector, self.attempt, self.rows = collector, attempt, []

    def execute(self, tup: Any) -> None:
        self.rows.append(tup[1])

    def finish_batch(self) -> None:
        for n in self.rows:
            bad = n == 2 and self.marks.first("bad")
            self.collector.emit((self.attempt, n, threading.Lock() if bad else None))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "n", "x"))


class Store(Committer, BatchBolt):
    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.rows: list[int] = []

    def execute(self, tup: Any) -> None:
        self.rows.append(tup[1])

    def finish_batch(self) -> None:
        Log.done.extend(self.rows)

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def test_what_a_batch_bolt_emits_and_cant_be_sent_takes_the_batch_back() -> None:
    """When a batch bolt emits a value that can't be sent, the batch is rolled back and run again (G6)."""
    builder = TransactionalTopologyBuilder("t", "numbers", Numbers(), 1)
    builder.set_bolt("middle", Middle(Marks())).shuffle_grouping("numbers")
    builder.set_bolt("store", Store()).global_grouping("middle")
    rig = Rig(builder, 2)  # type: ignore[arg-type]  # it is built the same way
    rig.batches(5)
    assert Log.done == [1, 2, 3]


class First(Committer, BatchBolt):
    """Hands on what it stores; in the second batch it raises once, or without an error emits what can't be sent."""

    def __init__(self, marks: Marks, error: type[Exception] | None) -> None:
        self.marks, self.error = marks, error

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.collector, self.attempt, self.rows = collector, attempt, []

    def execute(self, tup: Any) -> None:
        self.rows.append(tup[1])

    def finish_batch(self) -> None:
        bad = self.rows == [2] and self.marks.first("bad")
        if bad and self.error is not None:
            raise self.error("bad")
        for n in self.rows:
            self.collector.emit((self.attempt, n, threading.Lock() if bad else None))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "n", "x"))


class Second(Committer, BatchBolt):
    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.rows, self.txid = [], attempt.txid

    def execute(self, tup: Any) -> None:
        self.rows.append(tup[1])

    def finish_batch(self) -> None:
        Log.done.append((self.txid, *self.rows))

    def declare_output_fields(self, declarer: Any) -> None:
        pass


@pytest.mark.parametrize("error", [ValueError, FailedException])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_no_committer_acts_on_what_the_one_before_it_did_not_do(error: type[Exception], workers: int) -> None:
    """G3, G6: one that keeps the number of its transaction would leave the rows out when they come again."""
    builder = TransactionalTopologyBuilder("t", "numbers", Numbers(), 1)
    builder.set_bolt("first", First(Marks(), error)).global_grouping("numbers")
    builder.set_bolt("second", Second()).global_grouping("first")
    rig = Rig(builder, workers)  # type: ignore[arg-type]  # it is built the same way
    rig.batches(6)
    assert [one for one in Log.done if len(one) > 1] == [(1, 1), (2, 2), (3, 3)]
    assert Log.done[:3] == [(1, 1), (2, 2), (3, 3)]


class Audit(Bolt):
    """Holds the tuple of the first batch, and gives it up while the second one ends."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.held = collector, None

    def execute(self, tup: Any) -> None:
        if tup.source_component == "numbers" and tup[1] == 1:
            self.held = tup
            return
        if tup.source_component == "first" and tup[1] == 2 and self.held is not None:
            held, self.held = self.held, None
            self.collector.fail(held)
        self.collector.emit((tup[0], tup[1]), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "n"))


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_no_batch_is_committed_of_which_a_committer_has_not_heard(workers: int) -> None:
    """G6: a fail of an earlier batch's tuple, which decides nothing, cuts no end of a batch short without taking it back."""
    builder = TransactionalTopologyBuilder("t", "numbers", Numbers(), 1)
    builder.set_bolt("first", First(Marks(), None)).global_grouping("numbers")
    audit = builder._builder.set_bolt("audit", Audit())
    audit.global_grouping("numbers").global_grouping("first")
    builder.set_bolt("second", Second()).global_grouping("audit")
    rig = Rig(builder, workers)  # type: ignore[arg-type]  # it is built the same way
    rig.batches(5)
    acts = [one for one in Log.done if len(one) > 1]
    assert [txid for txid, *_ in acts] == [1, 2, 3]
    assert all(set(numbers) == {txid} for txid, *numbers in acts)


# -- tuples of no tree -----------------------------------------------------------------------------------------------------


def no(marks: Marks, by: str) -> Any:
    """Refuses the first tuple."""

    def execute(bolt: Any, tup: Any) -> None:
        if marks.first("refused"):
            if by == "fail":
                bolt.collector.fail(tup, "no")
                return
            raise (FailedException if by == "raise" else ReportedFailedException)("no")
        sink(bolt, tup)

    return execute


@pytest.mark.parametrize("by", ["fail", "raise", "report"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_tuple_of_no_tree_that_fails_takes_the_batch_back(by: str, workers: int) -> None:
    """C44: sums that are emitted without anchors, say; the spout emits what has failed again."""

    def unanchored(bolt: Any, tup: Any) -> None:
        bolt.collector.emit(tup.values)
        bolt.collector.ack(tup)

    builder = two(Call(unanchored), Replayed(rows(1, 2, 3)))
    builder.set_bolt("c", Call(no(Marks(), by))).shuffle_grouping("b")
    rig = Rig(builder, workers, **ONCE)
    rig.batches(2)
    assert rig.cluster._attempt == 1 and Log.done[-3:] == [1, 2, 3]


@pytest.mark.parametrize("by", ["fail", "raise"])
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_of_no_tree_that_a_vectorised_bolt_fails_take_the_batch_back(by: str, workers: int) -> None:
    """When a vectorised bolt fails rows without a tree, the batch is rolled back and run again (C44)."""
    marks = Marks()

    class Refuses(ArrowBolt):
        def execute_batch(self, batch: Any, collector: Any) -> None:
            if marks.first("refused"):
                if by == "raise":
                    raise FailedException("no")
                collector.fail([0], "no")
                return
            Log.done.extend(batch["value"].to_pylist())

        def declare_output_fields(self, declarer: Any) -> None:
            pass

    class Unanchored(Plain):
        def execute(self, tup: Any) -> None:
            self.collector.emit(tup.values)
            self.collector.ack(tup)

    builder = two(Unanchored(), Replayed(rows(1, 2, 3)))
    builder.set_bolt("c", Refuses()).shuffle_grouping("b")
    rig = Rig(builder, workers, **ONCE)
    rig.batches(2)
    assert rig.cluster._attempt == 1 and Log.done == [1, 2, 3]


@pytest.mark.parametrize("by", ["fail", "raise"])
def test_without_transactions_it_is_lost_alone(by: str) -> None:
    """E4: nobody is told."""

    def unanchored(bolt: Any, tup: Any) -> None:
        bolt.collector.emit(tup.values)
        bolt.collector.ack(tup)

    builder = two(Call(unanchored), Script(rows(1, 2, 3)))
    builder.set_bolt("c", Call(no(Marks(), by))).shuffle_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(3)
    assert Log.done == [2, 3]


def test_an_unreliable_row_that_fails_takes_the_batch_back() -> None:
    """K2, C44: it is in no tree either, and Spark gives the batch its rows again."""
    builder = TopologyBuilder()
    builder.set_spout("a", Rows(reliable=False))
    builder.set_bolt("b", Call(no(Marks(), "fail"))).shuffle_grouping("a")
    rig = Rig(builder, 1, **ONCE)
    rig.cluster.add_rows(rig.tasks("a")[0].id, 0, rows(1, 2, 3))
    rig.batches(2)
    assert rig.cluster._attempt == 1 and Log.done[-3:] == [1, 2, 3]


# -- rows that did not fail ------------------------------------------------------------------------------------------------


def holds(most: int) -> Any:
    """Holds so many tuples; 6 is poison."""

    def execute(bolt: Any, tup: Any) -> None:
        if tup[0] == 6:
            raise ValueError("poison")
        bolt.kept.append(tup)
        if len(bolt.kept) == most or tup[0] == 9:
            for kept in bolt.kept:
                bolt.collector.emit(kept.values, anchors=[kept])
                bolt.collector.ack(kept)
            bolt.kept = []

    return execute


@pytest.mark.parametrize("most", [1, 4, 100])
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_that_were_merely_held_are_no_dead_letters(most: int, workers: int) -> None:
    """C44: `stormspark.exactly.once.attempts` counts failures of the row itself."""
    builder = TopologyBuilder()
    builder.set_spout("a", Rows())
    builder.set_bolt("b", Call(holds(most))).global_grouping("a")
    builder.set_bolt("c", Call(sink)).global_grouping("b")
    rig = Rig(builder, workers, **ONCE)
    rig.cluster.add_rows(rig.tasks("a")[0].id, 0, rows(*range(10)))
    rig.batches(2)
    assert rig.tasks("a")[0].counters.dead_letters == 1
    assert sorted(Log.done[-9:]) == [0, 1, 2, 3, 4, 5, 7, 8, 9]


def test_without_transactions_what_was_held_fails_with_its_task() -> None:
    """W22: the spout is told."""
    builder = two(Call(holds(4)), Script(rows(4, 5, 6)))
    rig = Rig(builder, 1)
    rig.batches(1)
    (spout,) = rig.users("a")
    assert [(what, number) for what, number, *_ in spout.heard] == [("fail", 2), ("fail", 0), ("fail", 1)]


class Picky(BasicBolt):
    """Raises for multiples of seven."""

    def execute(self, tup: Any, collector: Any) -> None:
        if not tup["row"] % 7:
            raise KeyError(f"not {tup['row']}")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_dead_letter_is_written_once_and_says_why(workers: int, tmp_path: Path) -> None:
    """K4, C44: with several in a batch, each of which takes it back three times."""
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows())
    builder.set_bolt("picky", Picky()).global_grouping("rows")
    rig = Rig(
        builder, workers, **{"stormspark.exactly.once": True, "stormspark.dead.letter.dir": str(tmp_path)}
    )
    (source,) = rig.tasks("rows")
    for batch in range(2):
        rig.cluster.add_rows(source.id, 0, rows(*range(20 * batch, 20 * batch + 20)))
        rig.batches(1)
    letters = [json.loads(line) for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert sorted(letter["row"][0] for letter in letters) == [0, 7, 14, 21, 28, 35]
    assert all(f"not {letter['row'][0]}" in letter["reason"] for letter in letters)
    assert source.counters.dead_letters == 6
