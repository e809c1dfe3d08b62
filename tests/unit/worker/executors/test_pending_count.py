"""What a spout on a thread of its own is told of its open trees (B5, E27)."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import Fields, Spout, TopologyBuilder
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
