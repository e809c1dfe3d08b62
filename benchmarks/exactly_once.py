"""What a batch that is a transaction costs, against one that is not.

    python -m benchmarks.exactly_once [--rounds 5] [--seconds 15] [--keys 1000]

One topology over two workers: a spout, and a bolt that counts by ``--keys`` keys. Measured in turn in one session: with its
counts in memory and at-least-once, and as a `StatefulBolt` whose changes are committed batch by batch. With nothing to do
(milliseconds of a batch), and at full speed (executed tuples a second, and a second of CPU of driver and workers, which other
work on the machine hurts least). Prints a JSON line for each run, then minimum, median and maximum of exactly-once /
at-least-once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cpu import CpuMeter
from stormspark import Bolt, Fields, OutputCollector, OutputFieldsDeclarer, Spout, TopologyBuilder, Tuple
from stormspark.api import Topology
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.spark import local_session, submit

__all__ = ["build", "main"]

_FIRST_BATCHES = 5


class Numbers(Spout):
    """0, 1, 2 ... by ``keys``, as fast as it is asked; or nothing at all."""

    def __init__(self, keys: int) -> None:
        self.keys = keys

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Begin at 0."""
        self.collector, self.n = collector, 0

    def next_tuple(self) -> None:
        """Emit one."""
        if self.keys:
            self.n += 1
            self.collector.emit((self.n % self.keys,), message_id=self.n)

    def fail(self, message_id: Any) -> None:
        """Nothing fails here."""
        raise AssertionError(message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """The key."""
        declarer.declare(Fields("key"))


class InMemory(Bolt):
    """Counts in a dict."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: OutputCollector) -> None:
        """Begin with nothing."""
        self.collector = collector
        self.counts: Counter[int] = Counter()

    def execute(self, tup: Tuple) -> None:
        """Count."""
        self.counts[tup.values[0]] += 1
        self.collector.ack(tup)


class InState(StatefulBolt[KeyValueState[int, int]]):
    """Counts in its state."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: OutputCollector) -> None:
        """The collector is all."""
        self.collector = collector

    def init_state(self, state: KeyValueState[int, int]) -> None:
        """Counts go here."""
        self.counts = state

    def execute(self, tup: Tuple) -> None:
        """Count."""
        key = tup.values[0]
        self.counts.put(key, self.counts.get(key, 0) + 1)
        self.collector.ack(tup)


def build(keys: int, exactly_once: bool) -> Topology:
    """Spout, counting bolt; ``keys`` 0: nothing to do."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(keys), 2)
    bolt = InState() if exactly_once else InMemory()
    builder.set_bolt("count", bolt, 2).fields_grouping("numbers", Fields("key"))
    return builder.create_topology("cost", {"topology.workers": 2})


def run(spark: Any, keys: int, exactly_once: bool, seconds: float) -> dict[str, float]:
    """One run, after some batches that are not counted."""
    folder = Path(tempfile.mkdtemp(prefix="exactly-once-"))
    try:
        running = submit(build(keys, exactly_once), spark, checkpoint=folder)
        while running.statistics().batches < _FIRST_BATCHES:
            if running.wait(0.1):
                raise running.error or RuntimeError("the topology ended")
        before, meter = running.statistics(), CpuMeter("cost")
        cpu = sum(meter.read().values())
        if running.wait(seconds):
            raise running.error or RuntimeError("the topology ended")
        after, cpu = running.statistics(), sum(meter.read().values()) - cpu
        running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    took = after.seconds - before.seconds
    executed = after.components["count"].executed - before.components["count"].executed
    return {
        "batch_ms": round(took * 1000 / max(1, after.batches - before.batches), 1),
        "per_sec": round(executed / took),
        "per_cpu_sec": round(executed / cpu),
    }


def main() -> None:
    """Measure in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--keys", type=int, default=1000)
    options = parser.parse_args()
    spark = local_session(2, {})
    ratios: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for name, keys, figures in (
            ("idle", 0, ["batch_ms"]),
            ("busy", options.keys, ["per_sec", "per_cpu_sec"]),
        ):
            pair = [run(spark, keys, exactly_once, options.seconds) for exactly_once in (False, True)]
            print(json.dumps({"what": name, "at_least_once": pair[0], "exactly_once": pair[1]}), flush=True)
            for figure in figures:
                ratios.setdefault(f"{name} {figure}", []).append(pair[1][figure] / pair[0][figure])
    for name, found in ratios.items():
        low, middle, high = min(found), statistics.median(found), max(found)
        print(f"{name}: exactly once / at least once {low:.2f} / {middle:.2f} / {high:.2f}")
    spark.stop()


if __name__ == "__main__":
    main()
