"""Latency at 100 sentences/s: how long a sentence's tree takes while there is time for everything.

    python -m benchmarks.latency [--engine spark] [--rate 100] [--seconds 20] [--warmup 15] [--rounds 1]

The acked word count with one spout task that emits at a steady rate. Two latencies: *complete*, from emit to ack, as Storm and
its peer here count it (J15); and *due*, from the moment at which a sentence should have been emitted, which a spout in the
middle of a batch can only do in the next one. On Spark, with two workers, both are told in batches of a bare Spark query with
as many exchanges and Python stages and nothing to do (`benchmarks.idle_batch`), which runs in the same session before and
after. Prints one JSON line for each round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

from benchmarks import idle_batch
from benchmarks.cpu import CpuMeter, machine_busy
from benchmarks.data import sentences
from benchmarks.topologies import Count, Split
from benchmarks.word_count import running_on
from stormspark import Fields, Spout, TopologyBuilder
from stormspark.api import Topology
from stormspark.engine import RunningTopology
from stormspark.metrics import AssignableMetric, TopologyStatistics

_METRIC_SECS = 1
_FIRST_ACK_SECS = 120.0


class Steady(Spout):
    """Emits ``rate`` sentences a second, each with the moment at which it was due for its id."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def open(self, conf, context, collector):
        """Begin now."""
        self.collector = collector
        self.items = sentences()
        self.began, self.emitted = time.monotonic(), 0
        #: Sentences that were acked, and the seconds of all of them, from when they were due.
        self.count, self.seconds = 0, 0.0
        self.metric = context.register_metric("due", AssignableMetric((0, 0.0)), _METRIC_SECS)

    def next_tuple(self):
        """Emit one, if it is time."""
        due = self.began + self.emitted / self.rate
        if due <= time.monotonic():
            self.collector.emit((self.items[self.emitted % len(self.items)],), message_id=due)
            self.emitted += 1

    def ack(self, message_id):
        """It is done."""
        self.count += 1
        self.seconds += time.monotonic() - message_id
        self.metric.set_value((self.count, self.seconds))

    def declare_output_fields(self, declarer):
        """One field."""
        declarer.declare(Fields("item"))


def build(rate: float, workers: int) -> Topology:
    """One spout task, as many of the bolts as workers."""
    builder = TopologyBuilder()
    builder.set_spout("spout", Steady(rate), 1)
    builder.set_bolt("split", Split(), workers).shuffle_grouping("spout")
    builder.set_bolt("count", Count(), workers).fields_grouping("split", Fields("item"))
    return builder.create_topology("latency")


def measure(running: RunningTopology, seconds: float, warmup: float) -> dict[str, Any]:
    """The figures of one running topology; milliseconds."""
    deadline = time.monotonic() + _FIRST_ACK_SECS
    while not running.statistics().components["spout"].acked:
        if running.wait(0.05) or time.monotonic() > deadline:
            raise running.error or TimeoutError(f"no sentence was acked within {_FIRST_ACK_SECS:g} s")
    time.sleep(warmup)
    meter = CpuMeter()
    meter.read()
    began, cpu, machine, first = time.monotonic(), meter.read(), machine_busy(), running.statistics()
    time.sleep(seconds)
    last, wall = running.statistics(), time.monotonic() - began
    used = sum(meter.read().values()) - sum(cpu.values())
    spouts = [one.components["spout"] for one in (first, last)]
    complete = spouts[1].histogram.since(spouts[0].histogram).summary()
    batches = last.batches - first.batches
    return {
        "sentences_per_s": round((spouts[1].acked - spouts[0].acked) / wall, 1),
        "latency_ms": complete.mean,
        "latency_p50_ms": complete.p50,
        "latency_p99_ms": complete.p99,
        "due_latency_ms": _due_ms(first, last),
        "batch_ms": round(wall / batches * 1000, 2) if batches else None,
        "cores": round(used / wall, 3),
        "other_cpu_s": round(max(0.0, machine_busy() - machine - used), 2),
        "phases_ms": {name: phase.mean for name, phase in last.phases.items()},
    }


def _due_ms(first: TopologyStatistics, last: TopologyStatistics) -> float | None:
    (count, seconds), (more, longer) = (
        next(iter(point.value for point in one.components["spout"].metrics.get("due", {}).values()), (0, 0.0))
        for one in (first, last)
    )
    return round((longer - seconds) / (more - count) * 1000, 3) if more > count else None


def run(
    engine: str, seconds: float, warmup: float, rate: float = 100, conf: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Measure one engine once: complete latency as ``latency_ms``; on Spark also ``bare_batch_ms``, and the ratio of the two."""
    told: dict[str, Any] = {"case": "latency", "engine": f"stormspark-{engine}", "rate": rate}
    if engine == "local":
        with running_on("local", build(rate, 1), conf or {}) as running:
            return {**told, "workers": 1, **measure(running, seconds, warmup)}
    from stormspark.plan import plan_topology
    from stormspark.spark import local_session, submit

    plan = plan_topology(build(rate, 2), {"topology.workers": 2, **(conf or {})})
    spark = local_session(2, conf)
    batches = max(5, int(seconds / 2))
    idle_batch.run_bare(spark, plan, "noop", 0, batches)  # the JVM's own warm-up
    before = idle_batch.run_bare(spark, plan, "noop", 5, batches)
    running = submit(plan, spark)
    try:
        figures = measure(running, seconds, warmup)
    finally:
        running.stop()
    bare = statistics.mean([before, idle_batch.run_bare(spark, plan, "noop", 5, batches)])
    due = figures["due_latency_ms"]
    return {
        **told,
        "workers": 2,
        **figures,
        "bare_batch_ms": round(bare, 1),
        "ratio": round(figures["latency_ms"] / bare, 3),
        "due_ratio": None if due is None else round(due / bare, 3),
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warmup", type=float, default=15)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.rounds):
        print(json.dumps(run(options.engine, options.seconds, options.warmup, options.rate)), flush=True)


if __name__ == "__main__":
    main()
