"""A ``cleanup`` or ``close`` that raises: rows may be unwritten, so the statistics say so (exit code 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stormspark import AsyncBolt, AsyncSpout, Bolt, Fields, OutputFieldsDeclarer, TopologyBuilder
from stormspark.local import LocalTopology, SimulatedClock, submit
from stormspark.metrics.shortfalls import Kind, shortfalls
from stormspark.plan import plan_topology
from tests.finite_components import Numbers


class CantFlush(Bolt):
    waits = False

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        self.collector.ack(tup)

    def cleanup(self) -> None:
        msg = "the disk is full"
        raise OSError(msg)


class CantFlushOnItsThread(CantFlush):
    waits = True


class CantFlushAndExits(CantFlushOnItsThread):
    def cleanup(self) -> None:
        raise SystemExit("the disk is full")


class CantFlushInCoroutine(AsyncBolt):
    async def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        pass

    async def execute(self, tup: Any) -> None:
        pass

    async def cleanup(self) -> None:
        msg = "the disk is full"
        raise OSError(msg)


class Flushes(CantFlush):
    def cleanup(self) -> None:
        pass


class CantClose(Numbers):
    def close(self) -> None:
        msg = "the disk is full"
        raise OSError(msg)


class CantCloseOnItsThread(CantClose):
    waits = True


class CantBeDeactivated(Numbers):
    def deactivate(self) -> None:
        msg = "the disk is full"
        raise OSError(msg)


class CantCloseInCoroutine(AsyncSpout):
    async def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector, self.left = collector, [1]

    async def next_tuple(self) -> None:
        if self.left:
            self.collector.emit((0, self.left.pop()), message_id=1)

    def is_done(self) -> bool:
        return not self.left

    async def close(self) -> None:
        msg = "the disk is full"
        raise OSError(msg)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("at", "n"))


def topology(spout: Any, sink: Any) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("sink", sink, 2).shuffle_grouping("numbers")
    return builder


@pytest.mark.parametrize(
    "sink",
    [CantFlush(), CantFlushOnItsThread(), CantFlushAndExits(), CantFlushInCoroutine()],
    ids=lambda one: type(one).__name__,
)
def test_a_sink_that_cant_flush_in_cleanup_falls_short(sink: Any) -> None:
    running = submit(topology(Numbers(3), sink).create_topology("t"))
    assert running.wait() and running.error is None
    statistics = running.statistics()
    (found,) = shortfalls(statistics)
    assert found.kind is Kind.UNWRITTEN
    assert found.text.startswith("sink: the last end_of_input, post_save or cleanup of 2 of 2 tasks raised")
    of_sink = statistics.components["sink"]
    assert of_sink.errors == 2 and "the disk is full" in str(of_sink.last_error)
    assert f"{__file__}:" in str(of_sink.last_error)
    assert of_sink.acked == of_sink.executed == 3 and not statistics.total("pending")


@pytest.mark.parametrize(
    "spout",
    [CantClose(1), CantCloseOnItsThread(1), CantBeDeactivated(1), CantCloseInCoroutine()],
    ids=lambda one: type(one).__name__,
)
def test_a_spout_that_cant_close_falls_short(spout: Any) -> None:
    running = submit(topology(spout, Flushes()).create_topology("t"))
    assert running.wait() and running.error is None
    (found,) = shortfalls(running.statistics())
    assert found.kind is Kind.UNWRITTEN
    assert found.text.startswith("numbers: the deactivate or close of its task raised an error")


@pytest.mark.parametrize("exactly_once", [False, True])
def test_the_errors_of_all_workers_count(exactly_once: bool) -> None:
    plan = plan_topology(
        topology(Numbers(3), CantFlush()).create_topology("t"),
        {"topology.workers": 2, "stormspark.exactly.once": exactly_once},
    )
    running = LocalTopology(plan, SimulatedClock())
    for _ in range(10):
        running.run_batch()
    assert running.wait(0)
    statistics = running.statistics()
    assert statistics.components["sink"].unwritten == statistics.components["sink"].errors == 2
    assert statistics.components["numbers"].acked == 3
