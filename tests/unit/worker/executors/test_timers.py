"""Timers of busy tasks do not pile up calls, and timers that are busy themselves leave time for tuples."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.executors.bolt_task import ThreadedBoltTask
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, tasks, until


class Busy(Repeat):
    """Has a timer with a short period, and is busy for many of them."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Set the timer."""
        super().prepare(conf, context, collector)
        context.set_timer(0.01, lambda: self.told("timer"))

    def execute(self, tup: Any) -> None:
        """Take long."""
        self.told("begins")
        time.sleep(0.5)
        self.told("ends")
        super().execute(tup)


@pytest.mark.slow
def test_one_call_makes_up_for_all_periods_in_which_the_task_was_busy() -> None:
    told = Told("timers")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1], Told("verdicts of timers")))
    builder.set_bolt("busy", Busy(told)).shuffle_grouping("numbers")
    with running(builder.create_topology("timers")) as topology:
        (bolt,) = tasks(topology, "busy")
        # Not `calls_due`, which may still count an earlier call that ended right before the tuple's call began.
        until(lambda: ("begins",) in told.all and bolt.executor._timers_due)
        assert len(bolt.executor._timers_due) == 1
        time.sleep(0.2)
        assert len(bolt.executor._timers_due) == 1
        assert bolt.notes.calls_due == 1
        until(lambda: ("ends",) in told.all)
        before = len(told.all)
        until(lambda: len(told.all) > before + 1)  # and the timer goes on


class Flushes(Repeat):
    """Has two timers. Each of their calls takes longer than the period of both."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Set the timers."""
        super().prepare(conf, context, collector)
        for _ in range(2):
            context.set_timer(0.001, lambda: time.sleep(0.003))


@pytest.mark.parametrize(
    "exactly_once",
    [pytest.param(False, id="at least once"), pytest.param(True, id="exactly once", marks=pytest.mark.slow)],
)
def test_timers_that_are_always_due_leave_time_for_tuples(exactly_once: bool) -> None:
    """A turn of the tasks comes between two calls of timers. A stop, which waits for calls, does not wait for one after the
    other.
    """
    told, builder = Told("verdicts of flushes"), TopologyBuilder()
    builder.set_spout("numbers", Numbers([*range(5)], told))
    builder.set_bolt("flushes", Flushes()).shuffle_grouping("numbers")
    with running(builder.create_topology("flushes"), **{"stormspark.exactly.once": exactly_once}):
        until(lambda: len(told.all) == 5)
        stops_at = time.monotonic()
    assert time.monotonic() - stops_at < 5


BEGUN, GOES_ON = threading.Event(), threading.Event()


class Waits(Repeat):
    """Has a timer whose call waits for the test."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Set the timer."""
        super().prepare(conf, context, collector)
        context.set_timer(0.001, self.at_timer)

    def at_timer(self) -> None:
        """Wait."""
        BEGUN.set()
        GOES_ON.wait()


def test_a_timer_is_not_due_again_while_its_call_runs() -> None:
    """The call that runs counts for all periods that begin meanwhile."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("no verdicts")))
    builder.set_bolt("waits", Waits()).shuffle_grouping("numbers")
    worker = Worker(
        plan_topology(builder.create_topology("waits"), {"stormspark.executor.threads": "always"}),
        0,
        side_by_side=True,
    )
    worker.open()
    try:
        (bolt,) = worker.wiring.bolts
        assert isinstance(bolt, ThreadedBoltTask)
        for periods in range(1, 5):
            worker.turns.fire_timers(worker.clock() + periods)
            assert BEGUN.wait(60)
        assert bolt.notes.calls_due == 1
    finally:
        GOES_ON.set()
        worker.close()
