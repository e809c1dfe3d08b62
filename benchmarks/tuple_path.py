"""Measures what a tuple costs in the workers alone: CPU per word, without an engine, threads or waiting.

    python -m benchmarks.tuple_path [--case wordcount_acked] [--front-end streamparse] [--workers 2] [--seconds 5]
    perf record -F 1500 python -m benchmarks.tuple_path          # where it goes, in C too

The workers of a word count run their supersteps in this process, one after the other, as fast as they can; what is sent between
them is packed and unpacked as everywhere. Prints one JSON line: nanoseconds of CPU a word, of so many rounds. Of all benchmarks
it is the least hurt by other work on the machine, and the quickest to show whether a change of the tuple path is one.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from typing import Any

from benchmarks import streamparse, word_count
from benchmarks.in_turn import opened
from benchmarks.topologies import CASES, build
from stormspark.compat.streamparse import load
from stormspark.plan import PhysicalPlan, plan_topology

_ROUNDS = 7
_WARM_UP_SECS = 2.0
_BATCH_MS = 100


def planned(case: str, front_end: str, workers: int) -> PhysicalPlan:
    """The plan of a word count on that many workers."""
    conf = {"topology.workers": workers, "stormspark.batch.target.ms": _BATCH_MS}
    if front_end == "streamparse":
        return plan_topology(load(streamparse.TOPOLOGY, environment=streamparse.ENVIRONMENTS[workers]), conf)
    return plan_topology(build(case, (workers, workers, workers)), conf)


def measure(plan: PhysicalPlan, seconds: float) -> list[float]:
    """Nanoseconds of CPU a word in each round."""
    cluster = opened(plan)
    counts = [
        task for worker in cluster.workers for task in worker.tasks.values() if task.component.id == "count"
    ]

    def run(seconds: float) -> float:
        words, used, ends = _words(counts), time.process_time(), time.monotonic() + seconds
        while time.monotonic() < ends or _words(counts) == words:
            cluster.run_batch()
            gc.collect(1)  # as a worker does between batches
        return (time.process_time() - used) / (_words(counts) - words) * 1e9

    gc.disable()
    try:
        run(_WARM_UP_SECS)
        return [run(seconds / _ROUNDS) for _ in range(_ROUNDS)]
    finally:
        gc.enable()


def _words(counts: list[Any]) -> int:
    return sum(task.counters.executed for task in counts)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", choices=CASES, default="wordcount_acked")
    parser.add_argument("--front-end", choices=("native", "streamparse"), default="native")
    parser.add_argument("--workers", type=int, choices=streamparse.ENVIRONMENTS, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    args = parser.parse_args()
    rounds = measure(planned(args.case, args.front_end, args.workers), args.seconds)
    told = {"case": args.case, "front_end": args.front_end, "workers": args.workers}
    print(json.dumps({**told, "cpu_ns_per_word": word_count.spread(rounds), "rounds": len(rounds)}))


if __name__ == "__main__":
    main()
