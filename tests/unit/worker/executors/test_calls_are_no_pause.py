"""The time in which a call of ``next_tuple`` goes on is no pause at a limit (B4, F6)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.executors.spout_task import ThreadedSpoutTask
from tests.unit.worker.executors.runs import Repeat, until

EMITTED, RETURNS = threading.Event(), threading.Event()


class EmitsAndGoesOn(Spout):
    """Emits one tuple, or two, and goes on until the test lets it return."""

    def __init__(self, emits: int = 1) -> None:
        self.emits = emits

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        for n in range(self.emits):
            EMITTED.set()
            self.collector.emit((n,), message_id=n)
        RETURNS.wait()

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


@pytest.fixture
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A worker with one spout, which is in the middle of its first call."""
    EMITTED.clear()
    RETURNS.clear()
    builder = TopologyBuilder()
    builder.set_spout("numbers", EmitsAndGoesOn(getattr(request, "param", 1)))
    builder.set_bolt("end", Repeat()).shuffle_grouping("numbers")
    conf = {"stormspark.executor.threads": "always", "topology.max.spout.pending": 1}
    worker = Worker(plan_topology(builder.create_topology("goes on"), conf), 0, side_by_side=True)
    worker.open()
    try:
        yield worker
    finally:
        RETURNS.set()
        worker.close()


def _spout(worker: Worker, limit: int | None = None) -> ThreadedSpoutTask:
    (spout,) = worker.wiring.spouts
    assert isinstance(spout, ThreadedSpoutTask)
    spout.begin_round(worker.clock(), limit)
    spout.ask(64, worker.clock() + 600)
    EMITTED.wait()
    until(lambda: worker._executors.take_in() or spout.account.pending)
    return spout


def test_max_pending_holds_a_spout_back_only_once_its_call_has_returned(worker: Worker) -> None:
    spout = _spout(worker)
    now = worker.clock()
    spout.end_asking(now)
    assert spout.allowance.waits_for_acks
    spout.allowance.go_on(now + 5)
    assert spout.counters.skipped_max_spout_ms == 0
    spout.end_asking(now)
    RETURNS.set()
    until(lambda: not spout._in_next_tuple)
    returned = worker.clock()
    spout.allowance.go_on(returned + 2)
    assert 2000 <= spout.counters.skipped_max_spout_ms <= 2000 + (returned - now) * 1000
    spout.end_asking(returned)
    spout.allowance.go_on(returned + 2)
    assert spout.counters.skipped_max_spout_ms >= 4000


@pytest.mark.parametrize("worker", [2], indirect=True)
def test_a_call_that_waits_in_an_emit_is_paused(worker: Worker) -> None:
    spout = _spout(worker, limit=1)
    until(lambda: spout._waits_since <= worker.clock())
    now = worker.clock()
    spout.end_asking(now)
    spout.allowance.go_on(now + 2)
    assert spout.counters.skipped_backpressure_ms == 2000
