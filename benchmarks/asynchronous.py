"""How many calls that wait an `AsyncBolt` makes, against what its capacity allows and what asyncio alone makes.

    python -m benchmarks.asynchronous [--engine spark] [--capacity 10000] [--latency 0.1] [--spread 0.5] [--seconds 15]

A spout at full speed, with message ids, feeds one task of an `AsyncBolt`, whose calls sleep for ``--latency`` seconds on average
and emit to a counting bolt. All are in one worker. ``possible_per_s`` is capacity / latency. `bare` makes the same calls without
stormspark: as soon as one ends, the next one begins.

The calls of a service do not all take the same time, so these take from ``1 - spread`` to ``1 + spread`` times the latency. With
``--spread 0`` thousands of calls end at the same moment, again and again. Then asyncio sets the results of all before it goes on
with the first, which costs it a tenth of what is possible.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from random import Random
from typing import Any

from stormspark import AsyncBolt, BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.engine import RunningTopology

__all__ = ["bare", "run"]

_FIRST_TUPLE_SECS = 120.0


class Numbers(Spout):
    """Numbers, as fast as they are asked for."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.number = collector, 0

    def next_tuple(self) -> None:
        self.number += 1
        self.collector.emit((self.number,), message_id=self.number)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class Waits(AsyncBolt):
    """Waits for ``latency`` seconds on average, as for a service, and emits."""

    def __init__(self, capacity: int, latency: float, spread: float) -> None:
        self.capacity, self.latency, self.spread = capacity, latency, spread

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.drawn = collector, Random(1)

    async def execute(self, tup: Any) -> None:
        await asyncio.sleep(self.latency * self.drawn.uniform(1 - self.spread, 1 + self.spread))
        self.collector.emit((tup[0],))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class Count(BasicBolt):
    """Counts."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.count = 0

    def execute(self, tup: Any, collector: Any) -> None:
        self.count += 1


def _submit(engine: str, capacity: int, latency: float, spread: float) -> RunningTopology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("waits", Waits(capacity, latency, spread)).shuffle_grouping("numbers")
    builder.set_bolt("count", Count()).shuffle_grouping("waits")
    topology = builder.create_topology("asynchronous")
    conf = {"topology.workers": 1}
    if engine == "local":
        from stormspark.local import submit as submit_locally

        return submit_locally(topology, conf=conf)
    from stormspark.spark import submit

    return submit(topology, conf=conf)


def run(
    engine: str, capacity: int, latency: float, spread: float, seconds: float, warmup: float
) -> dict[str, Any]:
    """Measure an `AsyncBolt` for so many seconds."""
    running = _submit(engine, capacity, latency, spread)
    try:
        deadline = time.monotonic() + _FIRST_TUPLE_SECS
        while not _acked(running):
            if running.wait(0.05) or time.monotonic() > deadline:
                raise running.error or TimeoutError(f"no call ended within {_FIRST_TUPLE_SECS:g} s")
        running.wait(warmup)
        began, before = time.monotonic(), _acked(running)
        if running.wait(seconds):
            raise running.error or RuntimeError("the topology ended by itself")
        calls = (_acked(running) - before) / (time.monotonic() - began)
    finally:
        running.stop()
    return {
        "engine": f"stormspark-{engine}",
        "calls_per_s": round(calls),
        "possible_per_s": round(capacity / latency),
        "share": round(calls / (capacity / latency), 3),
        "capacity": capacity,
        "latency_s": latency,
        "spread": spread,
        "wall_s": round(seconds, 1),
    }


def _acked(running: RunningTopology) -> int:
    return running.statistics().components["waits"].acked


def bare(capacity: int, latency: float, spread: float, seconds: float) -> dict[str, Any]:
    """Measure asyncio alone for so many seconds."""
    return asyncio.run(_bare(capacity, latency, spread, seconds))


async def _bare(capacity: int, latency: float, spread: float, seconds: float) -> dict[str, Any]:
    loop, under_way, drawn = asyncio.get_running_loop(), set(), Random(1)
    calls, until = 0, loop.time() + seconds

    async def call() -> None:
        await asyncio.sleep(latency * drawn.uniform(1 - spread, 1 + spread))

    def ended(task: asyncio.Task[None]) -> None:
        nonlocal calls
        calls += 1
        under_way.discard(task)
        if loop.time() < until:
            begin()

    def begin() -> None:
        task = loop.create_task(call())
        under_way.add(task)
        task.add_done_callback(ended)

    for _ in range(capacity):
        begin()
    await asyncio.sleep(seconds)
    return {
        "engine": "asyncio",
        "calls_per_s": round(calls / seconds),
        "share": round(calls / seconds / (capacity / latency), 3),
        "capacity": capacity,
        "latency_s": latency,
        "spread": spread,
        "wall_s": seconds,
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--capacity", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds per call, on average")
    parser.add_argument("--spread", type=float, default=0.5, help="how much the calls differ, from 0 to 1")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--warmup", type=float, default=5)
    args = parser.parse_args()
    for figures in (
        run(args.engine, args.capacity, args.latency, args.spread, args.seconds, args.warmup),
        bare(args.capacity, args.latency, args.spread, args.seconds),
    ):
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
