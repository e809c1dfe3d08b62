"""A timer of a busy task does not pile up calls."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stormspark import TopologyBuilder
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
        until(lambda: ("begins",) in told.all and bolt.notes.calls_due)
        assert len(bolt.executor._calls) == 1
        time.sleep(0.2)
        assert len(bolt.executor._calls) == 1
        assert bolt.notes.calls_due == 1
        until(lambda: ("ends",) in told.all)
        before = len(told.all)
        until(lambda: len(told.all) > before + 1)  # and the timer goes on
