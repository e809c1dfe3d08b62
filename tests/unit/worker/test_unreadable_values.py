"""One value that does not unpickle ends no topology, wherever it is: in a tuple, a reason, a metric, a state, a record."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stormspark import ArrowSpout, TopologyBuilder
from stormspark.api import ExponentialBackoff, SourceSpout
from stormspark.api.state import StatefulBolt
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.errors import SerializationError
from stormspark.metrics import StateMetric
from tests.unit.worker.components import Call, Collect, Script, acks_of, fails_of
from tests.unit.worker.rig import Rig, two
from tests.unit.worker.unreadable import NeedsTwo, Raises


def _needs_two() -> Any:
    return NeedsTwo(1, "x")


KINDS = {"an exception": _needs_two, "sys.exit": lambda: Raises(SystemExit)}


class Makes(Script):
    """Emits what functions make, where it is given functions: values that do not unpickle are in no component."""

    def next_tuple(self) -> None:
        if self.next < len(self.rows):
            (value,) = self.rows[self.next]
            self.collector.emit((value() if callable(value) else value,), message_id=self.next)
            self.next += 1


@pytest.mark.parametrize("bad", KINDS)
def test_its_tree_fails_with_the_reason_and_all_others_go_on(bad: str) -> None:
    """Between two workers; the error is told with component, task, stream, field, type and reason."""
    rows = [(KINDS[bad] if n == 7 else n,) for n in range(600)]
    rig = Rig(two(Collect(), Makes(rows)), 2)
    rig.batches(6)
    (spout,), (bolt,) = rig.users("a"), rig.users("b")
    assert [value for _, value in bolt.seen] == [n for n in range(600) if n != 7]
    assert sorted(acks_of(spout)) == [n for n in range(600) if n != 7]
    ((failed, why),) = fails_of(spout)
    kind = (
        "tests.unit.worker.unreadable.NeedsTwo"
        if bad == "an exception"
        else "tests.unit.worker.unreadable._raise"
    )
    assert failed == 7
    assert f"b[4]: field 'value' ({kind}) of a tuple on stream 'default' of 'a', task" in why
    assert "can't be unpickled: " in why and ("TypeError" in why or "SystemExit" in why)
    assert [error for error in rig.errors if "can't be unpickled" in error]
    assert rig.tasks("b")[0].counters.failed == 1


def test_errors_of_untracked_tuples_are_reported_too() -> None:
    """No tree fails, but the error is counted and told."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(9)]))

    def emit(bolt: Any, tup: Any) -> None:
        bolt.collector.emit((NeedsTwo(1, "x") if tup.values[0] == 4 else tup.values[0],))
        bolt.collector.ack(tup)

    builder.set_bolt("emit", Call(emit)).shuffle_grouping("a")
    builder.set_bolt("b", Collect()).shuffle_grouping("emit")
    rig = Rig(builder, 3)
    rig.batches(6)
    (bolt,) = rig.users("b")
    assert [value for _, value in bolt.seen] == [0, 1, 2, 3, 5, 6, 7, 8]
    assert rig.tasks("b")[0].counters.errors == 1


def test_very_many_of_them_do_not_fill_the_log() -> None:
    """Each fails; errors are told as often as others, and counted all."""
    rig = Rig(two(Collect(), Makes([(_needs_two,)] * 3000)), 2)
    rig.batches(20)
    (spout,) = rig.users("a")
    assert len(spout.heard) == len(fails_of(spout)) == 3000
    assert rig.tasks("b")[0].counters.errors == 3000 and len(rig.errors) < 20


class Rows(SourceSpout):
    def __init__(self, retries: int) -> None:
        super().__init__(["value"], self._translated, ExponentialBackoff(max_retries=retries))

    def _translated(self, row: tuple[Any, ...]) -> Any:
        return (NeedsTwo(1, "x") if row[0] == 3 else row[0],)

    def stream(self, spark: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize("exactly_once", [False, True])
def test_rows_become_dead_letters_after_their_retries(tmp_path: Path, exactly_once: bool) -> None:
    """At least once by the retry policy; exactly once after so many attempts at the batch, which loses nothing else."""
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows(2))
    builder.set_bolt("b", Add() if exactly_once else Collect()).shuffle_grouping("rows")
    rig = Rig(builder, 2, stormspark_dead_letter_dir=str(tmp_path))
    (spout,) = rig.tasks("rows")
    rig.cluster.add_rows(spout.id, 0, [(n, "x") for n in range(6)])
    for _ in range(6):
        rig.advance(600.0)
    (bolt,) = rig.users("b")
    seen = bolt.state["seen"] if exactly_once else [value for _, value in bolt.seen]
    assert sorted(seen) == [0, 1, 2, 4, 5]
    (letter,) = [json.loads(line) for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert letter["row"] == [3, "x"]
    assert exactly_once or "can't be unpickled" in letter["reason"]


class Add(StatefulBolt[Any]):
    """Keeps what it was given."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Any) -> None:
        self.state["seen"] = [*self.state.get("seen", []), tup.values[0]]
        self.collector.ack(tup)


def test_a_reason_that_is_an_error_goes_home_as_its_text() -> None:
    """`fail(tup, error)` is a mistake that anybody makes; the tuple fails with what the error says."""
    for reason, name in (
        (_needs_two, "NeedsTwo: 1: x"),
        (lambda: Raises(ValueError), "Raises: "),
        (dict, "dict: {}"),
    ):
        rig = Rig(two(Call(lambda bolt, tup, make=reason: bolt.collector.fail(tup, make())), [(1,)]), 2)
        rig.batches(3)
        (spout,) = rig.users("a")
        ((how, _, why),) = spout.heard
        assert how == "fail" and f"b[4]: {name}" in why


class Measures(Collect):
    """Has a metric whose readings the driver can't have."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def prepare(self, conf: Any, context: Any) -> None:
        super().prepare(conf, context)
        context.register_metric("bad", StateMetric(self.value), 1)
        context.register_metric("good", StateMetric(lambda: 5), 1)


@pytest.mark.parametrize(
    "value", [_needs_two, lambda: lambda: 1], ids=["does not unpickle", "does not pickle"]
)
def test_a_metric_that_can_not_be_read_is_an_error_of_its_task(value: Any) -> None:
    """J18: the report arrives, with everything else."""
    rig = Rig(two(Measures(value), [(1,)]), 2)
    reports = []
    for _ in range(3):
        rig.clock.advance(1.0)
        reports += rig.cluster.run_batch()
    points = [point for report in reports for point in report.data_points]
    assert points and {point.name for point in points} == {"good"}
    errors = [error for report in reports for error in report.errors]
    assert errors and all(error.component == "b" and "metric 'bad'" in error.text for error in errors)


def test_a_value_of_a_state_is_named_by_its_key() -> None:
    """What comes out of a task then has component, task and key in its text."""
    store = KeyValueStore("bolt 'sum' (a.py:3), task 4 (sum[0])")
    store["price"] = NeedsTwo(1, "x")
    store.prepare_commit(1)
    again = KeyValueStore("bolt 'sum' (a.py:3), task 4 (sum[0])")
    again.load(_rows(store))
    for read in (lambda: again["price"], lambda: list(again.iterate()), lambda: again.get("price")):
        with pytest.raises(
            SerializationError,
            match=r"task 4 \(sum\[0\]\): the value of key 'price' can't be unpickled, Type",
        ):
            read()


def _rows(store: KeyValueStore) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"key": [k], "value": [v]}) for k, v in store.changes()]


