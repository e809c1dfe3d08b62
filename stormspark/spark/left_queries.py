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
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from stormspark.spark.fence import this_machine
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
    with contextlib.suppress(
        Py4JError
    ):  # a query that has just ended, or a Spark that does not show its queries
        for query in _active(session):
            if _is_left(str(query.sparkSession().conf().get(_PROCESS, ""))):
                query.stop()
                stopped.append(str(query.name()))
    if stopped:
        _log.warning(
            "a Python process that has ended left %s in Spark, which this start has stopped: %s",
            "a query" if len(stopped) == 1 else f"{len(stopped)} queries",
            ", ".join(sorted(stopped)),
        )
    return stopped


def _active(session: SparkSession) -> Iterator[Any]:
    """All active queries of this Spark. A session itself shows only its own."""
    active = session._jsparkSession.sharedState().activeStreamingQueries()
    for key in list(active):
        if (query := active.get(key)) is not None:
            yield query


def _is_left(process: str) -> bool:
    """Whether a process has ended. Of a process in another container, nobody here can say."""
    parts = re.fullmatch(r"(\d+) (\d+) (\S*) (.*)", process)
    if parts is None or (parts[3], parts[4]) != (this_process().host, this_machine()):
        return False
    return not is_alive(ProcessId(parts[3], int(parts[1]), int(parts[2])))
