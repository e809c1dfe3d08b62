"""From a plan to a Spark query: the chain of supersteps, without what drives it.

    a tick row a worker, rows of sources -> superstep 0 -> exchange -> superstep 1 -> ... -> the last's reports -> foreachBatch

Superstep k is a `mapInArrow` stage with the forwarder; an exchange puts the frames for worker w in partition
w. One line, never split and joined: Spark computes a streaming plan that is split twice.

A batch that is prolonged has further rounds of the same supersteps, as jobs of their own (`round_query`).
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.forwarder import Attempt, forwarder, source_forwarder
from stormspark.spark.sources import SourceStream
from stormspark.spark.ticks import endless_ticks
from stormspark.wire.frames import FRAME_DDL

__all__ = ["data_query", "round_query", "session_for_query"]

#: Frames are up to megabytes each, so Arrow batches are cut by bytes; Spark's default of 10,000 rows alone
#: would overflow one.
_BATCH_ROWS = 256
_BATCH_BYTES = 16 * 1024 * 1024


def session_for_query(spark: SparkSession) -> SparkSession:
    """A child of the user's session, with the same Spark context, set up for a data query; the user's own is
    not touched.
    """
    session = spark.newSession()
    for key, value in {
        # Adaptive execution would plan each micro-batch stage by stage, for nothing: the exchanges are fixed.
        "spark.sql.adaptive.enabled": False,
        "spark.sql.adaptive.streaming.stateless.enabled": False,
        "spark.sql.execution.arrow.maxRecordsPerBatch": _BATCH_ROWS,
        "spark.sql.execution.arrow.maxBytesPerBatch": _BATCH_BYTES,
        # The workers read batches with 32-bit offsets.
        "spark.sql.execution.arrow.useLargeVarTypes": False,
        "spark.sql.streaming.noDataMicroBatches.enabled": False,
    }.items():
        session.conf.set(key, value)
    return session


def data_query(
    session: SparkSession,
    plan: PhysicalPlan,
    attempt: Attempt,
    sources: Iterable[SourceStream] = (),
    *,
    available_now: bool = False,
) -> DataFrame:
    """The streaming DataFrame whose every batch is one batch of the topology; its rows are `FrameKind.REPORT`
    frames.

    ``sources`` are those of the plan's source spouts: their partitions are superstep 0's, beside the tick rows'.
    """
    if available_now:
        ticks = endless_ticks(session, plan.workers)
    else:
        # One row a worker a batch, row by row its own partition; its time is the batch's number, not the clock's.
        ticks = (
            session.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", plan.workers)
            .option("numPartitions", plan.workers)
            .load()
        )
    frames = ticks.mapInArrow(forwarder(attempt, 0, ticks=True), FRAME_DDL)
    for source in sources:
        forward = source_forwarder(attempt, source.tasks, source.partition_column)
        frames = frames.union(source.rows.mapInArrow(forward, FRAME_DDL))
    return _to_the_reports(frames, plan, attempt)


def round_query(session: SparkSession, plan: PhysicalPlan, attempt: Attempt) -> DataFrame:
    """One more round of a batch, with ticks alone: the same chain, but static.

    Whoever wants to run it a second time has to have it planned anew (``.select("*")``), since an exchange that has run is
    not run again.
    """
    ticks = session.range(0, plan.workers, 1, plan.workers)
    return _to_the_reports(ticks.mapInArrow(forwarder(attempt, 0, ticks=True), FRAME_DDL), plan, attempt)


def _to_the_reports(frames: DataFrame, plan: PhysicalPlan, attempt: Attempt) -> DataFrame:
    """Supersteps 1 to the last one, from what superstep 0 gives."""
    for superstep in range(1, plan.last_superstep + 1):
        # The last reports are not exchanged: whoever collects them does not mind where they lie.
        frames = frames.repartitionById(plan.workers, "target").mapInArrow(
            forwarder(attempt, superstep), FRAME_DDL
        )
    return frames
