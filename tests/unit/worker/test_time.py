"""Ticks and timers on a clock that the tests drive."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import BasicBolt, TickTupleAwareBolt, TopologyBuilder
from tests.unit.worker.components import Call, Collect, Script
from tests.unit.worker.rig import Rig, two


class Ticked(TickTupleAwareBolt):
    """Holds tuples until the next tick."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.held, self.ticks = collector, [], []

    def process(self, tup: Any) -> None:
        self.held.append(tup)

    def on_tick_tuple(self, tick: Any) -> None:
        self.ticks.append((tick.source_component, tick.source_stream, tick.source_task, *tick))
        for tup in self.held:
            self.collector.ack(tup)
        self.held = []
        self.collector.ack(tick)

    def get_component_configuration(self) -> Any:
        return {"topology.tick.tuple.freq.secs": 2}


@pytest.mark.parametrize("workers", [1, 2])
def test_ticks_come_at_the_rate_of_the_component_behind_what_waits(workers: int) -> None:
    """C9: from __system, stream __tick, task -1; the value is the rate; they may be acked like any tuple."""
    rig = Rig(two(Ticked(), [(1,), (2,)]), workers)
    rig.batches(2)
    (spout,), (bolt,) = rig.users("a"), rig.users("b")
    assert (spout.heard, len(bolt.held)) == ([], 2)
    rig.advance(1.9)
    assert bolt.ticks == []
    rig.advance(0.2, 2)
    assert bolt.ticks == [("__system", "__tick", -1, 2)]
    assert sorted(spout.heard) == [("ack", 0), ("ack", 1)]
    (task,) = rig.tasks("b")
    counters = task.read_counters()
    assert (counters.executed, counters.acked) == (2, 2)  # ticks are not users' tuples


def test_missed_ticks_are_made_up_for_by_one_and_the_rhythm_stays() -> None:
    """C9: not exact when the worker is busy; a clock that jumps brings no flood."""
    rig = Rig(two(Ticked(), []), 1)
    (bolt,) = rig.users("b")
    rig.batches(1)
    rig.advance(1_000_001.0)
    assert len(bolt.ticks) == 1
    rig.advance(0.9)
    assert len(bolt.ticks) == 1
    rig.advance(0.2)  # 1,000,002.1: the rhythm is that of even seconds still
    assert len(bolt.ticks) == 2


def test_every_task_of_a_bolt_gets_ticks_and_a_basic_bolt_executes_them() -> None:
    """C9, C5: to every task of the component; the topology's setting counts for all bolts."""

    class Basic(BasicBolt):
        def prepare(self, conf: Any, context: Any) -> None:
            self.seen: list[bool] = []

        def execute(self, tup: Any, collector: Any) -> None:
            self.seen.append(tup.is_tick)

    builder = TopologyBuilder()
    builder.set_spout("a", Script([(1,)]))
    builder.set_bolt("b", Basic(), 3).all_grouping("a")
    rig = Rig(builder, 2, **{"topology.tick.tuple.freq.secs": 1})
    rig.batches(2)
    rig.advance(1.0)
    assert [bolt.seen for bolt in rig.users("b")] == [[False, True]] * 3
    assert [task.read_counters().acked for task in rig.tasks("b")] == [1, 1, 1]


def test_ticks_never_reach_spouts() -> None:
    """B11: a tick setting of a spout changes nothing."""

    class Ticking(Script):
        def get_component_configuration(self) -> Any:
            return {"topology.tick.tuple.freq.secs": 1}

    rig = Rig(two(Collect(), Ticking([(1,)])), 1)
    rig.advance(1.5, 2)
    rig.advance(1.5, 2)
    assert [bolt.seen for bolt in rig.users("b")] == [[("default", 1)]]


def test_zero_means_no_ticks() -> None:
    """C9: null or 0, none."""
    rig = Rig(two(Collect(), []), 1, **{"topology.tick.tuple.freq.secs": 0})
    rig.advance(100.0, 2)
    assert [bolt.seen for bolt in rig.users("b")] == [[]]


class Clocked(Call):
    """Sets timers when it is prepared: (seconds, what it notes)."""

    def __init__(self, *timers: float, error: Exception | None = None) -> None:
        super().__init__(lambda bolt, tup: bolt.collector.ack(tup))
        self.timers, self.error = timers, error

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        self.calls: list[tuple[float, int]] = []
        for seconds in self.timers:
            context.set_timer(seconds, lambda seconds=seconds: self.call(seconds))

    def call(self, seconds: float) -> None:
        if self.error is not None:
            raise self.error
        self.calls.append((seconds, self.context.now_ms()))
        self.collector.emit((seconds,))


def test_a_task_may_have_several_timers_that_emit() -> None:
    """W20, A28: each at its own rate, in the order in which they fall due; simulated time begins in 1970."""
    builder = two(Clocked(1.0, 1.5), [])
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, 1)
    for _ in range(6):
        rig.advance(0.5)
    (bolt,), (collect,) = rig.users("b"), rig.users("c")
    assert bolt.calls == [(1.0, 1000), (1.5, 1500), (1.0, 2000), (1.0, 3000), (1.5, 3000)]
    assert [seconds for _, seconds in collect.seen] == [1.0, 1.5, 1.0, 1.0, 1.5]


def test_what_a_timer_raises_restarts_the_task_and_its_timers() -> None:
    """W22: like execute; the old instance's timers are gone."""
    rig = Rig(two(Clocked(1.0, error=KeyError("x")), [(1,)]), 1)
    rig.advance(1.0)
    rig.advance(1.0)
    (task,) = rig.tasks("b")
    assert (task.counters.restarts, task.counters.errors, task.fatal) == (2, 2, None)
    (timers,) = [worker.services.timers for worker in rig.workers]
    assert len(timers._timers) == 1


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timer_needs_a_positive_period(seconds: float) -> None:
    """W20: the error comes where it was set."""
    with pytest.raises(Exception, match=r"a timer's seconds must be more than 0"):
        Rig(two(Clocked(seconds), []), 1)


def test_the_tasks_clock_never_goes_back() -> None:
    """A28: now_ms is monotonic, whatever the wall clock does."""
    rig = Rig(two(Call(lambda bolt, tup: None), []), 1)
    (bolt,) = rig.users("b")
    seen = []
    for step in (0.0, 0.25, 86_400.0):
        rig.clock.advance(step)
        seen.append(bolt.context.now_ms())
    assert seen == [0, 250, 86_400_250]
