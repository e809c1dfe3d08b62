"""Builds the Spark query of a physical plan: the chain of supersteps, without the code that drives it.

    one tick row per worker, rows of sources -> superstep 0 -> exchange -> superstep 1 -> ... -> reports -> foreachBatch

Superstep k is a `mapInArrow` stage with the forwarder. An exchange puts the frames for worker w into partition w. The chain never
splits, because Spark would compute the part before a split twice.

A batch of several rounds runs its further rounds through the same supersteps, as Spark jobs of their own (`round_query`).
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

#: A frame may be megabytes large, so record batches are limited by bytes, too. With Spark's default limit of 10,000 rows alone, a
#: record batch could outgrow its 32-bit offsets.
_BATCH_ROWS = 256
_BATCH_BYTES = 16 * 1024 * 1024


def session_for_query(spark: SparkSession) -> SparkSession:
    """Make a new session for a data query, with the Spark context of the user's session. The user's session stays as it is."""
    session = spark.newSession()
    for key, value in {
        # Adaptive execution would plan each micro-batch stage by stage. That effort is wasted, because the exchanges are fixed.
        "spark.sql.adaptive.enabled": False,
        "spark.sql.adaptive.streaming.stateless.enabled": False,
        "spark.sql.execution.arrow.maxRecordsPerBatch": _BATCH_ROWS,
        "spark.sql.execution.arrow.maxBytesPerBatch": _BATCH_BYTES,
        # The workers read record batches with 32-bit offsets.
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
    """Make the streaming DataFrame that runs a topology. Each of its micro-batches is one batch of the topology.

    Its rows are `FrameKind.REPORT` frames. ``sources`` are the streams of the plan's source spouts. Superstep 0 has the
    partitions of these streams and those of the tick rows.
    """
    if available_now:
        ticks = endless_ticks(session, plan.workers)
    else:
        # One row per worker and batch, each row in a partition of its own. A row's time follows from the batch's number, and not
        # from the clock.
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
    """Make the DataFrame of one more round of a batch: the same chain, but static, and with only ticks as its input.

    To run it a second time, plan it anew with ``.select("*")``, because Spark runs the exchanges of a plan only once.
    """
    ticks = session.range(0, plan.workers, 1, plan.workers)
    return _to_the_reports(ticks.mapInArrow(forwarder(attempt, 0, ticks=True), FRAME_DDL), plan, attempt)


def _to_the_reports(frames: DataFrame, plan: PhysicalPlan, attempt: Attempt) -> DataFrame:
    """Append all further supersteps, from number 1 on, to the output of superstep 0."""
    for superstep in range(1, plan.last_superstep + 1):
        # The reports of the last superstep need no exchange, because the driver collects them from any partition.
        frames = frames.repartitionById(plan.workers, "target").mapInArrow(
            forwarder(attempt, superstep), FRAME_DDL
        )
    return frames
