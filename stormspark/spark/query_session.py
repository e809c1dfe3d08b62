"""The session of a topology's query: a clone of the user's session, whose query the user's session sees as one of its own.

Spark has one manager of queries per session. A query takes its settings from its manager's session, and its events go to the
listeners of this session. If the query began in the user's session, its settings would have to be set there. So it begins in a
clone, which has the user's temporary views, functions, data sources and settings. And the clone's manager gets the listeners and
the table of active queries that the user's manager has.

What the two managers don't share is the news that a query has ended. A topology outlives its queries, because each attempt has
one. So ``awaitAnyTermination`` in the user's session waits for the end of the topology (`tell_end`), and not for that of a query.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from stormspark.spark.left_queries import mark_queries

__all__ = ["QuerySession", "own_session"]

_log = logging.getLogger(__name__)

#: A frame may be megabytes large, so record batches are limited by bytes, too. With Spark's default limit of 10,000 rows alone, a
#: record batch could outgrow its 32-bit offsets.
_BATCH_ROWS = 256
_BATCH_BYTES = 16 * 1024 * 1024

_SETTINGS: dict[str, int | bool] = {
    # Adaptive execution would plan each micro-batch stage by stage. That effort is wasted, because the exchanges are fixed.
    "spark.sql.adaptive.enabled": False,
    "spark.sql.adaptive.streaming.stateless.enabled": False,
    "spark.sql.execution.arrow.maxRecordsPerBatch": _BATCH_ROWS,
    "spark.sql.execution.arrow.maxBytesPerBatch": _BATCH_BYTES,
    # The workers read record batches with 32-bit offsets.
    "spark.sql.execution.arrow.useLargeVarTypes": False,
    "spark.sql.streaming.noDataMicroBatches.enabled": False,
    # `stop` has to wait until the query's thread has left the gate.
    "spark.sql.streaming.stopTimeout": 0,
}

#: The private fields of Spark's `StreamingQueryManager` that hold the active queries and the bus of listeners. The lock of the
#: active queries is the same for all sessions.
_ACTIVE, _LISTENERS = "activeQueries", "listenerBus"


def own_session(spark: SparkSession) -> SparkSession:
    """Make a new session for stormspark's own reads and writes, with the Spark context of the user's session and nothing else."""
    return _set_up(spark.newSession())


def _set_up(session: SparkSession) -> SparkSession:
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    mark_queries(session)
    return session


class QuerySession:
    """The session of the data query of one topology. ``user`` is the user's session, which stays as it is."""

    def __init__(self, user: SparkSession) -> None:
        self._user = user
        #: The clone, for the query and its sources.
        self.session = _set_up(SparkSession(user.sparkContext, user._jsparkSession.cloneSession()))
        #: The query that was started last; None before the first one.
        self.query: StreamingQuery | None = None
        #: Whether the user's session sees the query.
        self.is_shown = self._show()

    def _show(self) -> bool:
        theirs, ours = self._user._jsparkSession.streams(), self.session._jsparkSession.streams()
        try:
            fields = {name: ours.getClass().getDeclaredField(name) for name in (_ACTIVE, _LISTENERS)}
            for field in fields.values():
                field.setAccessible(True)
            unused = fields[_LISTENERS].get(ours)
            for field in fields.values():
                field.set(ours, field.get(theirs))
            # The clone's own bus would hear the events of all queries for as long as Spark runs.
            self._user.sparkContext._jsc.sc().listenerBus().removeListener(unused)
        except Py4JError as error:
            _log.info(
                "listeners and spark.streams of the Spark session don't see the topology's query, because this version of Spark "
                "doesn't let stormspark share them: %s",
                str(error).strip().splitlines()[-1][:200],
            )
            return False
        return True

    def free_name(self, topology: str, generation: int) -> str:
        """Return a name for the query that no active query of the user has: the topology's name if possible."""
        taken = {query.name for query in self.session.streams.active}
        return topology if topology not in taken else f"{topology} (generation {generation})"

    def tell_end(self, error: BaseException | None) -> None:
        """End ``awaitAnyTermination`` in the user's session, because the topology has ended.

        If there was an error, ``awaitAnyTermination`` raises it, as it does for other queries.
        """
        query = self.query
        if query is None or not self.is_shown:
            return
        with contextlib.suppress(Exception):  # Spark may have ended, too
            streams = self._user._jsparkSession.streams()
            if streams.get(query.id) is not None:
                return  # another driver goes on with the same checkpoint, and so with the same id
            execution = query._jsq.streamingQuery()
            if error is not None and execution.exception().isEmpty():
                getattr(execution, "streamDeathCause_$eq")(self._as_exception(query, str(error)))
            streams.notifyQueryTermination(execution)

    def _as_exception(self, query: StreamingQuery, text: str) -> Any:
        jvm: Any = self._user.sparkContext._jvm
        values = {"id": query.id, "runId": query.runId, "message": text}
        parameters = jvm.PythonUtils.toScalaMap(values)
        cause = jvm.java.lang.IllegalStateException(text)
        return jvm.org.apache.spark.sql.streaming.StreamingQueryException(
            str(query.name), cause, "", "", "STREAM_FAILED", parameters
        )
