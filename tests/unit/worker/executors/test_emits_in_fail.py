"""A spout that emits again in ``fail`` (E11): that emit is not limited, as it is outside of next_tuple (B4)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stormspark import Bolt, Fields, Spout, TopologyBuilder
from tests.unit.worker.executors.runs import Told, running, until

pytestmark = pytest.mark.slow


class Again(Spout):
    """Emits one tuple, and again in ``fail``; what it is told goes to the test."""

    waits = True

    def __init__(self, told: Told) -> None:
        self.told = told

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.emitted = collector, False

    def next_tuple(self) -> None:
        if not self.emitted:
            self.emitted = True
            self.collector.emit((1,), message_id=1)

    def fail(self, message_id: Any) -> None:
        self.collector.emit((message_id + 1,), message_id=message_id + 1)
        self.told("fail", message_id)

    def ack(self, message_id: Any) -> None:
        self.told("ack", message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Picky(Bolt):
    """Fails small numbers, once the topology is deactivated."""

    waits = True

    def __init__(self, deactivated: Told) -> None:
        self.deactivated = deactivated

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        while not self.deactivated.all:
            time.sleep(0.01)
        if tup[0] < 4:
            self.collector.fail(tup)
        else:
            self.collector.ack(tup)


def test_fail_emits_although_the_spout_is_inactive() -> None:
    """B13, E11."""
    told, deactivated = Told("again"), Told("deactivated")
    builder = TopologyBuilder()
    builder.set_spout("again", Again(told)).set_max_spout_pending(1)
    builder.set_bolt("picky", Picky(deactivated)).shuffle_grouping("again")
    with running(builder.create_topology("again")) as local:
        until(lambda: local.statistics().components["again"].emitted == 1)
        local.deactivate()
        deactivated()
        until(lambda: ("ack", 4) in told.all)
        assert told.all == [("fail", 1), ("fail", 2), ("fail", 3), ("ack", 4)]
