"""Vectorised bolts and spouts: what they do to a topology is what tuple components do, tuple for tuple."""

from __future__ import annotations

from collections import Counter
from itertools import chain, product
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from stormspark import (
    ROW_BY_ROW,
    ArrowBolt,
    ArrowSpout,
    BasicBolt,
    CustomStreamGrouping,
    FailedException,
    Fields,
    PandasBolt,
    Spout,
    TaskHook,
    TopologyBuilder,
)
from stormspark.api import TICK_SOURCE
from stormspark.errors import EmitError, InvalidTopologyError
from stormspark.worker.stories.story import merge_stories
from stormspark.worker.vectorised.queue import RowQueue
from stormspark.worker.vectorised.roots import BatchRoots
from tests.unit.worker.components import Call, Collect, Script
from tests.unit.worker.rig import Rig

WORDS = "to be or not to be that is the question whether tis nobler in the mind to suffer".split()
SENTENCES = [" ".join(WORDS[n % 11 : n % 11 + 1 + n % 6]) for n in range(60)]
SENTENCE, WORD = pa.schema({"sentence": pa.string()}), pa.schema({"word": pa.string()})
NUMBER = pa.schema({"n": pa.int64()})


class Heard:
    """Keeps what it hears of its messages."""

    heard: list[Any]
    collector: Any

    def ack(self, message_id: Any) -> None:
        self.heard.append(("ack", message_id))

    def fail(self, message_id: Any) -> None:
        self.heard.append(("fail", message_id, str(self.collector.verdict)))


class TupleLines(Heard, Spout):
    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.heard = collector, []
        self.todo = list(range(context.this_task_index, len(SENTENCES), 2))

    def next_tuple(self) -> None:
        if self.todo:
            number = self.todo.pop(0)
            self.collector.emit((SENTENCES[number],), message_id=number)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(SENTENCE)


class ArrowLines(Heard, ArrowSpout):
    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.heard = collector, []
        self.todo = list(range(context.this_task_index, len(SENTENCES), 2))

    def next_batch(self) -> None:
        numbers, self.todo = self.todo[:7], self.todo[7:]
        if numbers:
            batch = pa.record_batch([[SENTENCES[number] for number in numbers]], ["sentence"])
            self.collector.emit_batch(batch, message_ids=pa.array(numbers))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(SENTENCE)


class TupleSplit(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        for word in tup["sentence"].split():
            collector.emit((word,))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(WORD)


class ArrowSplit(ArrowBolt):
    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        assert batch.schema.equals(SENTENCE)
        assert (collector.source_component, collector.source_stream) == ("lines", "default")
        words = pc.utf8_split_whitespace(batch["sentence"])
        out = pa.record_batch([pc.list_flatten(words)], ["word"])
        collector.emit_batch(out, anchors=pc.list_parent_indices(words))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(WORD)


class FrameSplit(PandasBolt):
    def execute_frame(self, frame: pd.DataFrame, collector: Any) -> None:
        words = frame["sentence"].str.split().explode()
        collector.emit_frame(words.to_frame("word"), anchors=words.index)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(WORD)


class TupleCount(BasicBolt):
    def prepare(self, conf: Any, context: Any) -> None:
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Any, collector: Any) -> None:
        if tup["word"] == "tis":
            raise FailedException("no such word")
        self.counts[tup["word"]] += 1


class ArrowCount(ArrowBolt):
    def prepare(self, conf: Any, context: Any) -> None:
        self.counts: Counter[str] = Counter()

    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        strange = pc.equal(batch["word"], "tis")
        collector.fail(strange, "no such word")
        self.counts.update(batch.filter(pc.invert(strange))["word"].to_pylist())


def count_words(form: Any, grouping: str = "shuffle_grouping") -> TopologyBuilder:
    lines, split, count = (component() for component in form)
    builder = TopologyBuilder()
    builder.set_spout("lines", lines, 2)
    getattr(builder.set_bolt("split", split, 3), grouping)("lines")
    builder.set_bolt("count", count, 3).fields_grouping("split", Fields("word"))
    return builder


