"""Builds the Spark query of a physical plan: the chain of supersteps, without the code that drives it.

    one tick row per partition, rows of sources -> superstep 0 -> exchange -> superstep 1 -> ... -> reports -> foreachBatch

Superstep k is a `mapInArrow` stage with the forwarder. An exchange puts the frames for worker w into partition w, or, if
workers share partitions, into partition w % partitions. The chain never splits, because Spark would compute the part before a
split twice.

A batch of several rounds runs its further rounds through the same supersteps, as Spark jobs of their own (`round_query`).
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession, functions

from stormspark.plan.explain import superstep_names
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.forwarder import Attempt, forwarder, source_forwarder
from stormspark.spark.observed import observed
from stormspark.spark.sources import SourceStream
from stormspark.spark.ticks import endless_ticks
from stormspark.spark.versions import TELLS_STARTS, repartition_by_id
from stormspark.wire.frames import FRAME_DDL

__all__ = ["data_query", "round_description", "round_query"]


def data_query(
    session: SparkSession,
    plan: PhysicalPlan,
    attempt: Attempt,
    sources: Iterable[SourceStream] = (),
    *,
    available_now: bool = False,
) -> DataFrame:
    """Make the streaming DataFrame that runs a topology. Each of its micro-batches is one batch of the topology.

    Its rows are `FrameKind.REPORT` frames. Spark's progress of a batch has room for the batch's numbers (`observed`). ``sources``
    are the streams of the plan's source spouts. Superstep 0 has the partitions of these streams and those of the tick rows.
    """
    if available_now and TELLS_STARTS:
        ticks = endless_ticks(session, plan.partitions)
    else:
        # One row per partition and batch. A row's time follows from the batch's number, and not from the clock.
        ticks = (
            session.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", plan.partitions)
            .option("numPartitions", plan.partitions)
            .load()
        )
    names = superstep_names(plan)
    frames = ticks.mapInArrow(forwarder(attempt, 0, name=names[0], ticks=True), FRAME_DDL)
    for source in sources:
        forward = source_forwarder(attempt, source.tasks, source.partition_column, name=source.spout)
        frames = frames.union(source.rows.mapInArrow(forward, FRAME_DDL))
    return observed(_to_the_reports(frames, plan, attempt, names))


def round_query(session: SparkSession, plan: PhysicalPlan, attempt: Attempt) -> DataFrame:
    """Make the DataFrame of one more round of a batch: the same chain, but static, and with only ticks as its input.

    To run it a second time, plan it anew with ``.select("*")``, because Spark runs the exchanges of a plan only once.
    """
    ticks = session.range(0, plan.partitions, 1, plan.partitions)
    names = superstep_names(plan)
    first = ticks.mapInArrow(forwarder(attempt, 0, name=names[0], ticks=True), FRAME_DDL)
    return _to_the_reports(first, plan, attempt, names)


def round_description(topology: str, batch: int, round_number: int, supersteps: Sequence[str]) -> str:
    """Return the description of a round's job in Spark's UI. ``supersteps`` are the names of the supersteps.

    Spark's UI shows ``<br/>`` as a new line.

    >>> round_description("words", 7, 1, ["lines -> split", "count, acks"])
    'words: batch 7, round 1<br/>superstep 0: lines -&gt; split<br/>superstep 1: count, acks'
    """
    lines = [f"{topology}: batch {batch}" + (f", round {round_number}" if round_number else "")]
    lines += [f"superstep {number}: {name}" for number, name in enumerate(supersteps)]
    return "<br/>".join(html.escape(line, quote=False) for line in lines)


def _to_the_reports(
    frames: DataFrame, plan: PhysicalPlan, attempt: Attempt, names: Sequence[str]
) -> DataFrame:
    """Append all further supersteps, from number 1 on, to the output of superstep 0."""
    # The frames for worker w go to partition w % partitions (`Attempt.workers_of`).
    partition = "target" if plan.partitions == plan.workers else functions.col("target") % plan.partitions
    for superstep in range(1, plan.last_superstep + 1):
        # The reports of the last superstep need no exchange, because the driver collects them from any partition.
        frames = repartition_by_id(frames, plan.partitions, partition).mapInArrow(
            forwarder(attempt, superstep, name=names[superstep]), FRAME_DDL
        )
    return frames
