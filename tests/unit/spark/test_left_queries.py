"""Queries that a Python process has left in Spark's JVM: which are stopped, and which stay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from stormspark.spark import left_queries
from stormspark.spark.left_queries import mark_queries, stop_left_queries
from stormspark.worker.host.lifeline import this_process


class Query:
    def __init__(self, name: str, process: str, fails: bool = False) -> None:
        self._name, self._process, self._fails, self.stopped = name, process, fails, False

    def name(self) -> str:
        return self._name

    def sparkSession(self) -> Any:  # noqa: N802 - Spark's name
        return SimpleNamespace(conf=lambda: {left_queries._PROCESS: self._process})

    def stop(self) -> None:
        if self._fails:
            msg = "TimeoutException"
            raise Py4JError(msg)
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
        Query("does not stop", ended, fails=True),
        Query("flow", ended),
        Query("flow: acker", ended),
        Query("runs here", mine),
        Query("in another container", f"{ended}1"),
        Query("a user's", ""),
    ]
    assert stop_left_queries(session(*queries)) == ["flow", "flow: acker"]
    assert [one.stopped for one in queries] == [False, True, True, False, False, False]
    left = "a Python process that has ended left a query in Spark, which this start stops: "
    assert caplog.messages == [
        f"{left}does not stop",
        "does not stop, left by a Python process that has ended, could not be stopped: TimeoutException",
        f"{left}flow",
        f"{left}flow: acker",
    ]


def test_a_stop_that_hangs_is_named_first(caplog):
    me = this_process()
    query = Query("hangs", mark().replace(f"{me.pid} {me.started} ", f"{me.pid} 1 "))
    said_before: list[str] = []
    query.stop = lambda: said_before.extend(caplog.messages)  # type: ignore[method-assign]
    stop_left_queries(session(query))
    assert "which this start stops: hangs" in said_before[0]


def test_without_proc_no_query_is_left(monkeypatch):
    monkeypatch.setattr(left_queries, "this_machine", lambda: "")
    monkeypatch.setattr(left_queries, "this_process", lambda: this_process()._replace(started=0))
    monkeypatch.setattr(left_queries, "is_alive", lambda process: False)
    mine = mark()
    other = mine.replace(f"{this_process().pid} 0 ", "1 0 ")
    assert other != mine
    assert stop_left_queries(session(Query("runs here", mine), Query("elsewhere", other))) == []


@pytest.mark.parametrize("machine", ["", "boot pid:[1]"])
def test_the_queries_of_this_process_are_not_left(machine, monkeypatch):
    """Whatever can be read of processes."""
    monkeypatch.setattr(left_queries, "this_machine", lambda: machine)
    monkeypatch.setattr(left_queries, "is_alive", lambda process: False)
    assert stop_left_queries(session(Query("runs here", mark()))) == []


def test_a_spark_that_does_not_show_its_queries_is_no_reason_not_to_start():
    def refuses() -> None:
        msg = "no such method"
        raise Py4JError(msg)

    shared = SimpleNamespace(activeStreamingQueries=refuses)
    hidden: Any = SimpleNamespace(_jsparkSession=SimpleNamespace(sharedState=lambda: shared))
    assert stop_left_queries(hidden) == []