def outcome(rig: Rig) -> dict[str, Any]:
    """All that one can see of a run, by task."""
    tasks = [*rig.tasks("lines"), *rig.tasks("split"), *rig.tasks("count")]
    return {
        "counts": [dict(user.counts) for user in rig.users("count")],
        "heard": [sorted(event[:2] for event in user.heard) for user in rig.users("lines")],
        "counters": [
            (one.emitted, one.transferred, one.executed, one.acked, one.failed, one.errors)
            for one in (task.read_counters() for task in tasks)
        ],
        "pending": [task.account.pending for task in rig.tasks("lines")],
    }


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_mix_of_tuple_and_vectorised_components_does_the_same(workers: int) -> None:
    """D1, D5, E2, E5: same counts, same task for each tuple, same acks and fails, same counters."""
    rigs = {
        form: Rig(count_words(form), workers)
        for form in product(
            (TupleLines, ArrowLines), (TupleSplit, ArrowSplit, FrameSplit), (TupleCount, ArrowCount)
        )
    }
    for rig in rigs.values():
        rig.batches(4)
        assert rig.errors == []
    first, *others = map(outcome, rigs.values())
    assert sum(sum(counts.values()) for counts in first["counts"]) > 100
    assert sum(one[4] for one in first["counters"]) > 10 and first["pending"] == [0, 0]
    for other in others:
        assert other == first


@pytest.mark.parametrize("grouping", ["all_grouping", "global_grouping", "local_or_shuffle_grouping"])
def test_rows_go_where_tuples_go(grouping: str) -> None:
    """Vectorised components give the same outcome as components that work tuple by tuple (D7, D9, D10)."""
    outcomes = []
    for form in ((TupleLines, TupleSplit, TupleCount), (ArrowLines, ArrowSplit, ArrowCount)):
        rig = Rig(count_words(form, grouping=grouping), 2)
        rig.batches(4)
        outcomes.append(outcome(rig))
    assert outcomes[0] == outcomes[1]


# -- message ids -----------------------------------------------------------------------------------------------


class Batches(Heard, ArrowSpout):
    """Emits given batches of numbers, one a call, each with the named arguments that go with it."""

    def __init__(self, *batches: tuple[list[Any], dict[str, Any]]) -> None:
        self.todo = list(batches)

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.heard = collector, []

    def next_batch(self) -> None:
        if self.todo:
            numbers, named = self.todo.pop(0)
            self.collector.emit_batch(pa.record_batch([pa.array(numbers, pa.int64())], ["n"]), **named)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(NUMBER)


class Do(ArrowBolt):
    """Runs a function as its ``execute_batch``: ``function(bolt, batch, collector)``."""

    def __init__(self, function: Any, schema: pa.Schema = NUMBER, direct: bool = False) -> None:
        self.function, self.schema, self.direct = function, schema, direct

    def prepare(self, conf: Any, context: Any) -> None:
        self.context = context
        self.seen: list[list[Any]] = []

    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        self.seen.append(batch.column(0).to_pylist())
        self.function(self, batch, collector)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(self.schema, direct=self.direct)


def nothing(bolt: Any, batch: Any, collector: Any) -> None:
    """Acks."""


def line(spout: Any, *bolts: Any) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("a", spout)
    for name, before, bolt in zip("bcd", "abc", bolts, strict=False):
        builder.set_bolt(name, bolt).shuffle_grouping(before)
    return builder


def heard(rig: Rig) -> list[Any]:
    return sorted((event[:2] for event in rig.users("a")[0].heard), key=str)


