"""What is told of a spout that max spout pending holds back while the worker waits for its executors (B4, F6)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from stormspark import AsyncBolt, BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.metrics import TopologyStatistics
from stormspark.plan import plan_topology
from stormspark.ui import Speedometer
from stormspark.ui.throttling import throttling_lines
from stormspark.worker.core import Worker
from tests.unit.worker.executors.runs import running, until

pytestmark = pytest.mark.slow

_CALL_SECS = 0.005
#: So long that the time from the end of a call to the begin of the next one is nothing beside it, also on a busy machine.
_LONG_CALL_SECS = 0.03


class Endless(Spout):
    """Emits one tuple in each call."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.emitted = collector, 0

    def next_tuple(self) -> None:
        self.emitted += 1
        self.collector.emit((self.emitted,), message_id=self.emitted)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Asks(BasicBolt):
    """Asks a service that takes some time."""

    def __init__(self, secs: float = _CALL_SECS) -> None:
        self.secs = secs

    def execute(self, tup: Any, collector: Any) -> None:
        time.sleep(self.secs)


class AsksAtOnce(AsyncBolt):
    """Asks the same service, by coroutines."""

    def __init__(self, secs: float = _CALL_SECS) -> None:
        self.secs = secs

    async def execute(self, tup: Any) -> None:
        await asyncio.sleep(self.secs)


class AsksTwo(AsksAtOnce):
    """Has two calls under way at once."""

    capacity = 2


def _statistics(bolt: Any, executors: int, threads: str) -> TopologyStatistics:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Endless())
    builder.set_bolt("asks", bolt, executors).shuffle_grouping("numbers")
    conf = {"topology.max.spout.pending": 2, "stormspark.executor.threads": threads}
    with running(builder.create_topology("asks"), **conf) as local:
        until(lambda: local.statistics().components["numbers"].acked > 200)
        return local.statistics()


@pytest.mark.parametrize(
    "threads", ["always", "auto"], ids=["spout on a thread", "spout on the worker's thread"]
)
@pytest.mark.parametrize(
    ("bolt", "executors"), [(Asks(), 4), (AsksAtOnce(), 1)], ids=["bolt on threads", "async bolt"]
)
def test_the_summary_says_that_max_pending_holds_a_spout_although_rounds_go_on(
    bolt: Any, executors: int, threads: str
) -> None:
    statistics = _statistics(bolt, executors, threads)
    held = statistics.components["numbers"].skipped_max_spout_ms / 1000
    assert statistics.seconds / 4 < held <= statistics.seconds
    lines = list(throttling_lines(statistics))
    assert any("at topology.max.spout.pending (2 per task" in line for line in lines), lines


@pytest.mark.parametrize(
    ("bolt", "executors"),
    [(Asks(_LONG_CALL_SECS), 2), (AsksTwo(_LONG_CALL_SECS), 1)],
    ids=["bolt on threads", "async bolt"],
)
def test_the_line_names_a_bolt_that_has_as_many_calls_under_way_as_it_may_have(
    bolt: Any, executors: int
) -> None:
    """J16: a higher max spout pending would not help."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Endless())
    builder.set_bolt("asks", bolt, executors).shuffle_grouping("numbers")
    speedometer = Speedometer(window=1.0)
    with running(builder.create_topology("asks"), **{"topology.max.spout.pending": 10}) as local:
        until(lambda: "  asks: 2 of 2 calls under way  " in str(speedometer.read(local.statistics())))


def test_a_pause_ends_when_the_spout_is_called_again() -> None:
    """Time in which the spout may emit does not count."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Endless())
    builder.set_bolt("asks", Asks()).shuffle_grouping("numbers")
    worker = Worker(plan_topology(builder.create_topology("asks"), {"topology.max.spout.pending": 2}), 0)
    worker.open()
    try:
        (spout,) = worker.wiring.spouts
        spout.pause_at_max_pending(1.0)
        assert not spout.allowance.is_stopped, "it may emit"
        spout.ask(5, worker.clock() + 600)
        spout.pause_at_max_pending(2.0)
        spout.pause_at_max_pending(3.0)
        spout.allowance.go_on(4.0)
        spout.allowance.go_on(5.0)
        assert spout.counters.skipped_max_spout_ms == 2000
        assert not spout.allowance.held, "it may be called again in this round"
    finally:
        worker.abandon()
