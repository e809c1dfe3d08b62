"""Windows where batches are transactions, step by step: who is called when, what is kept, what takes a batch back (C41)."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from stormspark import (
    Bolt,
    Count,
    Duration,
    FailedException,
    Fields,
    KeyValueState,
    StatefulWindowedBolt,
    Topology,
    TopologyBuilder,
    TupleWindow,
    WindowedBolt,
)
from stormspark.api.state import StatefulComponent, TwoPhaseStatefulComponent
from stormspark.errors import CheckpointError, ComponentError, InvalidTopologyError
from stormspark.plan import plan_topology
from stormspark.worker.round_orders import RoundOrders
from stormspark.worker.step import Step
from tests.unit.worker.components import Call, Script
from tests.unit.worker.durable_workers import DurableWorkers
from tests.unit.worker.rig import Rig, two

ONCE = {"stormspark.exactly.once": True}
#: What windows had, in all lives of their bolts; a test that looks at it clears it.
fired: list[Any] = []


class Windows(WindowedBolt):
    """Runs ``function(bolt, window)``."""

    def __init__(self, function: Any = None) -> None:
        self.function = function

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, window: TupleWindow) -> None:
        fired.append([tup[0] for tup in window])
        if self.function is not None:
            self.function(self, window)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


def rows(*values: Any) -> list[tuple[Any, ...]]:
    return [(value,) for value in values]


def rig(bolt: Any, script: Any, workers: int = 1, **conf: Any) -> Rig:
    fired.clear()
    return Rig(two(bolt, script), workers, **{"stormspark.exactly.once": True, **conf})


def heard(rig: Rig) -> list[Any]:
    (spout,) = rig.users("a")
    return [(what, number) for what, number, *_ in spout.heard]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_tuple_is_acked_with_its_batch_however_long_it_is_held(workers: int) -> None:
    """C27, C41: also those of a window that never fills."""
    one = rig(Windows().with_tumbling_window(Count(5)), rows(*range(7)), workers)
    one.batches(3)
    assert fired == [[0, 1, 2, 3, 4]]
    assert heard(one) == [("ack", n) for n in range(7)]
    assert not one.errors


def test_the_message_timeout_and_max_spout_pending_need_not_cover_the_window() -> None:
    """C26, C41: where nobody waits for the ack."""
    bolts = [Windows().with_tumbling_window(Duration.hours(1)), Windows().with_tumbling_window(Count(1000))]
    conf = {"topology.message.timeout.secs": 30, "topology.max.spout.pending": 10}
    for bolt in bolts:
        topology = two(bolt, rows(1)).create_topology("t")
        with pytest.raises(
            InvalidTopologyError, match=r"Window duration|window would wait|max\.spout\.pending"
        ):
            plan_topology(topology, conf)
        assert plan_topology(topology, conf | ONCE).components["b"].windowed


class Calls(StatefulWindowedBolt[KeyValueState[str, Any]]):
    """Writes down who calls it."""

    calls: ClassVar[list[Any]] = []

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.calls.append("prepare")

    def init_state(self, state: KeyValueState[str, Any]) -> None:
        self.calls.append(("init_state", dict(state)))
        self.state = state

    def execute(self, window: TupleWindow) -> None:
        self.calls.append([tup[0] for tup in window])
        self.state["windows"] = self.state.get("windows", 0) + 1
        if self.state["windows"] == 2 and "boom" not in self.calls:
            self.calls.append("boom")
            raise FailedException("boom")

    def pre_prepare(self, txid: int) -> None:
        self.calls.append(("pre_prepare", txid))

    def pre_commit(self, txid: int) -> None:
        self.calls.append(("pre_commit", txid))

    def pre_rollback(self) -> None:
        self.calls.append("pre_rollback")


def test_the_order_of_a_stateful_windowed_bolts_calls() -> None:
    """C35, C41: prepare, init_state, windows; state and windows are taken back together, and committed together."""
    Calls.calls.clear()
    one = Rig(two(Calls().with_tumbling_window(Count(2)), Replayed([(n,) for n in range(4)])), 1)
    assert one.cluster.plan.exactly_once
    one.batches(3)
    assert Calls.calls[:3] == ["prepare", ("init_state", {}), [0, 1]]
    boom = Calls.calls.index("boom")
    assert Calls.calls[boom + 1 : boom + 4] == ["pre_rollback", "prepare", ("init_state", {})]
    again = Calls.calls[boom + 4 :]
    assert again[:4] == [[0, 1], [2, 3], ("pre_prepare", 0), ("pre_commit", 0)]
    (task,) = one.tasks("b")
    assert dict(task.state.store) == {"windows": 2}


class Replayed(StatefulComponent, Script):
    """Goes on where its last batch ended."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.next = self.state.get("next", 0)

    def pre_save(self, checkpoint_id: int) -> None:
        self.state["next"] = self.next


