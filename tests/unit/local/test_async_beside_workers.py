"""Async bolts of a topology with several workers: a round does not wait for calls that go on."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

from stormspark import AsyncBolt, TopologyBuilder
from tests.unit.worker.executors.runs import Numbers, Told, running, until

_go_on = Event()


class Waits(AsyncBolt):
    """The call for 0 waits until the test lets it go on. All others emit at once."""

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    async def execute(self, tup: Any) -> None:
        """Wait, and emit."""
        while tup[0] == 0 and not _go_on.is_set():
            await asyncio.sleep(0.001)
        self.collector.emit((tup[0],))

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare one field."""
        declarer.declare("n")


class Last(AsyncBolt):
    """Acks what it gets."""

    async def execute(self, tup: Any) -> None:
        """Do nothing."""

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare nothing."""


def test_a_call_that_goes_on_keeps_no_tuple_from_another_worker() -> None:
    """A16: without patience a round would last for two minutes, and the acks of all others would come after that."""
    _go_on.clear()
    told = Told("verdicts beside a call that goes on")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(list(range(8)), told))
    builder.set_bolt("waits", Waits(), 2).shuffle_grouping("numbers")
    builder.set_bolt("last", Last(), 2).shuffle_grouping("waits")
    conf = {
        "topology.workers": 2,
        "stormspark.superstep.deadline.ms": 120_000,
        "stormspark.batch.target.ms": 120_000,
    }
    with running(builder.create_topology("beside-workers"), **conf):
        until(lambda: len(told.all) == 7)
        assert not any(message == "0" for _, message in told.all)
        _go_on.set()
        until(lambda: len(told.all) == 8)
