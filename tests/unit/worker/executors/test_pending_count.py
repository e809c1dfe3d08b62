"""What a spout on a thread of its own is told of its open trees (B5, E27)."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.executors.spout_task import ThreadedSpoutTask
from tests.unit.worker.executors.runs import Repeat, Told, running, tasks, until

pytestmark = pytest.mark.slow


class Counting(Spout):
    """Emits a group, a tuple without an id and one with an id; then raises; then does so again."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.called = collector, False

    def next_tuple(self) -> None:
        if self.called:
            return
        self.called = True
        collector = self.collector
        with collector.group("group") as group:
            for n in range(3):
                group.emit((n,))
        collector.emit((3,))
        collector.emit((4,), message_id=4)
        self.told(collector.pending_count)
        if len(self.told.all) == 1:
            raise KeyError("once")

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Hold(Repeat):
    """Acks nothing."""

    def execute(self, tup: Any) -> None:
        pass


def test_a_group_is_one_tree_and_a_tuple_without_an_id_is_none() -> None:
    """Also after the spout was opened anew, together with what it had emitted before."""
    told = Told("counting")
    builder = TopologyBuilder()
    builder.set_spout("counting", Counting(told))
    builder.set_bolt("hold", Hold()).shuffle_grouping("counting")
    with running(builder.create_topology("counting")) as local:
        (task,) = tasks(local, "counting")
        until(lambda: len(told.all) == 2 and task.account.pending == 2)
        assert told.all == [(2,), (2,)]
        until(lambda: task.pending_and_noted == 2 and task._noted == task._taken)


class Heard(Spout):
    """Emits one tuple in each call, and tells how many are pending: before each emit, and in each ack."""

    waits = True

    def __init__(self, told: Told) -> None:
        self.told = told

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.emitted = collector, 0

    def next_tuple(self) -> None:
        self.told("next_tuple", self.collector.pending_count)
        self.emitted += 1
        self.collector.emit((self.emitted,), message_id=self.emitted)

    def ack(self, message_id: Any) -> None:
        self.told("ack", self.collector.pending_count)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Computes(Repeat):
    """Acks at once, on the worker's thread."""

    waits = False


def test_a_message_is_pending_until_the_spout_hears_its_verdict() -> None:
    """Max spout pending is exact as the spout sees it: the count falls just before ``ack``, as in Storm (B4)."""
    told = Told("heard")
    builder = TopologyBuilder()
    builder.set_spout("heard", Heard(told))
    builder.set_bolt("computes", Computes()).shuffle_grouping("heard")
    plan = plan_topology(builder.create_topology("heard"), {"topology.max.spout.pending": 2})
    worker = Worker(plan, 0, side_by_side=True)
    worker.open()
    try:
        (spout,) = worker.wiring.spouts
        assert isinstance(spout, ThreadedSpoutTask)
        later = worker.clock() + 600

        def emits_all() -> bool:
            spout.ask(10, later)
            worker._executors.take_in()
            return spout.account.pending == 2

        until(emits_all)
        assert told.all == [("next_tuple", 0), ("next_tuple", 1)]
        with patch.object(spout, "deliver"):  # both trees end, and the spout does not hear of it yet
            worker.turns.run_pass(later)
            assert spout.account.pending == 0
            assert spout.pending_and_noted == 2
            spout.ask(10, later)
            until(lambda: spout.executor.is_idle and not spout._turn_is_open)
            assert len(told.all) == 2, "it has called next_tuple"
        spout.deliver()
        until(lambda: not spout._verdicts)
        assert told.all[2:] == [("ack", 1), ("ack", 0)]
        assert spout.pending_and_noted == 0
    finally:
        worker.close()
