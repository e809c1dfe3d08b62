"""Runs of small topologies whose executors have threads of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from stormspark import Bolt, Fields, Spout, Topology
from stormspark.local import submit
from stormspark.local.topology import LocalTopology

__all__ = ["Numbers", "Told", "running", "tasks", "until"]

_MOST_SECS = 120.0


class Told:
    """A list that all copies of the components share; ``told(...)`` adds to it."""

    lists: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        self.lists[name] = []

    def __call__(self, *what: Any) -> None:
        self.all.append(what)

    @property
    def all(self) -> list[Any]:
        """What was told so far."""
        return Told.lists[self.name]


class Numbers(Spout):
    """Emits each of ``values`` once, with itself as the message id, and tells ``told`` the verdicts."""

    def __init__(self, values: list[Any], told: Told) -> None:
        self.values, self.told = values, told

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector, self.left = collector, list(self.values)

    def next_tuple(self) -> None:
        if self.left:
            value = self.left.pop(0)
            self.collector.emit((value,), message_id=str(value))

    def ack(self, message_id: Any) -> None:
        self.told("ack", message_id)

    def fail(self, message_id: Any) -> None:
        self.told("fail", message_id, self.collector.verdict.reason)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Repeat(Bolt):
    """Emits what it gets, anchored, and acks it."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        self.collector.emit(tup.values, anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


@contextmanager
def running(topology: Topology, **conf: Any) -> Iterator[LocalTopology]:
    """Run a topology on the local engine, with a thread for each executor."""
    started = submit(topology, conf={"stormspark.executor.threads": "always", **conf})
    try:
        yield started
    finally:
        started.stop()


def tasks(topology: LocalTopology, component: str) -> list[Any]:
    """The tasks of a component."""
    return [
        task
        for worker in topology.workers.workers
        for task in worker.tasks.values()
        if task.component.id == component
    ]


def until(condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds, for minutes if need be."""
    deadline = time.monotonic() + _MOST_SECS
    while not condition():
        assert time.monotonic() < deadline, "it has never come true"
        time.sleep(0.001)
