"""An error in a task hook restarts the task, and fails no tuple that has been executed (J21)."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import BasicBolt, TaskHook, TopologyBuilder
from tests.unit.worker.executors.runs import Numbers, Told, running, tasks, until


class RaisesOnce(TaskHook):
    """Raises after the first tuple."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def bolt_execute(self, info: Any) -> None:
        """Raise."""
        self.told("hook")
        if len(self.told.all) == 1:
            raise ValueError


class Plain(BasicBolt):
    """Has the hook."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def prepare(self, conf: Any, context: Any) -> None:
        """Add the hook."""
        context.add_task_hook(RaisesOnce(self.told))

    def execute(self, tup: Any, collector: Any) -> None:
        """Do nothing."""


@pytest.mark.parametrize("threads", ["always", "never"])
def test_the_tuple_is_acked(threads: str) -> None:
    verdicts = Told(f"verdicts {threads}")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1, 2], verdicts))
    builder.set_bolt("plain", Plain(Told(f"hooks {threads}"))).shuffle_grouping("numbers")
    with running(builder.create_topology("hooks"), **{"stormspark.executor.threads": threads}) as topology:
        until(lambda: len(verdicts.all) == 2)
        (bolt,) = tasks(topology, "plain")
        until(lambda: bolt.counters.restarts == 1)
    assert verdicts.all == [("ack", "1"), ("ack", "2")]
