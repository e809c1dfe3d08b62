"""Queries that a Python process has left in Spark's JVM: which are stopped, and which stay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from py4j.protocol import Py4JError

from stormspark.spark import left_queries
from stormspark.spark.left_queries import mark_queries, stop_left_queries
from stormspark.worker.host.lifeline import this_process


class Query:
    def __init__(self, name: str, process: str) -> None:
        self._name, self._process, self.stopped = name, process, False

    def name(self) -> str:
        return self._name

    def sparkSession(self) -> Any:  # noqa: N802 - Spark's name
        return SimpleNamespace(conf=lambda: {left_queries._PROCESS: self._process})

    def stop(self) -> None:
        self.stopped = True


def session(*queries: Query) -> Any:
    active = dict(enumerate(queries))
    shared = SimpleNamespace(activeStreamingQueries=lambda: active)
    return SimpleNamespace(_jsparkSession=SimpleNamespace(sharedState=lambda: shared))


def mark() -> str:
    settings: dict[str, str] = {}
    mark_queries(SimpleNamespace(conf=SimpleNamespace(set=settings.__setitem__)))  # type: ignore[arg-type]
    (process,) = settings.values()
    return process


def test_only_queries_of_ended_processes_of_this_machine_are_stopped(caplog):
    me = this_process()
    mine = mark()
    ended = mine.replace(f"{me.pid} {me.started} ", f"{me.pid} {me.started - 1} ")
    queries = [
        Query("flow", ended),
        Query("flow: acker", ended),
        Query("runs here", mine),
        Query("in another container", f"{ended}1"),
        Query("a user's", ""),
    ]
    assert stop_left_queries(session(*queries)) == ["flow", "flow: acker"]
    assert [one.stopped for one in queries] == [True, True, False, False, False]
    assert "a Python process that has ended left 2 queries in Spark" in caplog.text


def test_a_spark_that_does_not_show_its_queries_is_no_reason_not_to_start():
    def refuses() -> None:
        msg = "no such method"
        raise Py4JError(msg)

    shared = SimpleNamespace(activeStreamingQueries=refuses)
    hidden: Any = SimpleNamespace(_jsparkSession=SimpleNamespace(sharedState=lambda: shared))
    assert stop_left_queries(hidden) == []
