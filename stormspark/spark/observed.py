"""What Spark's listeners hear of a batch: its numbers, in the progress of the topology's query.

Spark computes such metrics (``DataFrame.observe``) while the rows of a batch pass. Here the rows are the workers' reports of the
first round only. The numbers of the whole batch are known after its last round, and only in the driver. So the metrics in the
plan are constants, for which Spark's tasks compute nothing. At the end of the batch the driver puts an accumulator with the
numbers, as other constants, in the place of the plan's own. Spark reads it after that, when it makes the batch's progress.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery

from stormspark.driver.batch_counts import BatchCounts, Totals

__all__ = ["OBSERVED", "ObservedCounts", "observed"]

_log = logging.getLogger(__name__)

#: The key in ``event.progress.observedMetrics``.
OBSERVED = "stormspark"
#: The numbers of a batch in which nothing happened. The plan has them already.
_NOTHING = Totals().since(Totals())
#: How far below the top of a batch's plan the metrics may be.
_DEPTH = 5
#: The private field of Spark's `CollectMetricsExec` that holds the metrics.
_ACCUMULATOR = "accumulator"


def observed(frames: DataFrame) -> DataFrame:
    """Add the metrics to a plan whose rows are frames."""
    return frames.observe(OBSERVED, *map(functions.expr, _constants(_NOTHING)))


def _constants(counts: BatchCounts) -> Iterator[str]:
    """Yield each number as an SQL expression."""
    for name, value in asdict(counts).items():
        if value is None:
            yield f"CAST(NULL AS DOUBLE) AS {name}"
        else:
            yield f"{value!r}{'D' if isinstance(value, float) else 'L'} AS {name}"


class ObservedCounts:
    """Gives the numbers of each batch to Spark. If Spark does not take them, they stay 0, and a log line says so."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session.sparkContext._jvm
        # Not the session's own, which asks Delta's parser first.
        self._parser = jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser()
        self._accumulator = jvm.org.apache.spark.sql.execution.AggregatingAccumulator
        #: The field in which Spark has the accumulator.
        self._field: Any = None
        self._fails = False

    def put(self, query: StreamingQuery, counts: BatchCounts) -> None:
        """Put the numbers of the running batch into its progress. Call this on the query's thread, at the end of the batch."""
        if self._fails or counts == _NOTHING:
            return
        try:
            metrics = _metrics_of(query)
            numbers = self._parser.parsePlan(f"SELECT {', '.join(_constants(counts))}").projectList()
            if self._field is None:
                self._field = metrics.getClass().getDeclaredField(_ACCUMULATOR)
                self._field.setAccessible(True)
            self._field.set(metrics, self._accumulator.apply(numbers, metrics.output()))
        except (Py4JError, LookupError) as error:
            self._fails = True
            _log.warning("listeners don't hear how many tuples a batch had: %s", str(error)[:300])


def _metrics_of(query: StreamingQuery) -> Any:
    """Return the node of the metrics in the plan of the running batch."""
    plan = query._jsq.streamingQuery().lastExecution().executedPlan()
    for _ in range(_DEPTH):
        if plan.nodeName() == "CollectMetrics":
            return plan
        plan = plan.children().head()
    msg = f"the plan of the batch has no metrics among its first {_DEPTH} nodes"
    raise LookupError(msg)
