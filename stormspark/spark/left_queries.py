"""Stops queries that a Python process has left behind in Spark's JVM.

A notebook on Databricks restarts its Python process, and the JVM stays. A query that ran a batch fails then, because Spark loses
the process that it calls. But a query that waits stays as it is: for its trigger, for something to store, or at the gate.
Spark would later call the next Python process in its place. Py4J counts its callbacks in each process from 0. So the old query
would run a batch of the new topology, with rows of the old one. That is why a topology stops such queries before it begins.
"""

from __future__ import annotations

import contextlib
import logging
import re
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from stormspark.spark.fence import this_machine
from stormspark.spark.java_errors import in_one_line
from stormspark.worker.host.lifeline import is_alive, this_process
from stormspark.worker.host.messages import ProcessId

__all__ = ["mark_queries", "stop_left_queries"]

_log = logging.getLogger(__name__)

#: The key under which a session names the Python process that starts queries in it.
_PROCESS = "stormspark.driver.process"


def mark_queries(session: SparkSession) -> None:
    """Let the queries of a session tell which Python process has started them."""
    me = this_process()
    session.conf.set(_PROCESS, f"{me.pid} {me.started} {me.host} {this_machine()}")


def stop_left_queries(session: SparkSession) -> list[str]:
    """Stop the queries of topologies whose Python process has ended. Return their names."""
    stopped: list[str] = []
    for query in _left(session):
        name = "a query"
        try:
            name = str(query.name())
            # First, because a stop may wait for a batch as long as Spark's spark.sql.streaming.stopTimeout allows.
            _log.warning(
                "a Python process that has ended left a query in Spark, which this start stops: %s", name
            )
            query.stop()
        except Py4JError as error:  # the others still have to be stopped
            _log.warning(
                "%s, left by a Python process that has ended, could not be stopped: %s",
                name,
                in_one_line(str(error)),
            )
        else:
            stopped.append(name)
    return stopped


def _left(session: SparkSession) -> list[Any]:
    """The queries that are left of all active queries of this Spark. A session itself shows only its own."""
    left = []
    with contextlib.suppress(Py4JError):  # a Spark that does not show its queries
        active = session._jsparkSession.sharedState().activeStreamingQueries()
        for key in list(active):
            with contextlib.suppress(Py4JError):  # a query that has just ended
                query = active.get(key)
                if query is not None and _is_left(str(query.sparkSession().conf().get(_PROCESS, ""))):
                    left.append(query)
    return left


def _is_left(process: str) -> bool:
    """Whether a process has ended. Of a process in another container, nobody here can say, nor on a system without ``/proc``."""
    parts = re.fullmatch(r"(\d+) (\d+) (\S*) (.*)", process)
    if parts is None or not parts[4] or (parts[3], parts[4]) != (this_process().host, this_machine()):
        return False
    its = ProcessId(parts[3], int(parts[1]), int(parts[2]))
    return its.started > 0 and its != this_process() and not is_alive(its)
