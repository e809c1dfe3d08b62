"""How long a topology on Spark pauses while it is rebalanced, with much keyed state.

    python -m benchmarks.rebalance [--keys 1000000] [--rounds 6] [--tasks 6]

An exactly-once topology counts by key, at full speed. Once it has so many keys, it is rebalanced from 2 to 3 workers, back to 2,
and so on. Every second time the bolt gets one more task, too, so that all of its keys are dealt out anew. The pause is the time
in which no tuple is executed: from the last batch of the old workers to the first one of the new workers. Prints one JSON line
for each rebalance, and one with least, median and most.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormspark import Fields, OutputCollector, Spout, Topology, TopologyBuilder, TopologyContext, Tuple
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.spark import SparkTopology, local_session, submit

_LOOK_SECS = 0.02


class Keys(Spout):
    """Emits 0, 1, 2 ... up to a number of keys, and again."""

    def __init__(self, keys: int) -> None:
        self.keys, self.next = keys, 0

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    def next_tuple(self) -> None:
        """Emit a hundred keys."""
        for _ in range(100):
            self.collector.emit((self.next,), message_id=self.next)
            self.next = (self.next + 1) % self.keys

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare the key."""
        declarer.declare(Fields("key"))


class Count(StatefulBolt[KeyValueState[int, int]]):
    """Counts by key."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keep the collector."""
        self.collector = collector

    def init_state(self, state: KeyValueState[int, int]) -> None:
        """Keep the state."""
        self.state = state

    def execute(self, tup: Tuple) -> None:
        """Count the key."""
        key = tup["key"]
        self.state[key] = self.state.get(key, 0) + 1
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        """Emits nothing."""


def build(keys: int, tasks: int) -> Topology:
    """Return the topology."""
    builder = TopologyBuilder()
    builder.set_spout("keys", Keys(keys))
    count = builder.set_bolt("count", Count(), 4)
    count.set_num_tasks(tasks).fields_grouping("keys", Fields("key"))
    count.add_configurations({"stormspark.state.keys": "grouping"})
    return builder.create_topology("rebalance")


def executed(running: SparkTopology) -> int:
    """Return how many tuples the bolt has executed."""
    return running.statistics().components["count"].executed


def rebalance(running: SparkTopology, workers: int, tasks: int) -> dict[str, Any]:
    """Rebalance the topology, and return how long it paused."""
    asked = {"count": tasks} if tasks > len(running.plan.components["count"].tasks) else {}
    before, since, pause = executed(running), time.monotonic(), 0.0
    began = since
    laid_out = threading.Thread(
        target=running.rebalance, kwargs={"workers": workers, "executors": {"count": 4, **asked}}
    )
    laid_out.start()
    while laid_out.is_alive() or running.plan.workers != workers or executed(running) == before:
        now = executed(running)
        if now != before:
            pause = max(pause, time.monotonic() - since)
            before, since = now, time.monotonic()
        time.sleep(_LOOK_SECS)
    laid_out.join()
    pause = max(pause, time.monotonic() - since)
    return {
        "case": "rebalance",
        "workers": workers,
        "tasks": len(running.plan.components["count"].tasks),
        "pause_s": round(pause, 2),
        "command_s": round(time.monotonic() - began, 2),
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--tasks", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    pauses = []
    with tempfile.TemporaryDirectory() as folder:
        running = submit(
            build(options.keys, options.tasks),
            local_session(3),  # a slot for each worker, so that all start side by side
            conf={"topology.workers": 2},
            checkpoint=Path(folder, "checkpoint"),
        )
        with running:
            while executed(running) < options.keys:
                time.sleep(0.2)
                if running.wait(0):
                    raise running.error or RuntimeError("it has ended")
            for round_ in range(options.rounds):
                before = executed(running)
                while executed(running) < before + 50_000:
                    time.sleep(0.1)
                figures = rebalance(running, 3 - round_ % 2, options.tasks + round_ // 2)
                pauses.append(figures["pause_s"])
                print(json.dumps({**figures, "keys": options.keys}), flush=True)
    summary = {"least": min(pauses), "median": statistics.median(pauses), "most": max(pauses)}
    print(json.dumps({"case": "rebalance", "keys": options.keys, "pause_s": summary}), flush=True)


if __name__ == "__main__":
    main()
