"""Measures the word count: words a second, latency, CPU.

    python -m benchmarks.word_count --case wordcount_acked --engine spark --workers 2 --seconds 20 [--vs-storm
    [--rounds 3]]

Prints one JSON line with the keys of the Storm peer. What is counted is what the count bolts executed,
between the ends of two batches, after a warm-up. With ``--vs-storm`` Storm and stormspark run in turn, and
the ratio of each round is printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.cpu import CpuMeter, machine_busy
from benchmarks.storm_peer import run_storm
from benchmarks.topologies import CASES, build
from stormspark.api import Topology
from stormspark.config import parse_assignment
from stormspark.engine import RunningTopology
from stormspark.metrics import TopologyStatistics

_FIRST_WORD_SECS = 120.0


@dataclass(frozen=True)
class Mark:
    """The end of a batch: when it was, and what had been done by then."""

    at: float
    statistics: TopologyStatistics
    cpu: dict[str, float]
    machine: float


def next_batch_end(running: RunningTopology, meter: CpuMeter) -> Mark:
    """Wait for the next batch to end."""
    before = running.statistics().batches
    while (now := running.statistics()).batches == before:
        if running.wait(0.01):
            raise running.error or RuntimeError("the topology ended by itself")
    return Mark(time.perf_counter(), now, meter.read(), machine_busy())


def measure(
    running: RunningTopology, warmup: float, seconds: float, counted: str = "count"
) -> tuple[Mark, Mark]:
    """Warm up from the first tuple of the bolt ``counted`` on, then take the first and the last batch end of the window."""
    meter = CpuMeter()
    deadline = time.monotonic() + _FIRST_WORD_SECS
    while not running.statistics().components[counted].executed:
        if running.wait(0.05) or time.monotonic() > deadline:
            raise running.error or TimeoutError(f"{counted} executed nothing within {_FIRST_WORD_SECS:g} s")
    time.sleep(warmup)
    first = next_batch_end(running, meter)
    time.sleep(seconds)
    return first, next_batch_end(running, meter)


@contextmanager
def running_on(engine: str, topology: Topology, settings: dict[str, Any]) -> Iterator[RunningTopology]:
    """Submit a topology to one of the engines; it is stopped in the end."""
    running: RunningTopology
    if engine == "local":
        from stormspark.local import submit as submit_locally

        running = submit_locally(topology, conf=settings)
    else:
        from stormspark.spark import submit

        running = submit(topology, conf=settings)
    try:
        yield running
    finally:
        running.stop()


def measure_on(
    engine: str,
    topology: Topology,
    settings: dict[str, Any],
    warmup: float,
    seconds: float,
    counted: str = "count",
) -> tuple[Mark, Mark]:
    """Run a topology on one of the engines for as long as `measure` takes."""
    with running_on(engine, topology, settings) as running:
        return measure(running, warmup, seconds, counted)


def result(case: str, engine: str, workers: int, first: Mark, last: Mark) -> dict[str, Any]:
    """The JSON line, with the peer's keys."""
    wall = last.at - first.at
    spouts = [mark.statistics.components["spout"] for mark in (first, last)]
    counts = [mark.statistics.components["count"].executed for mark in (first, last)]
    acked = not case.endswith("unacked")
    roots = (spouts[1].acked - spouts[0].acked) if acked else (spouts[1].emitted - spouts[0].emitted)
    latency = spouts[1].histogram.since(spouts[0].histogram).summary()
    cpu = {kind: last.cpu[kind] - first.cpu[kind] for kind in last.cpu}
    cpu_s = sum(cpu.values())
    words = counts[1] - counts[0]
    batches = last.statistics.batches - first.statistics.batches
    return {
        "engine": f"stormspark-{engine}",
        "case": case,
        "words_per_s": round(words / wall),
        "sentences_per_s": round(roots / wall),
        "latency_ms_mean": latency.mean,
        "latency_ms_p50": latency.p50,
        "latency_ms_p99": latency.p99,
        "cpu_s": round(cpu_s, 2),
        "cpu_jvm_s": round(cpu["jvm"], 2),
        "cpu_python_s": round(cpu["python"], 2),
        "wall_s": round(wall, 2),
        "failed": spouts[1].failed - spouts[0].failed,
        "words_per_cpu_s": round(words / cpu_s) if cpu_s else None,
        "other_cpu_s": round(max(0.0, last.machine - first.machine - cpu_s), 2),
        "workers": workers,
        "batches": batches,
        "batch_ms_mean": round(wall / batches * 1000, 1) if batches else None,
    }


def run(
    case: str, engine: str, workers: int, seconds: float, warmup: float, conf: dict[str, Any]
) -> dict[str, Any]:
    """Measure one case once."""
    topology = build(case, (workers, workers, workers))
    first, last = measure_on(engine, topology, {"topology.workers": workers, **conf}, warmup, seconds)
    return result(case, engine, workers, first, last)


def spread(values: list[float]) -> dict[str, float]:
    """Minimum, median and maximum."""
    return {
        "min": round(min(values), 3),
        "median": round(statistics.median(values), 3),
        "max": round(max(values), 3),
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", choices=CASES, default="wordcount_acked")
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warmup", type=float, default=10)
    parser.add_argument(
        "--vs-storm", action="store_true", help="run Storm's own word count in turn, print the ratio"
    )
    parser.add_argument("--rounds", type=int, default=3, help="with --vs-storm: how often each runs")
    parser.add_argument("-c", dest="conf", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    conf = dict(map(parse_assignment, args.conf))
    if not args.vs_storm:
        print(json.dumps(run(args.case, args.engine, args.workers, args.seconds, args.warmup, conf)))
        return
    ratios = []
    for _ in range(args.rounds):
        storm = run_storm(args.case, args.seconds, args.warmup)
        print(json.dumps(storm), flush=True)
        ours = run(args.case, args.engine, args.workers, args.seconds, args.warmup, conf)
        print(json.dumps(ours), flush=True)
        ratios.append(ours["words_per_s"] / storm["words_per_s"])
    print(
        json.dumps(
            {
                "case": args.case,
                "engine": args.engine,
                "ratio_to_storm": spread(ratios),
                "rounds": args.rounds,
            }
        )
    )


if __name__ == "__main__":
    main()