def flat(seen: list[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(seen))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_batch_is_one_message_or_one_a_row_or_none(workers: int) -> None:
    """B6, X68: null is a row without an id."""
    spout = Batches(
        ([1, 2, 3], {"message_id": "whole"}),
        ([4, 5, 6], {"message_ids": ["four", None, "six"]}),
        ([7], {}),
        ([], {"message_id": "empty"}),
    )
    rig = Rig(line(spout, Do(nothing)), workers)
    rig.batches(3)
    assert heard(rig) == [("ack", one) for one in ("empty", "four", "six", "whole")]
    assert sorted(flat(rig.users("b")[0].seen)) == list(range(1, 8))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_row_that_fails_fails_its_message_alone(workers: int) -> None:
    """E5, W4: rows by position; failing one twice is failing it once."""

    def fail_two(bolt: Any, batch: Any, collector: Any) -> None:
        rows = [row for row, number in enumerate(batch["n"].to_pylist()) if number in (2, 5)]
        collector.fail(rows, "an odd one")
        collector.fail(rows)

    spout = Batches(([1, 2, 3], {"message_id": "whole"}), ([4, 5, 6], {"message_ids": [4, 5, 6]}))
    rig = Rig(line(spout, Do(fail_two)), workers)
    rig.batches(3)
    assert heard(rig) == [("ack", 4), ("ack", 6), ("fail", "whole"), ("fail", 5)]
    (bolt,) = rig.tasks("b")
    assert (bolt.counters.acked, bolt.counters.failed, bolt.counters.executed) == (4, 2, 6)
    assert all("an odd one" in event[2] for event in rig.users("a")[0].heard if event[0] == "fail")


class UnpicklableError(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("not this one")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_reason_may_be_an_exception_that_does_not_pickle(workers: int) -> None:
    """W4: it becomes text where the row fails, and the tree may be at home in another worker."""

    def fail(bolt: Any, batch: Any, collector: Any) -> None:
        collector.fail([0], UnpicklableError("odd"))

    rig = Rig(line(Batches(([1], {"message_id": 1})), Do(fail)), workers)
    rig.batches(3)
    ((what, message, reason),) = rig.users("a")[0].heard
    assert (what, message) == ("fail", 1) and "UnpicklableError: odd" in reason


def test_rows_behind_a_tick_have_not_waited_since_the_look_before_they_came() -> None:
    """C9, W2: a tick that was executed is no row that still waits."""
    queue = RowQueue()
    queue.add_tick(1.0)
    assert list(queue.not_reached()) == []
    assert queue.take_batch() is None
    queue.add(pa.record_batch({"n": [1]}), TICK_SOURCE, BatchRoots([None]))
    assert list(queue.not_reached()) == []
    assert len(list(queue.not_reached())) == 1


@pytest.mark.parametrize(("error", "restarts"), [(ValueError("broken"), 1), (FailedException("no"), 0)])
def test_what_raises_fails_the_rows_of_its_batch(error: Exception, restarts: int) -> None:
    """C5, W22: the task begins anew, but for a FailedException."""

    def fail(bolt: Any, batch: Any, collector: Any) -> None:
        if 2 in batch["n"].to_pylist():
            raise error

    spout = Batches(([1, 2], {"message_ids": [1, 2]}), ([3], {"message_ids": [3]}))
    rig = Rig(line(spout, Do(fail)), 2)
    rig.batches(4)
    told = heard(rig)
    assert ("fail", 2) in told and len(told) == 3
    (bolt,) = rig.tasks("b")
    assert bolt.counters.restarts == restarts and len(rig.errors) == restarts
    assert bolt.counters.failed + bolt.counters.acked == 3


def test_acking_off() -> None:
    """B8: ids are acked inside the emit."""
    spout = Batches(([1, 2], {"message_ids": [1, 2]}), ([3], {"message_id": 3}))
    rig = Rig(line(spout, Do(nothing)), 2, topology_acker_executors=0)
    rig.batches(2)
    assert heard(rig) == [("ack", 1), ("ack", 2), ("ack", 3)]


@pytest.mark.parametrize("ids", [{"message_ids": [1]}, {"message_id": 1, "message_ids": [1, 2]}])
def test_ids_that_do_not_fit(ids: dict[str, Any]) -> None:
    """A batch whose message ids do not fit its rows is an error that names the spout (B6)."""
    rig = Rig(line(Batches(([1, 2], ids)), Do(nothing)), 1)
    rig.batches(2)
    assert "message_id" in rig.errors[0] and "'a'" in rig.errors[0]


# -- anchors ---------------------------------------------------------------------------------------------------

DOUBLED = pa.array([[0, 1], [], [2]])


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(
    ("anchors", "fails"),
    [
        (None, {0, 1, 2}),
        (ROW_BY_ROW, {0}),
        ([2, 1, 0], {2}),
        (pa.array([1, 1, 0]), {1}),
        (pa.chunked_array([[2], [1, 0]]), {2}),
        (DOUBLED, {0, 1}),
    ],
    ids=["all", "row-by-row", "list", "array", "chunked", "lists"],
)
def test_the_messages_behind_a_row_that_fails(anchors: Any, fails: set[int], workers: int) -> None:
    """E4: c fails the first row that b emits."""

    def relay(bolt: Any, batch: Any, collector: Any) -> None:
        collector.emit_batch(batch, anchors=anchors)

    def fail_first(bolt: Any, batch: Any, collector: Any) -> None:
        collector.fail(pc.equal(batch["n"], 10))

    spout = Batches(([10, 11, 12], {"message_ids": [0, 1, 2]}))
    rig = Rig(line(spout, Do(relay), Do(fail_first)), workers)
    rig.batches(4)
    assert heard(rig) == sorted(("fail" if n in fails else "ack", n) for n in range(3))
    assert all(worker.statistics().parts == 0 for worker in rig.workers)


@pytest.mark.parametrize(
    ("anchors", "says"),
    [
        ([0], "1 anchors for 2 rows"),
        ([0, 2], "no row 2"),
        ([0, -1], "no row -1"),
        ([0.0, 1.0], "integers"),
        ("row", "say of which input row"),
        (pa.array([[0]]), "1 lists of anchors for 2 rows"),
        (pa.array([[0], [7]]), "no row 7"),
    ],
)
def test_anchors_that_do_not_fit(anchors: Any, says: str) -> None:
    """E4: the batch fails, and nothing was sent."""

    def relay(bolt: Any, batch: Any, collector: Any) -> None:
        collector.emit_batch(batch, anchors=anchors)

    rig = Rig(line(Batches(([1, 2], {"message_ids": [1, 2]})), Do(relay), Do(nothing)), 1)
    rig.batches(2)
    assert says in rig.errors[0] and "component 'b'" in rig.errors[0]
    assert rig.users("c")[0].seen == [] and heard(rig) == [("fail", 1), ("fail", 2)]


@pytest.mark.parametrize(
    ("out", "stream", "says"),
    [
        (pa.record_batch([["x"]], ["n"]), "default", "expected n: int64, got n: string"),
        (pa.record_batch([[1]], ["m"]), "default", "got m: int64"),
        (pa.record_batch([[1]], ["n"]), "other", "Unknown stream ID 'other'"),
        ([1], "default", "takes a pyarrow.RecordBatch or Table, got list"),
    ],
)
def test_batches_that_do_not_fit_their_stream(out: Any, stream: str, says: str) -> None:
    """A batch that does not fit its stream fails its message, with what was expected (A12, B9)."""

    def relay(bolt: Any, batch: Any, collector: Any) -> None:
        collector.emit_batch(out, stream)

    rig = Rig(line(Batches(([1], {"message_id": 1})), Do(relay), Do(nothing)), 1)
    rig.batches(2)
    assert says in rig.errors[0] and heard(rig) == [("fail", 1)]


def test_tables_and_metadata_are_no_other_columns() -> None:
    """Tables, their metadata and empty batches are accepted on a stream with the same columns (A12)."""

    def relay(bolt: Any, batch: Any, collector: Any) -> None:
        table = pa.concat_tables([pa.table(batch), pa.table(batch)]).replace_schema_metadata({"a": "b"})
        collector.emit_batch(table)
        collector.emit_batch(table.slice(0, 0))

    rig = Rig(line(Batches(([1, 2], {"message_id": 1})), Do(relay), Do(nothing)), 2)
    rig.batches(4)
    assert rig.errors == [] and flat(rig.users("c")[0].seen) == [1, 2, 1, 2] and heard(rig) == [("ack", 1)]


# -- between tuples and rows -----------------------------------------------------------------------------------


class TypedScript(Script):
    def __init__(self, rows: list[Any], schema: pa.Schema) -> None:
        super().__init__(rows)
        self.schema = schema

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(self.schema)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_tuple_that_is_no_row_fails_and_the_others_do_not(workers: int) -> None:
    """W22: with the field, its type, the value and who sent it."""
    rows: list[Any] = [(1, "a"), ("two", "b"), (None, None), (4, 5), (1.5, "c"), (10**5000, "d")]
    schema = pa.schema({"n": pa.int64(), "s": pa.string()})
    rig = Rig(line(TypedScript(rows, schema), Do(nothing)), workers)
    rig.batches(6)
    assert heard(rig) == [("ack", 0), ("ack", 2), ("fail", 1), ("fail", 3), ("fail", 4), ("fail", 5)]
    (reason,) = (event[2] for event in rig.users("a")[0].heard if event[:2] == ("fail", 1))
    assert "field 'n' is declared as int64, got 'two' of type str" in reason and "of 'a'" in reason
    assert len(rig.errors) == 4


def test_tuples_that_fit_alone_and_not_together_become_several_batches() -> None:
    """A12: Arrow takes a dict or a list of pairs as a struct, but not both in one column."""
    rows: list[Any] = [({"n": n} if n % 3 else [("n", n)],) for n in range(8)]
    rig = Rig(line(TypedScript(rows, pa.schema({"s": pa.struct({"n": pa.int64()})})), Do(nothing)), 1)
    rig.batches(9)
    assert heard(rig) == [("ack", n) for n in range(8)] and rig.errors == []
    assert [row["n"] for row in flat(rig.users("b")[0].seen)] == list(range(8))


@pytest.mark.parametrize("workers", [1, 2])
def test_every_kind_of_value_comes_through_rows_and_back(workers: int) -> None:
    """C8: null, nested and binary values, dictionaries too."""
    schema = pa.schema(
        {
            "i": pa.int32(),
            "b": pa.binary(),
            "f": pa.float64(),
            "l": pa.list_(pa.string()),
            "m": pa.map_(pa.string(), pa.int64()),
            "s": pa.struct({"x": pa.bool_()}),
            "d": pa.dictionary(pa.int32(), pa.string()),
        }
    )
    rows = [
        (1, b"\x00\xff", 0.5, ["a", None], {"k": 1}, {"x": True}, "one"),
        (None, None, None, None, None, None, None),
        (-5, b"", float("inf"), [], {}, {"x": None}, "two"),
    ]

    def relay(bolt: Any, batch: Any, collector: Any) -> None:
        assert batch.schema.equals(schema)
        collector.emit_batch(batch, anchors=ROW_BY_ROW)

    rig = Rig(line(TypedScript(rows, schema), Do(relay, schema), Do(relay, schema), Collect()), workers)
    rig.batches(5)
    assert rig.errors == []
    assert [values for _, *values in rig.users("d")[0].seen] == [list(row) for row in rows]
    assert heard(rig) == [("ack", 0), ("ack", 1), ("ack", 2)]


def test_a_stream_without_types_is_refused_where_types_are_needed() -> None:
    """J5: told when the topology is planned, with what to write."""
    with pytest.raises(InvalidTopologyError, match="has no types: declare it with"):
        Rig(line(Script([(1,)]), Do(nothing)), 1)

    class Untyped(Do):
        def declare_output_fields(self, declarer: Any) -> None:
            declarer.declare(Fields("n"))

    with pytest.raises(
        InvalidTopologyError, match="'b' is vectorised, but declares stream 'default' without types"
    ):
        Rig(line(Batches(), Untyped(nothing)), 1)


def test_a_vectorised_spout_emits_batches_only() -> None:
    class Wrong(Batches):
        def next_batch(self) -> None:
            self.collector.emit((1,))

    rig = Rig(line(Wrong(), Do(nothing)), 1)
    rig.batches(1)
    assert "an ArrowSpout emits batches" in rig.errors[0]


# -- order, limits, time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_of_one_sender_stay_in_order_and_small_batches_are_put_together(workers: int) -> None:
    """Rows of one sender stay in order, and small batches are joined before the bolt sees them (E31)."""
    spout = Batches(*(([2 * n, 2 * n + 1], {"message_ids": [2 * n, 2 * n + 1]}) for n in range(100)))
    rig = Rig(line(spout, Do(nothing)), workers)
    rig.batches(4)
    seen = rig.users("b")[0].seen
    assert flat(seen) == list(range(200)) and len(seen) < 20
    assert heard(rig) == sorted((("ack", n) for n in range(200)), key=str)


def test_max_spout_pending_is_looked_at_before_each_call() -> None:
    """Max spout pending is checked before each call, so one call may exceed it (B4)."""

    def keep(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup)

    spout = Batches(*(([n, n], {"message_ids": [n, n]}) for n in range(10)))
    rig = Rig(line(spout, Call(keep)), 1, topology_max_spout_pending=3)
    rig.batches(3)
    assert rig.tasks("a")[0].account.pending == 4  # the second call began at two


@pytest.mark.slow
def test_a_call_that_emits_for_ever_is_suspended() -> None:
    """A call that never stops emitting is suspended, so that the bolts get to work (B4, E27)."""

    class Endless(Batches):
        def next_batch(self) -> None:
            while True:
                self.collector.emit_batch(pa.record_batch([pa.array([1] * 500)], ["n"]), message_id=1)

    rig = Rig(line(Endless(), Do(nothing)), 1)
    rig.clock.advance(1)
    rig.batches(2)
    assert rig.tasks("a")[0].calls.suspended
    assert rig.tasks("b")[0].counters.executed > 1000
    rig.cluster.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_whose_tuples_are_dropped_time_out(workers: int) -> None:
    """E10, W4: and nothing is left anywhere."""

    def drop(bolt: Any, tup: Any) -> None:
        if tup["n"] != 1:
            bolt.collector.ack(tup)

    def relay(bolt: Any, batch: Any, collector: Any) -> None:
        collector.emit_batch(batch, anchors=ROW_BY_ROW)

    builder = line(Batches(([0, 1, 2], {"message_ids": [0, 1, 2]})), Do(relay), Call(drop))
    rig = Rig(builder, workers, topology_message_timeout_secs=10, stormspark_clock_gap_ms=100_000)
    rig.batches(3)
    assert heard(rig) == [("ack", 0), ("ack", 2)]
    for _ in range(6):
        rig.advance(10)
    assert heard(rig) == [("ack", 0), ("ack", 2), ("fail", 1)]
    assert all(worker.statistics()[:3] == (0, 0, 0) for worker in map(_Sizes, rig.workers))


class _Sizes:
    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def statistics(self) -> tuple[int, int, int]:
        sizes = self._worker.statistics()
        return sizes.open, sizes.known_outside, sizes.parts


def test_ticks() -> None:
    """C9: what is emitted in one is untracked."""

    class Ticking(Do):
        ticks = 0

        def get_component_configuration(self) -> dict[str, Any]:
            return {"topology.tick.tuple.freq.secs": 5}

        def on_tick_tuple(self, tick: Any, collector: Any) -> None:
            self.ticks += 1
            collector.emit_batch(pa.record_batch([[tick["rate_secs"]]], ["n"]))

    rig = Rig(line(Batches(), Ticking(nothing), Do(nothing)), 2)
    for _ in range(3):
        rig.advance(5, batches=2)
    assert rig.errors == [] and rig.users("b")[0].ticks == 3
    assert flat(rig.users("c")[0].seen) == [5, 5, 5]
    assert rig.tasks("b")[0].counters.executed == 0


# -- groupings -------------------------------------------------------------------------------------------------


class Several(CustomStreamGrouping):
    def prepare(self, context: Any, stream: Any, target_tasks: Any) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: Any) -> list[int]:
        return list(self.tasks[: values[0] % 3])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_custom_grouping_is_asked_row_by_row(workers: int) -> None:
    """D13, E30: a row for nobody is acked."""
    builder = TopologyBuilder()
    builder.set_spout("a", Batches((list(range(9)), {"message_ids": range(9)})))
    builder.set_bolt("b", Do(nothing), 3).custom_grouping("a", Several())
    rig = Rig(builder, workers)
    rig.batches(3)
    seen = [sorted(flat(user.seen)) for user in rig.users("b")]
    assert seen == [[1, 2, 4, 5, 7, 8], [2, 5, 8], []]
    assert heard(rig) == [("ack", n) for n in range(9)]
    assert rig.tasks("a")[0].counters.transferred == 9


def test_a_direct_emit_that_raises_is_no_emit() -> None:
    """B9: a subscriber without a direct grouping gets nothing."""
    raised: list[str] = []

    def send(bolt: Any, batch: Any, collector: Any) -> None:
        with pytest.raises(EmitError, match="does not subscribe by a direct grouping") as error:
            collector.emit_batch_direct(bolt.context.component_tasks("c")[0], batch)
        raised.append(str(error.value))

    builder = TopologyBuilder()
    builder.set_spout("a", Batches(([1, 2], {"message_ids": [1, 2]})))
    builder.set_bolt("b", Do(send)).shuffle_grouping("a")
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(3)
    (bolt,) = rig.tasks("b")
    assert rig.errors == [] and rig.users("c")[0].seen == []
    assert bolt.read_counters().emitted == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_direct_stream(workers: int) -> None:
    """B9, D11: the bolt names the task; a plain emit on it is a mistake."""

    def send(bolt: Any, batch: Any, collector: Any) -> None:
        targets = bolt.context.component_tasks("c")
        collector.emit_batch_direct(targets[1], batch, anchors=ROW_BY_ROW)
        collector.emit_batch_direct(10_000, batch)
        collector.emit_batch(batch)

    builder = TopologyBuilder()
    builder.set_spout("a", Batches(([1, 2], {"message_ids": [1, 2]})))
    builder.set_bolt("b", Do(send, direct=True)).shuffle_grouping("a")
    builder.set_bolt("c", Collect(), 2).direct_grouping("b")
    rig = Rig(builder, workers)
    rig.batches(3)
    assert [user.seen for user in rig.users("c")] == [[], [("default", 1), ("default", 2)]]
    assert "Cannot do regular emit to direct stream" in rig.errors[0]


# -- hooks, stories, overload ----------------------------------------------------------------------------------


class Spy(TaskHook):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def emit(self, info: Any) -> None:
        self.told.append(("emit", info.values, len(info.out_tasks)))

    def bolt_execute(self, info: Any) -> None:
        self.told.append(("execute", info.tuple.values))

    def bolt_ack(self, info: Any) -> None:
        self.told.append(("ack", info.tuple.values))

    def bolt_fail(self, info: Any) -> None:
        self.told.append(("fail", info.tuple.values))


def test_hooks_hear_of_each_row() -> None:
    """Task hooks are called for each row of a batch (J21)."""

    class Spied(Do):
        def prepare(self, conf: Any, context: Any) -> None:
            super().prepare(conf, context)
            self.spy = Spy()
            context.add_task_hook(self.spy)

    def relay(bolt: Any, batch: Any, collector: Any) -> None:
        collector.emit_batch(batch, anchors=ROW_BY_ROW)
        collector.fail([1])

    rig = Rig(line(Batches(([1, 2], {"message_ids": [1, 2]})), Spied(relay), Do(nothing)), 1)
    rig.batches(1)
    assert rig.users("b")[0].spy.told == [
        ("emit", (1,), 1),
        ("emit", (2,), 1),
        ("execute", (1,)),
        ("ack", (1,)),
        ("execute", (2,)),
        ("fail", (2,)),
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_story_of_a_row(workers: int) -> None:
    """W5: traced through the batches that it is in."""

    def relay(bolt: Any, batch: Any, collector: Any) -> None:
        collector.emit_batch(batch, anchors=ROW_BY_ROW)

    spout = Batches(([1, 2], {"message_ids": [1, 2]}))
    trace = {"stormspark_story_sample": 1, "stormspark_story_samples_per_sec": 1000}
    rig = Rig(line(spout, Do(relay), Do(nothing)), workers, **trace)
    rig.batches(4)
    told = merge_stories([line for worker in rig.workers for line in worker.stories.lines()])
    assert len(told) == 2
    for story in told:
        steps = {(event.what, event.by) for event in story.events}
        assert {("acked", "b[0]"), ("acked", "c[0]")} <= steps
        assert any(event.what.startswith("emitted") and event.to == "b[0]" for event in story.events)


def test_the_holder_of_a_row_that_times_out_is_named() -> None:
    """W4: it waits for a vectorised bolt that never comes to it."""

    def stop(bolt: Any, batch: Any, collector: Any) -> None:
        raise FailedException("later")

    rig = Rig(line(Batches(([1, 2, 3], {"message_ids": [1, 2, 3]})), Do(stop)), 1)
    (task,) = rig.tasks("b")
    task.fatal = "stopped"  # type: ignore[assignment]
    rig.cluster.workers[0].turns.ask_spouts(1.0, rig.cluster.workers[0].wiring.spouts)
    assert task.waiting == 3 and task.load().queued == 3 and task.queue.size_of_one() >= 8
    deliveries = list(task.waiting_deliveries())
    assert [roots.message_id for _, _, roots in deliveries] == [1, 2, 3]
    assert list(task.not_reached()) == []  # they have not waited since an earlier look
    ((_, _, spared),) = task.not_reached()
    assert {tree.message_id for tree in spared} == {1, 2, 3}


@pytest.mark.parametrize("strategy", ["drop", "fail"])
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_that_do_not_fit_are_shed(strategy: str, workers: int) -> None:
    """X51: the newest ones, and no tree hangs."""
    spout = Batches(*((list(range(n, n + 50)), {"message_ids": range(n, n + 50)}) for n in range(0, 500, 50)))
    conf = {"stormspark_backpressure_strategy": strategy, "stormspark_queue_high_mark_tuples": 20}
    rig = Rig(line(spout, Do(nothing)), workers, **conf)
    rig.batches(4)
    (bolt,), seen = rig.tasks("b"), flat(rig.users("b")[0].seen)
    assert bolt.counters.shed > 100 and len(seen) + bolt.counters.shed == 500 and seen == sorted(seen)
    assert Counter(what for what, _ in heard(rig)) == (
        {"ack": 500} if strategy == "drop" else {"ack": len(seen), "fail": 500 - len(seen)}
    )


def test_reset_timeout_and_schema() -> None:
    """C11: trees of a batch at hand get their timeout anew."""

    def relay(bolt: Any, batch: Any, collector: Any) -> None:
        collector.reset_timeout()
        collector.report_error("only told")
        collector.emit_batch(batch.cast(collector.schema()))

    rig = Rig(line(Batches(([1], {"message_id": 1})), Do(relay)), 1)
    rig.batches(1)
    assert heard(rig) == [("ack", 1)] and rig.errors == ["only told"]
