"""What the durable acker costs: rows of a source that a bolt holds far beyond their batch.

    python -m benchmarks.durable_acker [--open 1000000] [--rows 50000] [--rounds 3]

A source gives ``--rows`` rows a batch, as fast as batches follow each other; a bolt holds the last ``--open``
of them and acks what is older, so at full height each batch opens and closes ``--rows`` records among
``--open`` that are open. Measured in turn in one session, with the durable acker and without
(``stormspark.acker.durable: false``): acked rows a second at full height, and what the acker query does with
the changes. Then the driver is killed and the next one finds what was open. Prints a JSON line for each
round.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

from stormspark import Bolt, TopologyBuilder
from stormspark.api import SourceSpout, Topology
from stormspark.spark import SparkTopology, local_session, submit
from tests.spark_jars import connector_conf

_SHARE = "benchmark.held.by.a.task"


class Numbers(SourceSpout):
    """Rows of a number and a hundred bytes, so many a batch."""

    def __init__(self, rows: int) -> None:
        super().__init__(["n", "payload"])
        self.rows = rows

    def stream(self, spark: Any) -> Any:
        """Spark's rate source, by batches."""
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows)
        return (
            source.option("numPartitions", 2).load().selectExpr("value AS n", "repeat('x', 100) AS payload")
        )


class Hold(Bolt):
    """Holds the last so many tuples, and acks what is older."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Hold nothing yet."""
        self.collector, self.held, self.most = collector, deque(), conf[_SHARE]

    def execute(self, tup: Any) -> None:
        """Hold it."""
        self.held.append(tup)
        if len(self.held) > self.most:
            self.collector.ack(self.held.popleft())

    def declare_output_fields(self, declarer: Any) -> None:
        """No streams."""


def build(rows: int, held: int) -> Topology:
    """Source, holding bolt."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(rows), parallelism=2)
    builder.set_bolt("hold", Hold(), 2).shuffle_grouping("numbers")
    conf = {
        "topology.workers": 2,
        "topology.message.timeout.secs": 600,
        "stormspark.queue.high.mark.tuples": 10_000_000,
        _SHARE: held // 2,
    }
    return builder.create_topology("held", conf)


def climb(running: SparkTopology, held: int) -> float:
    """Wait until so many rows are open; the seconds it took."""
    began = time.monotonic()
    while running.statistics().components["numbers"].acked == 0:
        if running.wait(0.2):
            raise running.error or RuntimeError("the topology ended")
    return time.monotonic() - began


def measure(running: SparkTopology, seconds: float) -> dict[str, float]:
    """Rows acked a second, and what a batch takes."""
    before, began = running.statistics(), time.monotonic()
    if running.wait(seconds):
        raise running.error or RuntimeError("the topology ended")
    after, took = running.statistics(), time.monotonic() - began
    acked = after.components["numbers"].acked - before.components["numbers"].acked
    return {
        "acked_per_sec": round(acked / took),
        "batch_secs": round(took / max(1, after.batches - before.batches), 3),
        "open": after.components["numbers"].pending,
    }


def one(spark: Any, rows: int, held: int, seconds: float, durable: bool) -> dict[str, Any]:
    """One run: up to full height, some seconds there; with the acker, a driver that is killed, and the next
    one.
    """
    folder = Path(tempfile.mkdtemp(prefix="durable-acker-"))
    topology = build(rows, held)
    conf = {"stormspark.acker.durable": durable}
    try:
        running = submit(topology, spark, checkpoint=folder / "checkpoint", conf=conf)
        result: dict[str, Any] = {"durable": durable, "climb_secs": round(climb(running, held), 1)}
        result |= measure(running, seconds)
        if running.acker is not None and running.acker.query is not None:
            progress = [p for p in running.acker.query.recentProgress if p["numInputRows"]][1:]
            late = [p["stateOperators"][0] for p in progress]
            result["acker_rows_per_sec"] = round(
                statistics.median(p["processedRowsPerSecond"] for p in progress)
            )
            result["acker_batch_secs"] = round(
                statistics.median(p["batchDuration"] for p in progress) / 1000, 2
            )
            result["dropped_by_watermark"] = sum(state["numRowsDroppedByWatermark"] for state in late)
        running.kill()
        if durable:
            began = time.monotonic()
            running = submit(topology, spark, checkpoint=folder / "checkpoint", conf=conf)
            while running.statistics().components["numbers"].emitted < held:
                if running.wait(0.2):
                    raise running.error or RuntimeError("the topology ended")
            result["replayed_secs"] = round(time.monotonic() - began, 1)
            running.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def main() -> None:
    """Measure in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--open", type=int, default=1_000_000, help="rows that are open at full height")
    parser.add_argument("--rows", type=int, default=50_000, help="rows a batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="at full height")
    asked = parser.parse_args()
    spark = local_session(3, connector_conf() | {"spark.driver.memory": "3g"})
    for number in range(asked.rounds):
        for durable in (True, False):
            figures = one(spark, asked.rows, asked.open, asked.seconds, durable)
            print(json.dumps({"round": number, **figures}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