class Times(ArrowSpout):
    """Emits times, one of which is beyond the year 9999."""

    def __init__(self, ids: bool) -> None:
        self.ids = ids

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.heard, self.done = collector, [], False

    def next_batch(self) -> None:
        if not self.done:
            self.done = True
            times = pa.array([0, 253_402_300_800_000_000, 60_000_000]).cast(pa.timestamp("us"))
            batch = pa.record_batch({"n": pa.array([0, 1, 2]), "at": times})
            if self.ids:
                self.collector.emit_batch(batch, message_ids=[0, 1, 2])
            else:
                self.collector.emit_batch(batch, message_id="all")

    def ack(self, message_id: Any) -> None:
        self.heard.append(("ack", message_id))

    def fail(self, message_id: Any) -> None:
        self.heard.append(("fail", message_id))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(pa.schema({"n": pa.int64(), "at": pa.timestamp("us")}))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("ids", [True, False])
def test_a_row_of_a_batch_that_python_can_not_hold_fails_alone(workers: int, ids: bool) -> None:
    """A vectorised component sends it to one that is not, in its own worker or in another one."""
    builder = TopologyBuilder()
    builder.set_spout("times", Times(ids))
    builder.set_bolt("b", Collect()).shuffle_grouping("times")
    rig = Rig(builder, workers)
    rig.batches(4)
    (spout,), (bolt,) = rig.users("times"), rig.users("b")
    assert [n for _, n, _ in bolt.seen] == [0, 2]
    assert sorted(spout.heard) == ([("ack", 0), ("ack", 2), ("fail", 1)] if ids else [("fail", "all")])
    assert rig.tasks("times")[0].account.pending == 0
    (error,) = rig.errors
    assert "field 'at' holds a timestamp[us] that Python can't hold: " in error
    assert "of a row on stream 'default' of 'times', task" in error


def test_a_record_of_the_durable_acker_that_can_not_be_read_is_a_dead_letter(tmp_path: Path) -> None:
    """The others of its worker come again."""
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows(0))
    builder.set_bolt("b", Collect()).shuffle_grouping("rows")
    rig = Rig(builder, 1, stormspark_dead_letter_dir=str(tmp_path))
    (spout,) = rig.tasks("rows")
    good = pickle.dumps((0, (0, 0, 1), (5, "x"), 0))
    rig.workers[0].adopt(spout.id, [((1, 2, 3), b"no pickle"), ((4, 5, 6), good), ((7, 8, 9), b"")])
    rig.batches(3)
    (bolt,) = rig.users("b")
    assert [value for _, value in bolt.seen] == [5]
    letters = [json.loads(line) for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert len(letters) == 2 and all(
        "durable acker's journal can't be read" in letter["reason"] for letter in letters
    )
    assert letters[0]["row"] == ["b'no pickle'"]


def test_a_task_that_unpickles_without_an_end_is_named() -> None:
    """`busy` is what heartbeats tell; see `stormspark.stuck.timeout.secs`."""
    found: list[Any] = []
    rig = Rig(two(Collect(), Makes([(Looks,), (1,)])), 2)
    Looks.look = lambda: found.extend(worker.under_way.busy() for worker in rig.workers)  # type: ignore[method-assign]
    rig.batches(3)
    assert any(busy is not None and busy.task.startswith("a class that it unpickles") for busy in found)


class Looks:
    """Has somebody look at the workers while it is unpickled."""

    @staticmethod
    def look() -> None:
        """Replaced by the test."""

    def __reduce__(self) -> Any:
        return _looked, ()


def _looked() -> int:
    Looks.look()
    return 0
