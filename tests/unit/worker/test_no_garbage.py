"""Calls leave nothing behind that only Python's garbage collector would find: it would stop all threads to look for it."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from random import Random
from typing import Any

import pytest

from stormspark import (
    AsyncBolt,
    AsyncSpout,
    BasicBolt,
    Bolt,
    FailedException,
    Fields,
    Spout,
    TopologyBuilder,
)
from stormspark.local import InProcessWorkers
from stormspark.plan import plan_topology
from tests.waiting import PATIENCE_SECS

_NUMBERS = 2000


class Numbers(Spout):
    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.number = collector, 0

    def next_tuple(self) -> None:
        if self.number < _NUMBERS:
            self.number += 1
            self.collector.emit((self.number,), message_id=self.number)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class AsyncNumbers(AsyncSpout):
    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.number = collector, 0

    async def next_tuple(self) -> None:
        await asyncio.sleep(0)
        if self.number < _NUMBERS:
            self.number += 1
            self.collector.emit((self.number,), message_id=self.number)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class Emits(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit((tup[0],))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class OnThread(Emits):
    waits = True


class Fails(Bolt):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        self.collector.fail(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class Raises(Emits):
    def execute(self, tup: Any, collector: Any) -> None:
        msg = "not this one"
        raise FailedException(msg)


class RaisesOnThread(Raises):
    waits = True


class Async(AsyncBolt):
    capacity = 100

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    async def execute(self, tup: Any) -> None:
        await asyncio.sleep(0.001)
        self.collector.emit((tup[0],))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class Ordered(Async):
    ordered = True


class WithTimeout(Async):
    timeout_secs = 30.0


class OfTasks(Async):
    async def execute(self, tup: Any) -> None:
        await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0.001))
        self.collector.emit((tup[0],))


class Acks(Async):
    async def execute(self, tup: Any) -> None:
        await asyncio.sleep(0)
        self.collector.ack(tup)


class Count(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None: ...


class AsyncRaises(Async):
    async def execute(self, tup: Any) -> None:
        await asyncio.sleep(0)
        msg = "not this one"
        raise FailedException(msg)


@pytest.mark.parametrize(
    ("spout", "bolt"),
    [
        *((Numbers, bolt) for bolt in (Emits, OnThread, Fails, Raises, RaisesOnThread)),
        *((Numbers, bolt) for bolt in (Async, Ordered, WithTimeout, OfTasks, Acks, AsyncRaises)),
        (AsyncNumbers, Emits),
    ],
    ids=lambda one: one.__name__,
)  # fmt: skip
def test_calls_leave_no_garbage(spout: Any, bolt: Any) -> None:
    """A16: ten thousand calls a second that leave a dozen objects each stop all threads for a fifth of the time."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout())
    builder.set_bolt("calls", bolt()).shuffle_grouping("numbers")
    builder.set_bolt("count", Count()).shuffle_grouping("calls")
    plan = plan_topology(builder.create_topology("garbage"), {"topology.workers": 1})
    workers = InProcessWorkers(plan, time.monotonic, Random(1))
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        workers.open()
        tasks = [task for task in workers.workers[0].tasks.values() if task.component.id == "calls"]
        gc.collect()
        until = time.monotonic() + PATIENCE_SECS
        while sum(task.counters.acked + task.counters.failed for task in tasks) < _NUMBERS:
            workers.run_batch()
            assert time.monotonic() < until
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        # What each call leaves is there as often as there were calls. Threads of other tests may have left other things.
        kinds = Counter(type(one).__name__ for one in gc.garbage)
        assert not {kind: count for kind, count in kinds.items() if count >= _NUMBERS / 2}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_enabled:
            gc.enable()
        workers.close()
