"""Between supersteps a worker goes on with its spouts, within bounds, and nothing is different but when."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.backpressure import SpoutLoad
from stormspark.worker.core import Worker
from stormspark.worker.step import WorkerReport
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import Rig

#: Of the clock, which only spouts move.
CALL_SECS = 0.001
CONF = {"stormspark.batch.target.ms": 100, "topology.message.timeout.secs": 3600}


class Busy(Script):
    """A call of next_tuple takes a millisecond of the clock."""

    clock: Any = None

    def next_tuple(self) -> None:
        Busy.clock.advance(CALL_SECS)
        super().next_tuple()


class PassOn(Collect):
    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(rows: int, workers: int = 2, **conf: Any) -> Rig:
        builder = TopologyBuilder()
        builder.set_spout("a", Busy([(n,) for n in range(rows)]))
        builder.set_bolt("b", PassOn(), 2).shuffle_grouping("a")
        builder.set_bolt("c", Collect(), 2).fields_grouping("b", Fields("value"))
        rig = Rig(builder, workers, **CONF, **conf)
        monkeypatch.setattr(Busy, "clock", rig.clock)
        return rig

    return make


def home_of(rig: Rig, component: str = "a") -> Worker:
    return next(w for w in rig.workers if any(t.component.id == component for t in w.tasks.values()))


def report_of(rig: Rig, worker: Worker, *args: Any) -> WorkerReport:
    return next(report for report in rig.cluster.run_batch(*args) if report.worker == worker.index)


def emitted_in(report: WorkerReport, task: Any) -> int:
    load = report.loads[task.id]
    assert isinstance(load, SpoutLoad)
    return load.emitted


def after_every_superstep(rig: Rig, pause: float, fills: Any) -> None:
    """Have supersteps be so far apart, and each worker fill as many moments of that as ``fills`` says."""
    for worker in rig.workers:

        def run(step: Any, frames: Any, worker: Worker = worker, run: Any = worker.run) -> Any:
            out = run(step, frames)
            for _ in range(fills()):
                if not worker.spare_time.fill_gap():
                    break
            rig.clock.advance(pause)
            return out

        worker.run = run  # type: ignore[method-assign]


@pytest.mark.slow
@given(moments=st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_whenever_it_goes_on_each_tuple_is_executed_once_and_its_message_acked_once(
    moments: list[int],
) -> None:
    """With any pattern of work between supersteps, each tuple is executed once and each message acked once (E1)."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        builder = TopologyBuilder()
        builder.set_spout("a", Busy([(n,) for n in range(120)]))
        builder.set_bolt("b", PassOn(), 2).shuffle_grouping("a")
        builder.set_bolt("c", Collect(), 2).fields_grouping("b", Fields("value"))
        rig = Rig(builder, 2, **CONF)
        monkeypatch.setattr(Busy, "clock", rig.clock)
        turn = iter(moments * 1000)
        after_every_superstep(rig, 0.02, lambda: next(turn))
        rig.batches(60)
        (spout,) = rig.users("a")
        assert Counter(spout.heard) == Counter(("ack", n) for n in range(120))
        seen = [value for bolt in rig.users("c") for _, value in bolt.seen]
        assert sorted(seen) == list(range(120))


class CollectSenders(Collect):
    """Keeps who has sent what it executed."""

    def execute(self, tup: Any, collector: Any) -> None:
        self.seen.append((tup.source_task, *tup.values))


def test_order_between_two_tasks_is_that_of_emits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work between supersteps keeps the order of tuples between two tasks (E31)."""
    builder = TopologyBuilder()
    builder.set_spout("a", Busy([(n,) for n in range(200)]))
    builder.set_bolt("b", PassOn(), 2).shuffle_grouping("a")
    builder.set_bolt("c", CollectSenders(), 2).fields_grouping("b", Fields("value"))
    rig = Rig(builder, 2, **CONF)
    monkeypatch.setattr(Busy, "clock", rig.clock)
    after_every_superstep(rig, 0.02, lambda: 3)
    rig.batches(60)
    executed = [task.seen for task in rig.users("c")]
    assert sum(map(len, executed)) == 200
    for seen in executed:
        for sender in {sender for sender, _ in seen}:
            values = [value for one, value in seen if one == sender]
            assert values == sorted(values)


def test_what_it_does_meanwhile_is_set_aside_of_its_spouts_time(busy: Any) -> None:
    """The round's time for spouts is the same, however much of it lies between supersteps."""
    rig = busy(5_000)
    worker, (spout,) = home_of(rig), rig.users("a")
    rig.batches(1)
    rig.clock.advance(0.01)
    before, quantum = spout.next, worker.round_clock.quantum.seconds
    filled = 0
    report = report_of(rig, worker)  # a gap of 10 ms, and none inside of it
    in_superstep = spout.next - before
    while worker.spare_time.fill_gap():
        filled += 1
    emitted = spout.next - before
    assert filled and worker.spare_time.fill_gap() is False, "until what was set aside is used up"
    assert emitted - in_superstep == pytest.approx(10, abs=4)
    assert emitted * CALL_SECS == pytest.approx(worker.round_clock.quantum.seconds, abs=0.005), quantum
    assert report.filled == 0
    assert report_of(rig, worker).filled == pytest.approx(0.010, abs=0.004), (
        "it is told of with the next report"
    )