class Marks:
    """What has happened, to all copies of a bolt: they are pickled, and this is known by its number."""

    _all: ClassVar[list[set[str]]] = []

    def __init__(self) -> None:
        self.number = len(self._all)
        self._all.append(set())

    def first(self, what: str) -> bool:
        """Whether this is the first time."""
        marks = self._all[self.number]
        first = what not in marks
        marks.add(what)
        return first


@pytest.mark.parametrize("how", ["raises", "fails a tuple", "an error"])
def test_what_fails_in_a_window_takes_the_batch_back(how: str) -> None:
    """C41, C44, W14: and no tuple is blamed for it."""
    marks = Marks()

    def execute(bolt: Any, window: TupleWindow) -> None:
        if not marks.first(how):
            return
        if how == "fails a tuple":
            bolt.collector.fail(window[0], "not good")
        elif how == "an error":
            raise KeyError(how)
        else:
            raise FailedException(how)

    one = rig(Windows(execute).with_tumbling_window(Count(2)), Replayed(rows(*range(4))))
    one.batches(3)
    assert fired == [[0, 1], [2, 3], [0, 1], [2, 3]]
    assert heard(one) == [("ack", n) for n in range(4)]


def test_a_window_that_always_fails_ends_the_topology_and_makes_nobody_a_dead_letter() -> None:
    """C41, C44: it says which bolt it was, and what it raised."""

    def execute(bolt: Any, window: TupleWindow) -> None:
        raise FailedException("never")

    one = rig(
        Windows(execute).with_tumbling_window(Count(2)),
        Replayed(rows(0, 1)),
        **{"stormspark.max.attempts": 3},
    )
    with pytest.raises(
        ComponentError, match=r"failed 3 times .*b\[0\]: execute of TupleWindow\(2 tuples.*never"
    ):
        one.batches(1)
    assert not heard(one)


class Refuses(Bolt):
    """Fails its first tuple, ``by`` the collector or an exception."""

    def __init__(self, by: str, marks: Marks) -> None:
        self.by, self.marks = by, marks

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        if self.marks.first("refused"):
            if self.by == "collector":
                self.collector.fail(tup, "no")
                return
            raise FailedException("no")
        fired.append(("sink", tup[0]))
        self.collector.ack(tup)


