"""What Spark's listeners hear of a batch: its numbers, in the progress of the topology's query.

Spark computes such metrics (``DataFrame.observe``) while the rows of a batch pass. Here the rows are the workers' reports of the
first round only. The numbers of the whole batch are known after its last round, and only in the driver. So the plan has a metric
that no report changes. At the end of the batch the driver adds one row to this metric's accumulator. The row is a frame of the
kind `_COUNTS` with the numbers as JSON. Spark reads the accumulator after that, when it makes the batch's progress.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, fields
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.streaming.query import StreamingQuery

from stormspark.driver.batch_counts import BatchCounts
from stormspark.wire.frames import FRAME_SCHEMA

__all__ = ["OBSERVED", "ObservedCounts", "observed"]

_log = logging.getLogger(__name__)

#: The key in ``event.progress.observedMetrics``.
OBSERVED = "stormspark"
#: The kind of the driver's row, which no frame has.
_COUNTS = -1
_KIND, _PAYLOAD = FRAME_SCHEMA.get_field_index("kind"), FRAME_SCHEMA.get_field_index("payload")
#: How far below the top of a batch's plan the metric may be.
_DEPTH = 5


def observed(frames: DataFrame) -> DataFrame:
    """Add the metric to a plan whose rows are frames."""
    is_counts = functions.col("kind") == _COUNTS
    counts = functions.max(functions.when(is_counts, functions.col("payload"))).cast("string")
    return frames.observe(
        OBSERVED, *(_column(counts, name) for name in (f.name for f in fields(BatchCounts)))
    )


def _column(counts: Column, name: str) -> Column:
    value = functions.get_json_object(counts, f"$.{name}")
    if name == "complete_latency_ms":
        return value.cast("double").alias(name)
    return functions.coalesce(value.cast("bigint"), functions.lit(0)).alias(name)


class ObservedCounts:
    """Gives the numbers of each batch to Spark. If Spark does not take them, they stay 0, and a log line says so."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        jvm = gateway.jvm
        self._accumulators = jvm.org.apache.spark.util.AccumulatorContext
        self._row = jvm.org.apache.spark.sql.catalyst.expressions.GenericInternalRow
        self._object = jvm.java.lang.Object
        self._fails = False

    def put(self, query: StreamingQuery, counts: BatchCounts) -> None:
        """Put the numbers of the running batch into its progress. Call this on the query's thread, at the end of the batch."""
        if self._fails:
            return
        try:
            row = self._gateway.new_array(self._object, len(FRAME_SCHEMA))
            row[_KIND], row[_PAYLOAD] = _COUNTS, json.dumps(asdict(counts)).encode()
            self._accumulators.get(_accumulator_of(query)).get().add(self._row(row))
        except (Py4JError, LookupError) as error:
            self._fails = True
            _log.warning("listeners don't hear how many tuples a batch had: %s", str(error)[:300])


def _accumulator_of(query: StreamingQuery) -> int:
    """Return the id of the accumulator in the plan of the running batch."""
    plan = query._jsq.streamingQuery().lastExecution().executedPlan()
    for _ in range(_DEPTH):
        if plan.nodeName() == "CollectMetrics":
            return int(plan.accumulatorId())
        plan = plan.children().head()
    msg = f"the plan of the batch has no metrics among its first {_DEPTH} nodes"
    raise LookupError(msg)
