"""For which calls a superstep waits: a call that takes long must not hold up the other workers in each of them (A16)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.executors.bolt_task import ThreadedBoltTask
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, until


class Waiting:
    """Counts how often the worker waits for notes, and lets time pass meanwhile."""

    def __init__(self) -> None:
        self.now, self.waits = 100.0, 0

    def clock(self) -> float:
        """The time."""
        return self.now

    def wait(self, until: float) -> bool:
        """Let two milliseconds pass."""
        if self.now >= until:
            return False
        self.now += 0.002
        self.waits += 1
        return True


@contextmanager
def _in_a_call(**conf: Any) -> Iterator[tuple[Waiting, Worker, ThreadedBoltTask]]:
    """One of two workers. Its bolt has been in a call since now."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("nobody")))
    builder.set_bolt("repeat", Repeat(), 2).shuffle_grouping("numbers")
    conf = {"stormspark.executor.threads": "always", "topology.workers": 2, **conf}
    waiting = Waiting()
    worker = Worker(
        plan_topology(builder.create_topology("patience"), conf), 0, clock=waiting.clock, side_by_side=True
    )
    worker.open()
    (bolt,) = worker.wiring.bolts
    assert isinstance(bolt, ThreadedBoltTask)
    try:
        until(lambda: bolt.executor.is_idle)
        worker._executors.wait = waiting.wait  # type: ignore[method-assign]
        bolt.is_held = True  # so its own thread takes nothing
        bolt.queue.is_executed = True
        bolt.executor.at = bolt.name, waiting.now
        yield waiting, worker, bolt
    finally:
        bolt.queue.is_executed = False
        bolt.executor.at = None
        del worker._executors.wait  # type: ignore[method-assign]
        worker.close()


def _superstep(waiting: Waiting, worker: Worker) -> int:
    """How often the worker waits in a superstep."""
    before, later = waiting.waits, waiting.now + 600
    worker.turns.ask_spouts(later, ())
    worker.turns.work(later, later)
    return waiting.waits - before


def test_a_call_is_waited_for_as_it_begins_and_not_in_each_superstep() -> None:
    with _in_a_call() as (waiting, worker, bolt):
        assert _superstep(waiting, worker), "it may return soon"
        for _ in range(3):
            assert not _superstep(waiting, worker), "it was waited for"
        bolt.executor.at = bolt.name, waiting.now
        assert _superstep(waiting, worker), "it is the next call"


def test_a_call_that_has_noted_something_may_soon_note_more() -> None:
    with _in_a_call() as (waiting, worker, bolt):
        _superstep(waiting, worker)
        bolt.notes.add(lambda: None)
        assert _superstep(waiting, worker)
        assert not _superstep(waiting, worker)


@pytest.mark.parametrize("many", [False, True])
def test_what_waits_behind_such_a_call_changes_nothing(many: bool) -> None:
    with _in_a_call() as (waiting, worker, bolt):
        bolt.inbox.extend([((n,), None, None) for n in range(1000 if many else 1)])  # type: ignore[misc]
        _superstep(waiting, worker)
        assert not _superstep(waiting, worker)
        bolt.queue.clear()


def test_a_transaction_waits_for_its_calls() -> None:
    with _in_a_call(**{"stormspark.exactly.once": True}) as (waiting, worker, _):
        for _ in range(3):
            assert _superstep(waiting, worker)