def test_long_gaps_leave_the_superstep_half_of_the_time(busy: Any) -> None:
    rig = busy(5_000)
    worker, (spout,) = home_of(rig), rig.users("a")
    rig.batches(1)
    rig.clock.advance(60)
    before = spout.next
    rig.batches(1)
    assert (spout.next - before) * CALL_SECS >= worker.round_clock.quantum.seconds / 2 - 0.001


def test_what_is_emitted_meanwhile_is_reported_in_the_next_report(busy: Any) -> None:
    """F6: or the controller would think bolts faster than they are."""
    rig = busy(5_000)
    worker, (task,) = home_of(rig), rig.tasks("a")
    told = filled = 0
    for _ in range(6):
        told += emitted_in(report_of(rig, worker), task)
        rig.clock.advance(0.01)
        filled += worker.spare_time.fill_gap()
    told += emitted_in(report_of(rig, worker), task)
    assert filled and told == task.spout.next


@pytest.mark.parametrize(
    "conf",
    [
        {"stormspark.backpressure.strategy": "drop"},
        {"stormspark.trigger.interval.ms": 50},
    ],
)
def test_where_spouts_have_no_time_of_their_own_it_waits(busy: Any, conf: dict[str, Any]) -> None:
    rig = busy(5_000, **conf)
    worker = home_of(rig)
    for _ in range(3):
        rig.batches(1)
        rig.clock.advance(0.05)
        assert not worker.spare_time.fill_gap()


def test_a_spout_that_is_held_is_not_asked(busy: Any) -> None:
    """F6, W1: no more than its limit, in the superstep and after it."""
    rig = busy(5_000)
    worker, (task,) = home_of(rig), rig.tasks("a")
    rig.batches(1)
    rig.clock.advance(0.01)
    before = task.spout.next
    report_of(rig, worker, {task.id: 5})
    assert not worker.spare_time.fill_gap()
    assert task.spout.next - before == 5


def test_the_limit_of_a_spout_that_emits_nothing_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: such as the limit that a spout begins with, if all its calls find nothing new."""
    builder = TopologyBuilder()
    builder.set_spout("a", Busy([(n,) for n in range(5_000)]))
    builder.set_spout("silent", Script([]))
    builder.set_bolt("b", Collect()).shuffle_grouping("a").shuffle_grouping("silent")
    rig = Rig(builder, 1, **CONF)
    monkeypatch.setattr(Busy, "clock", rig.clock)
    worker, (silent,), (busy,) = home_of(rig), rig.tasks("silent"), rig.tasks("a")
    rig.batches(1)
    rig.clock.advance(0.01)
    report_of(rig, worker, {silent.id: 100})
    assert worker.spare_time.fill_gap()
    rig.clock.advance(0.01)
    report_of(rig, worker, {silent.id: 100, busy.id: 10_000})
    assert not worker.spare_time.fill_gap(), "the busy spout has a limit now"


def test_a_spout_that_has_nothing_is_left_alone(busy: Any) -> None:
    rig = busy(0)
    worker = home_of(rig)
    rig.batches(1)
    rig.clock.advance(0.01)
    rig.batches(1)
    assert not worker.spare_time.fill_gap()


class Raises(Spout):
    """Raises between two supersteps."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.now = collector, False

    def next_tuple(self) -> None:
        Busy.clock.advance(CALL_SECS)
        if self.now:
            self.now = False
            raise ValueError("no")
        self.collector.emit((1,), message_id=1)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


def test_an_error_of_a_spout_between_supersteps_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of a spout between supersteps is reported as any other (B10)."""
    builder = TopologyBuilder()
    builder.set_spout("a", Raises())
    builder.set_bolt("b", Collect()).shuffle_grouping("a")
    rig = Rig(builder, 1, **CONF)
    monkeypatch.setattr(Busy, "clock", rig.clock)
    rig.batches(1)
    rig.clock.advance(0.01)
    rig.batches(1)
    (worker,), (spout,) = rig.workers, rig.users("a")
    spout.now = True
    worker.spare_time.fill_gap()
    rig.batches(1)
    assert any("ValueError: no" in error for error in rig.errors), rig.errors