@pytest.mark.parametrize("by", ["collector", "exception"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_result_that_fails_takes_the_batch_back_also_two_bolts_later(by: str, workers: int) -> None:
    """C27, C41, C44: what a window emits is in no tree."""

    def pass_on(bolt: Any, tup: Any) -> None:
        bolt.collector.emit(tup.values, anchors=[tup])
        bolt.collector.ack(tup)

    def emit(bolt: Any, window: TupleWindow) -> None:
        bolt.collector.emit((sum(tup[0] for tup in window),), anchors=list(window))

    fired.clear()
    builder = two(Windows(emit).with_tumbling_window(Count(2)), Replayed(rows(1, 2)))
    builder.set_bolt("on", Call(pass_on)).shuffle_grouping("b")
    builder.set_bolt("sink", Refuses(by, Marks())).shuffle_grouping("on")
    one = Rig(builder, workers, **{"stormspark.exactly.once": True})
    one.batches(3)
    assert fired == [[1, 2], [1, 2], ("sink", 3)]
    assert heard(one) == [("ack", 0), ("ack", 1)]


def test_acks_of_users_change_nothing() -> None:
    """C41: the tuples of a window are acked already."""

    def execute(bolt: Any, window: TupleWindow) -> None:
        for tup in window:
            bolt.collector.ack(tup)

    one = rig(Windows(execute).with_window(Count(2), Count(1)), rows(0, 1, 2))
    one.batches(2)
    assert heard(one) == [("ack", n) for n in range(3)] and not one.errors


class Locks(Replayed):
    """Emits what can't be pickled."""

    def next_tuple(self) -> None:
        if not self.next:
            self.next = 1
            self.collector.emit((threading.Lock(),), message_id=0)


def test_a_tuple_that_cannot_be_kept_is_named() -> None:
    """C41, W22: with its component and task, and what to do."""
    one = rig(Windows().with_tumbling_window(Count(5)), Locks([]), **{"stormspark.max.attempts": 2})
    with pytest.raises(
        ComponentError,
        match=r"b\[0\]: pre_prepare.*bolt 'b' \(b\[0\]\).*Tuple\(a.*lock.*emit plain data",
    ):
        one.batches(1)


class Pickled(Windows):
    """Counts windows in an attribute."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        self.count = 0

    def execute(self, window: TupleWindow) -> None:
        self.count += 1
        self.collector.emit((self.count,))


class TwoPhases(TwoPhaseStatefulComponent, Windows):
    """Hears when its windows are safe."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def execute(self, window: TupleWindow) -> None:
        self.state["sum"] = self.state.get("sum", 0) + sum(tup[0] for tup in window)

    def pre_save(self, checkpoint_id: int) -> None:
        fired.append(("pre_save", checkpoint_id))

    def post_save(self, checkpoint_id: int) -> None:
        fired.append(("post_save", checkpoint_id))

    def pre_restore(self, checkpoint_id: int) -> None:
        fired.append(("pre_restore", checkpoint_id))


def durable(bolt: Any, script: Script, tasks: int = 1, **conf: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("a", script)
    builder.set_bolt("b", bolt, tasks).shuffle_grouping("a").add_configurations(conf)
    return builder.create_topology("t")


def life(topology: Topology, folder: Path, generation: int, batches: int = 2) -> DurableWorkers:
    fired.clear()
    workers = DurableWorkers(topology, folder, ONCE, generation)
    for _ in range(batches):
        workers.run_batch()
    return workers


@pytest.mark.slow
def test_the_next_driver_goes_on_with_windows_attributes_and_two_phases(tmp_path: Path) -> None:
    """C35, C41, C42: three sorts of state of its own beside the windows."""
    pickled = Pickled().with_tumbling_window(Count(4))
    two_phases = TwoPhases().with_tumbling_window(Count(4))
    for number, upto in enumerate((3, 6, 9)):
        script = Replayed(rows(*range(upto)))
        first = life(durable(pickled, script, **{"topology.state.pickle": True}), tmp_path / "1", number)
        (task,) = [one for one in first.workers[0].tasks.values() if one.component.id == "b"]
        assert task.instance.bolt.count == upto // 4
        second = life(durable(two_phases, script), tmp_path / "2", number)
        assert second.state("b").get("sum", 0) == (0, 6, 28)[number]
        assert ("post_save", 2 * number) in fired


def due_of(workers: DurableWorkers) -> int:
    """When the windows' trigger goes off next."""
    (task,) = [one for one in workers.workers[0].tasks.values() if one.component.id == "b"]
    assert task.state is not None and task.state.windows is not None
    due: int = task.state.windows["progress"]["due"]
    return due


@pytest.mark.slow
def test_a_trigger_that_fell_due_while_all_was_down_goes_off_once_and_then_in_its_rhythm(
    tmp_path: Path,
) -> None:
    """C29, C41: and its window has all that came since the one before."""
    bolt = Windows().with_tumbling_window(Duration.seconds(10))
    life(durable(bolt, Replayed(rows(1, 2))), tmp_path, 0)
    assert not fired
    later = DurableWorkers(durable(bolt, Replayed(rows(1, 2, 3))), tmp_path, ONCE, 1, began=47)
    later.run_batch()
    assert fired == [[1, 2]] and due_of(later) == 50_000
    later.clock.advance(3)
    later.run_batch()
    assert fired == [[1, 2], [3]] and due_of(later) == 60_000


def test_time_does_not_go_back_on_a_host_whose_clock_is_behind(tmp_path: Path) -> None:
    """C29, C41: it goes on from where it was."""
    bolt = Windows().with_tumbling_window(Duration.seconds(10))
    early = DurableWorkers(durable(bolt, Replayed(rows(1))), tmp_path, ONCE, 0, began=1000)
    early.run_batch()
    fired.clear()
    behind = DurableWorkers(durable(bolt, Replayed(rows(1, 2))), tmp_path, ONCE, 1, began=5)
    behind.run_batch()
    assert not fired
    behind.clock.advance(10)
    behind.run_batch()
    assert fired == [[1, 2]] and due_of(behind) == 1_020_000


def test_a_task_that_begins_anew_does_not_put_its_windows_off() -> None:
    """C29, C41, C44: however often; its timers go by the state."""
    one = rig(Windows().with_tumbling_window(Duration.seconds(10)), Replayed(rows(1, 2)))
    one.batches(2)
    for _ in range(9):
        one.clock.advance(1)
        for worker in one.workers:
            worker.roll_back(one.cluster._batch, one.cluster._committed, "a test")
        one.batches(1)
    assert not fired
    one.advance(1)
    assert fired == [[1, 2]]


@pytest.mark.slow
def test_how_far_event_time_has_come_is_state(tmp_path: Path) -> None:
    """C30, C31, C41: the watermark of what came in the life before fires windows in this one, and who is late is late."""
    bolt = Windows().with_tumbling_window(Duration(10)).with_timestamp_field("value").with_lag(Duration(5))
    bolt.with_late_tuple_stream("late")
    life(durable(bolt, Replayed(rows(3, 8, 27))), tmp_path, 0)
    assert not fired  # the watermark is looked at once a second
    life(durable(bolt, Replayed(rows(3, 8, 27, 21))), tmp_path, 1)
    assert fired == [[3, 8]]
    third = life(durable(bolt, Replayed(rows(3, 8, 27, 21, 7, 31))), tmp_path, 2, 1)
    third.clock.advance(1)
    third.run_batch()
    assert fired == []  # 26 is the watermark, and the window of 7 has fired in the life before
    fourth = life(durable(bolt, Replayed(rows(3, 8, 27, 21, 7, 31, 25, 40))), tmp_path, 3, 1)
    fourth.clock.advance(1)
    fourth.run_batch()
    assert fired == [[21, 25, 27]]  # 25 came when 26 was the watermark, but its window had not fired


@pytest.mark.slow
def test_other_settings_hold_from_then_on_and_another_time_is_refused(tmp_path: Path) -> None:
    """C41: the windows' length and slide may change; times of the other kind would mean nothing."""
    life(durable(Windows().with_tumbling_window(Count(10)), Replayed(rows(*range(8)))), tmp_path, 0)
    life(durable(Windows().with_window(Count(3), Count(5)), Replayed(rows(*range(10)))), tmp_path, 1)
    assert fired == [[2, 3, 4], [7, 8, 9]]
    by_event = Windows().with_tumbling_window(Count(10)).with_timestamp_field("value")
    with pytest.raises(ComponentError, match="were in processing time and are in event time now"):
        life(durable(by_event, Replayed(rows(*range(8)))), tmp_path, 2)


#: The first one is enough after an edit.
LENGTHS = [
    Count(3),
    *(
        pytest.param(length, marks=pytest.mark.slow)
        for length in (Count(10), Duration(10_000), Duration(100_000))
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "event", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["processing time", "event time"]
)
@pytest.mark.parametrize("before", LENGTHS, ids=str)
@pytest.mark.parametrize("after", LENGTHS, ids=str)
def test_tumbling_windows_of_another_length_have_each_tuple_once(
    before: Count | Duration, after: Count | Duration, event: bool, tmp_path: Path
) -> None:
    """C41: what no window has had in one life, one of the next life has; of a window that has fired none has anything again."""
    fired.clear()
    sent: list[int] = []
    for generation, length in enumerate((before, after)):
        bolt = Windows().with_tumbling_window(length)
        if event:
            bolt.with_timestamp_field("value").with_lag(Duration(1))
        new = [5_000 + 7_000 * n for n in range(len(sent), len(sent) + (6, 40)[generation])]
        run = DurableWorkers(
            durable(bolt, Script([(at,) for at in new])), tmp_path, ONCE, generation, 1000.0 * generation
        )
        sent += new
        for _ in range(12):
            run.clock.advance(17.1)
            run.run_batch()
        run.close()
    had = [at for window in fired for at in window]
    assert len(had) == len(set(had)) and set(had) == set(sent[: len(had)])
    if not event and isinstance(after, Duration):
        assert had == sent
    else:  # the last window is still open
        assert len(sent) - len(had) < (after.value if isinstance(after, Count) else after.value / 7_000) + 2


@pytest.mark.slow
def test_another_number_of_tasks_is_refused(tmp_path: Path) -> None:
    """C36, C34: nobody could tell which task has which tuple then."""
    bolt = Windows().with_tumbling_window(Count(10))
    life(durable(bolt, Replayed(rows(*range(8)))), tmp_path, 0)
    with pytest.raises(CheckpointError, match=r"bolt 'b' has 2 tasks, but its state in .* is of 1"):
        life(durable(bolt, Replayed(rows(*range(8))), 2), tmp_path, 1)
    builder = TopologyBuilder()
    builder.set_spout("a", Replayed(rows(1)))
    declared = builder.set_bolt("b", bolt).fields_grouping("a", Fields("value"))
    declared.add_configurations({"stormspark.state.keys": "grouping"})
    with pytest.raises(
        InvalidTopologyError, match=r"bolt 'b' has windows, and stormspark.state.keys is grouping"
    ):
        plan_topology(builder.create_topology("t"), ONCE)


@pytest.mark.slow
def test_a_message_that_windows_have_had_is_left_out_after_a_restart(tmp_path: Path) -> None:
    """C25, C41: of a spout that did not hear of its acks, and emits again; not of the next ones, and not without a field."""
    for field, expected in ((True, [[3, 4, 5], [6, 7, 8]]), (False, [[3, 4, 0], [1, 2, 3], [4, 5, 6]])):
        bolt = Windows().with_tumbling_window(Count(3))
        if field:
            bolt.with_message_id_field("value")
        folder = tmp_path / str(field)
        life(durable(bolt, Script(rows(*range(5)))), folder, 0)
        assert fired == [[0, 1, 2]]
        life(durable(bolt, Script(rows(*range(9)))), folder, 1)
        assert fired == expected
    with pytest.raises(
        InvalidTopologyError, match="the message id is field 'id', but stream 'default' of 'a'"
    ):
        plan_topology(durable(bolt.with_message_id_field("id"), Script(rows(1))), ONCE)


class Persistent(StatefulWindowedBolt[KeyValueState[str, Any]], Windows):
    """Keeps its windows longer than it may."""

    kept: ClassVar[list[TupleWindow]] = []

    def init_state(self, state: KeyValueState[str, Any]) -> None:
        pass

    def execute(self, window: TupleWindow) -> None:
        super().execute(window)
        self.kept.append(window)
        assert [window[0][0], window[-1][0], len(window)] == [fired[-1][0], fired[-1][-1], len(fired[-1])]
        for delta in ("new", "expired"):
            with pytest.raises(NotImplementedError, match="not known with a persistent window"):
                getattr(window, delta)


@pytest.mark.slow
def test_a_persistent_window_is_read_in_execute_and_not_held_in_memory(tmp_path: Path) -> None:
    """C41: at most so many tuples, beside those of the batch."""
    Persistent.kept.clear()
    bolt = (
        Persistent().with_window(Count(3000), Count(1000)).with_persistence().with_max_events_in_memory(500)
    )
    for generation, upto in enumerate(range(1000, 6000, 1000)):
        workers = life(durable(bolt, Replayed(rows(*range(upto)))), tmp_path, generation, 1)
        assert fired == [[*range(max(0, upto - 3000), upto)]]
        (task,) = [one for one in workers.workers[0].tasks.values() if one.component.id == "b"]
        assert task.instance._paged._in_memory <= 500 + 256
        workers.run_batch()
    assert "TupleWindow(1000 tuples" in repr(Persistent.kept[0])
    one_more = life(durable(bolt, Replayed(rows(*range(8000)))), tmp_path, 9, 1)
    assert len(fired) == 3 and one_more is not None
    with pytest.raises(RuntimeError, match="this window is over"):
        list(Persistent.kept[-3])
    with pytest.raises(
        InvalidTopologyError, match="with_max_events_in_memory: expected a number of tuples above 0"
    ):
        bolt.with_max_events_in_memory(0)


class Unmoved(Windows):
    """Looks at how many tuples there are, and nothing else."""

    def execute(self, window: TupleWindow) -> None:
        fired.append(len(window))


@pytest.mark.slow
@pytest.mark.parametrize("held", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_what_a_batch_writes_follows_what_came_and_left(held: int) -> None:
    """C41: 100 tuples come with each batch, and 1,000 leave with each tenth one, of 2,000 or of 100,000."""
    one = rig(Unmoved().with_window(Count(held), Count(1000)), Script([(n,) for n in range(held + 5_000)]))
    (spout,), (task,) = one.tasks("a"), one.tasks("b")
    windows = task.state.windows
    (user,) = one.users("a")
    while user.next < held:
        one.cluster.run_batch({spout.id: held - user.next})
    rows_written, bytes_written = [], []
    for _ in range(50):
        one.cluster.run_batch({spout.id: 100})
        changes = windows.changes()
        rows_written.append(len(changes))
        bytes_written.append(sum(len(value or b"") for _, value in changes))
    assert fired[-5:] == [held] * 5
    # Two pages that are filled, one of which little is left, four or five that are gone, and the progress.
    assert max(rows_written) <= 9
    assert max(bytes_written) <= 3 * 4_000
    assert len(windows) <= held / 256 * 1.1 + 5


def test_no_window_fires_in_a_round_that_ends_a_batch() -> None:
    """G6, C41: batch bolts have heard that all has come; it fires with the next batch."""
    one = rig(Windows().with_tumbling_window(Duration.seconds(1)), Replayed(rows(1, 2)))
    one.batches(1)
    one.clock.advance(2)
    (worker,) = one.workers
    supersteps = one.cluster.plan.last_superstep + 1
    orders = RoundOrders(1, committed=one.cluster._committed, asks_spouts=False, ending_round=1)
    ends = Step(one.cluster._batch, 0, 0, orders)
    for superstep in range(supersteps, 2 * supersteps):
        worker.run(ends._replace(superstep=superstep), [])
    assert not fired
    one.batches(1)
    assert fired == [[1, 2]]


def test_a_batch_that_was_prepared_and_not_committed_leaves_nothing() -> None:
    """C41, C44: its tuples come again, and are held once."""
    one = rig(Windows().with_tumbling_window(Count(5)), Replayed(rows(1, 2)))
    one.batches(1)
    for worker in one.workers:
        worker.roll_back(0, -1, "a test")
    one.cluster._batch, one.cluster._committed = 0, -1
    one.batches(2)
    (task,) = one.tasks("b")
    assert [tup[0] for tup in task.bolt._paged.first(9)] == [1, 2]
