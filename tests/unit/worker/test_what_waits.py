"""What waits for a bolt with several calls under way at once: how many tuples, and how much work (F11, W21)."""

from __future__ import annotations

import asyncio
import time
from io import StringIO
from threading import Event
from typing import Any

import pytest
from rich.console import Console

from stormspark import AsyncBolt, Bolt, TopologyBuilder
from stormspark.local import LocalCluster
from stormspark.metrics import TopologyStatistics
from stormspark.ui import Speedometer, print_summary
from tests.unit.worker.components import Script
from tests.waiting import PATIENCE_SECS, wait_for

pytestmark = pytest.mark.slow

_CALL_SECS = 0.25
#: Calls last this long where rounds in which no call ends have to be as usual as others.
_LONG_SECS = 1.2
_TUPLES = 1000
_AT_ONCE = 4
#: Set when calls that last ``for_ever`` may end.
_open = Event()


class AsksOnLoop(AsyncBolt):
    """Each call awaits an answer; if ``for_ever``, until the test ends."""

    capacity = _AT_ONCE

    def __init__(self, for_ever: bool = False, ordered: bool = False, secs: float = _CALL_SECS) -> None:
        self.for_ever, self.ordered, self.secs = for_ever, ordered, secs

    async def execute(self, tup: Any) -> None:
        await asyncio.sleep(self.secs)
        while self.for_ever and not _open.is_set():
            await asyncio.sleep(0.01)


class AsksOnThread(Bolt):
    """Each call blocks its executor's thread."""

    def __init__(self, for_ever: bool = False) -> None:
        self.for_ever = for_ever

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        time.sleep(_CALL_SECS)
        if self.for_ever:
            _open.wait()
        self.collector.ack(tup)


def asking(bolt: Any, parallelism: int, hot: bool = False) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Script([(n,) for n in range(_TUPLES)]))
    ask = builder.set_bolt("ask", bolt, parallelism)
    ask.global_grouping("numbers") if hot else ask.shuffle_grouping("numbers")
    return builder.create_topology("asking")


BOLTS = [(AsksOnLoop, 1), (AsksOnThread, _AT_ONCE)]


@pytest.mark.parametrize("ordered", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_waiting_work_of_an_async_bolt_is_what_its_calls_take_at_its_capacity(ordered: bool) -> None:
    """F11: an async bolt works on as many tuples at once as its capacity says, and each takes as long as its call."""
    with LocalCluster() as cluster:
        running = cluster.submit_topology(
            "asking", {}, asking(AsksOnLoop(ordered=ordered, secs=_LONG_SECS), 1)
        )

        def waits() -> bool:
            now = running.statistics()
            bolt = now.pressure.bolts["ask"] if now.pressure else None
            return now.components["ask"].acked >= 2 * _AT_ONCE and bolt is not None and bolt.queued > 20

        wait_for(waits, timeout=PATIENCE_SECS, message="waiting tuples")
        pressure = running.statistics().pressure
        assert pressure is not None
        bolt = pressure.bolts["ask"]
        assert bolt.backlog_seconds == pytest.approx(bolt.queued * _LONG_SECS / _AT_ONCE, rel=0.3)
        running.kill()


@pytest.mark.parametrize("hot", [False, True], ids=["even", "hot"])
def test_the_waiting_work_of_threads_is_that_of_the_longest_queue(hot: bool) -> None:
    """F11: executors beside it don't help a task to which all tuples go."""
    with LocalCluster() as cluster:
        running = cluster.submit_topology("asking", {}, asking(AsksOnThread(), _AT_ONCE, hot))

        def waits() -> bool:
            now = running.statistics()
            bolt = now.pressure.bolts["ask"] if now.pressure else None
            return now.components["ask"].acked >= 2 * _AT_ONCE and bolt is not None and bolt.queued > 8

        wait_for(waits, timeout=PATIENCE_SECS, message="waiting tuples")
        pressure = running.statistics().pressure
        assert pressure is not None
        bolt = pressure.bolts["ask"]
        share = bolt.queued if hot else -(-bolt.queued // _AT_ONCE)
        assert bolt.backlog_seconds == pytest.approx(share * _CALL_SECS, rel=0.3)
        running.kill()


@pytest.mark.parametrize(("make", "parallelism"), BOLTS)
def test_until_a_call_has_ended_only_its_age_is_known(make: Any, parallelism: int) -> None:
    """F11: nobody knows yet how long the waiting work takes, nor a tuple."""
    _open.clear()
    with LocalCluster() as cluster:
        running = cluster.submit_topology("asking", {}, asking(make(for_ever=True), parallelism))
        speedometer = Speedometer()
        try:
            wait_for(
                lambda: "no call has ended yet" in (speedometer.read(running.statistics()).throttled or ""),
                timeout=PATIENCE_SECS,
                message="the age of the first call",
            )
            throttled = speedometer.read(running.statistics()).throttled or ""
            assert "ms per tuple" not in throttled and "of work waits" not in throttled
        finally:
            _open.set()
            running.kill()


@pytest.mark.parametrize(("make", "parallelism"), BOLTS)
def test_a_tuple_in_a_call_does_not_wait_and_counts_as_executed_once_it_has_ended(
    make: Any, parallelism: int
) -> None:
    """W21, F6: what was transferred has been executed, or is in a call, or waits. The summary and the counters say the same."""
    with LocalCluster() as cluster:
        running = cluster.submit_topology("asking", {}, asking(make(), parallelism))

        def held() -> bool:
            now = running.statistics()
            spouts = now.pressure.spouts if now.pressure else {}
            return now.components["ask"].acked >= 2 * _AT_ONCE and bool(
                spouts["numbers"].throttled_ms.get("ask")
            )

        wait_for(held, 60, "a spout that is slowed down")
        held_up = running.statistics()
        in_calls = _not_waiting(held_up)
        running.stop()
    # A call of a coroutine counts as executed once it has begun.
    assert in_calls == 0 if make is AsksOnLoop else 0 < in_calls <= _AT_ONCE
    assert _not_waiting(running.statistics()) == 0
    out = StringIO()
    print_summary(held_up, Console(file=out, width=200))
    assert f"ask: queue {held_up.components['ask'].queued} of 1,000,000 tuples" in out.getvalue()


def _not_waiting(now: TopologyStatistics) -> int:
    ask = now.components["ask"]
    return now.components["numbers"].transferred - ask.executed - ask.queued
