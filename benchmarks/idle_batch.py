"""What a micro-batch costs that has nothing to do, against a bare Spark query of the same shape.

    python -m benchmarks.idle_batch [--rounds 5] [--batches 30] [--workers 2]

The topology has three components and a spout that never emits: with two workers that is four Python stages
with three exchanges between them. The bare query has as many, each `mapInArrow(identity)`, over the same
source and to Spark's ``noop`` sink, which is the cheapest there is; ``--sink foreachBatch`` collects its rows
in a foreachBatch, as the topology does. Both run in one session, in turn, because the time of either says
nothing on a shared machine: the ratio of the two medians of a round does. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.api import Topology
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.spark import local_session, submit
from stormspark.spark.query_session import own_session
from stormspark.wire import FRAME_DDL, Frame, FrameKind, frames_to_batch


class Silent(Spout):
    """Never emits."""

    def open(self, conf, context, collector):
        """Nothing to prepare."""

    def next_tuple(self):
        """Nothing to say."""

    def declare_output_fields(self, declarer):
        """One field."""
        declarer.declare(Fields("value"))


class Pass(BasicBolt):
    """Passes on what it gets."""

    def execute(self, tup, collector):
        """Pass it on."""
        collector.emit(tup.values)

    def declare_output_fields(self, declarer):
        """One field."""
        declarer.declare(Fields("value"))


def planned(workers: int) -> PhysicalPlan:
    """Without pauses: Spark counts those of an idle topology as time of its batch."""
    return plan_topology(build(), {"topology.workers": workers, "stormspark.idle.pause.ms": 0})


def build() -> Topology:
    """Spout, bolt, bolt; both edges can cross workers."""
    builder = TopologyBuilder()
    builder.set_spout("silent", Silent(), parallelism=2)
    builder.set_bolt("pass", Pass(), parallelism=2).shuffle_grouping("silent")
    builder.set_bolt("end", Pass(), parallelism=4).fields_grouping("pass", Fields("value"))
    return builder.create_topology("idle")


def bare_query(session: SparkSession, plan: PhysicalPlan) -> DataFrame:
    """As many stages and exchanges as the topology's query has, and nothing in them."""
    # Made here, so that they are pickled whole: Spark's Python processes need not find this module.
    frame = frames_to_batch([Frame(0, FrameKind.REPORT, 0, 0, 1, b"")])

    def first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield frame

    def identity(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    source = session.readStream.format("rate-micro-batch")
    frames = source.option("rowsPerBatch", plan.workers).option("numPartitions", plan.workers).load()
    frames = frames.mapInArrow(first, FRAME_DDL)
    for _ in range(plan.last_superstep):
        frames = frames.repartitionById(plan.workers, "target").mapInArrow(identity, FRAME_DDL)
    return frames


def _collect(frames: DataFrame, batch: int) -> None:
    frames.collect()


def run_bare(spark: SparkSession, plan: PhysicalPlan, sink: str, warm_up: int, batches: int) -> float:
    """Median milliseconds of a batch of the bare query."""
    session = own_session(spark)
    folder = tempfile.mkdtemp(prefix="idle-batch-")
    writer = bare_query(session, plan).writeStream.option("checkpointLocation", folder)
    writer = writer.foreachBatch(_collect) if sink == "foreachBatch" else writer.format("noop")
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        return _median(query, warm_up, batches)
    finally:
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)


def run_topology(spark: SparkSession, plan: PhysicalPlan, warm_up: int, batches: int) -> float:
    """Median milliseconds of a batch of the topology."""
    running = submit(plan, spark)
    try:
        while running.query is None:
            time.sleep(0.05)
        return _median(running.query, warm_up, batches)
    finally:
        running.stop()


def _median(query: Any, warm_up: int, batches: int) -> float:
    """The median of Spark's own measure, trigger to commit, so that both are measured alike."""
    times: dict[int, float] = {}
    first = None
    while first is None or len(times) < batches:
        if not query.isActive:
            msg = f"the query ended: {query.exception()}"
            raise SystemExit(msg)
        time.sleep(2)
        for progress in query.recentProgress:
            first = progress["batchId"] if first is None else first
            if progress["batchId"] >= first + warm_up:
                times[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
    return statistics.median(times.values())


def main() -> None:
    """Run both in turn and print the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=30, help="measured batches a round and query")
    parser.add_argument("--warm-up", type=int, default=10, help="batches before those")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sink", choices=["noop", "foreachBatch"], default="noop", help="of the bare query")
    options = parser.parse_args()
    plan = planned(options.workers)
    spark = local_session(options.workers)
    bare, ours = [], []
    run_bare(spark, plan, options.sink, 0, options.batches)  # the JVM's own warm-up
    for _ in range(options.rounds):
        bare.append(run_bare(spark, plan, options.sink, options.warm_up, options.batches))
        ours.append(run_topology(spark, plan, options.warm_up, options.batches))
    ratios = sorted(mine / theirs for mine, theirs in zip(ours, bare, strict=True))
    figures = {
        "case": "idle_batch",
        "workers": options.workers,
        "stages": plan.last_superstep + 1,
        "sink": options.sink,
        "rounds": options.rounds,
        "ratio": {"min": ratios[0], "median": statistics.median(ratios), "max": ratios[-1]},
        "topology_ms": [round(value) for value in ours],
        "bare_ms": [round(value) for value in bare],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
