"""How much memory a bolt takes that is a hundred times slower than its spout, against what its queue may hold.

    python -m benchmarks.slow_bolt [--engine spark] [--seconds 60]

A spout emits rows of 200 bytes, no two alike, as fast as it is asked; a bolt in another worker sleeps a millisecond over each
(a spout alone does 100 k rows a second and more). Looked at from the first tuple on, five times a second: the memory of all
workers together, and what waits for the bolt. Counted is how much memory has grown over what the workers had when nothing
waited yet, against the high mark of the bolt's queue (``stormspark.queue.high.mark.bytes``). ``later_mb`` is what it grew by
from the first half of the run to the second: of a queue that is bounded next to nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.cpu import worker_processes
from stormspark.engine import RunningTopology
from stormspark.plan import plan_topology
from tests.faults.backpressure.components import Dial, build

__all__ = ["run"]

_COST_SECS = 0.001
_LOOK_SECS = 0.2
_FIRST_TUPLE_SECS = 120.0
_MB = 1024 * 1024
_NAME = "slow-bolt"


def _workers(engine: str, name: str) -> list[psutil.Process]:
    """The processes in which tuples can wait."""
    if engine == "local":
        return [psutil.Process()]
    return worker_processes(name)


def _memory(processes: list[psutil.Process]) -> float:
    """MB, without what they share."""
    return sum(process.memory_full_info().uss for process in processes) / _MB


def _submit(engine: str, topology: Any, conf: dict[str, Any]) -> RunningTopology:
    if engine == "local":
        from stormspark.local import submit as submit_locally

        return submit_locally(topology, conf=conf)
    from stormspark.spark import submit

    return submit(topology, conf=conf)


def run(engine: str, seconds: float) -> dict[str, Any]:
    """Flood the bolt for so long; the figures, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dial")
        Dial(path).set(_COST_SECS)
        name = f"{_NAME}-{os.getpid()}"
        topology = build(name, path)
        conf = {"topology.workers": 2 if engine == "spark" else 1}
        high_mark = plan_topology(topology, conf).settings.byte_marks[0]
        running = _submit(engine, topology, conf)
        try:
            memory, queued, executed = _look(running, engine, name, seconds)
        finally:
            running.stop()
    halves = memory[: len(memory) // 2], memory[len(memory) // 2 :]
    return {
        "engine": f"stormspark-{engine}",
        "grown_mb": round(max(memory) - memory[0], 1),
        "later_mb": round(statistics.median(halves[1]) - statistics.median(halves[0]), 1),
        "base_mb": round(memory[0], 1),
        "high_mark_mb": round(high_mark / _MB, 1),
        "queued_at_most": max(queued),
        "executed_per_s": round(executed),
        "wall_s": round(seconds, 1),
    }


def _look(
    running: RunningTopology, engine: str, name: str, seconds: float
) -> tuple[list[float], list[int], float]:
    """Memory and queue over time, and tuples that the bolt did a second."""
    deadline = time.monotonic() + _FIRST_TUPLE_SECS
    while not running.statistics().components["flood"].emitted:
        if running.wait(0.05) or time.monotonic() > deadline:
            raise running.error or TimeoutError(f"no tuple was emitted within {_FIRST_TUPLE_SECS:g} s")
    processes = _workers(engine, name)
    memory, queued = [_memory(processes)], [0]
    began, before = time.monotonic(), running.statistics().components["slow"].executed
    while time.monotonic() - began < seconds or len(memory) < 4:
        if running.wait(_LOOK_SECS):
            raise running.error or RuntimeError("the topology ended by itself")
        memory.append(_memory(processes))
        components = running.statistics().components
        queued.append(components["flood"].emitted - components["slow"].executed)
    executed = running.statistics().components["slow"].executed - before
    return memory, queued, executed / (time.monotonic() - began)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    print(json.dumps(run(args.engine, args.seconds)))


if __name__ == "__main__":
    main()
