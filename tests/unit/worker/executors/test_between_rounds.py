"""What a spout on a thread of its own emits between two rounds is executed at once, because Spark may take long (B1, A16)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.step import Step
from tests.unit.worker.executors.runs import Repeat, until

COMES = threading.Event()


class Waits(Spout):
    """Its ``next_tuple`` waits until the test lets it emit."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        COMES.wait()
        COMES.clear()
        self.collector.emit((1,), message_id=1)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


@pytest.fixture
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A worker with such a spout, and three bolts behind it. All executors have threads, or only the spout's has."""
    COMES.clear()
    builder = TopologyBuilder()
    builder.set_spout("waits", Waits()).add_configuration("stormspark.executor.threads", "always")
    before = "waits"
    for name in ("first", "second", "third"):
        bolt = builder.set_bolt(name, Repeat()).shuffle_grouping(before)
        bolt.add_configuration("stormspark.executor.threads", request.param["threads"])
        before = name
    plan = plan_topology(builder.create_topology("between"), request.param.get("conf", {}))
    worker = Worker(plan, 0, side_by_side=True)
    worker.open()
    try:
        yield worker
    finally:
        COMES.set()
        worker.close()


def has_come(worker: Worker) -> bool:
    """Whether each bolt has executed the tuple, and its tree has ended."""
    (spout,) = worker.wiring.spouts
    return all(bolt.counters.executed == 1 for bolt in worker.wiring.bolts) and not spout.account.pending


@pytest.mark.parametrize("worker", [{"threads": "always"}, {"threads": "never"}], indirect=True)
def test_it_reaches_the_last_bolt(worker: Worker) -> None:
    assert not worker.spare_time.fill_gap(), "nothing happens before the first round"
    worker.run(Step(0, 0, 0), [])
    COMES.set()
    until(lambda: worker.spare_time.fill_gap() and has_come(worker))
    assert worker.spare_time.fill_gap(), "it waits for more"
    worker.run(Step(1, 0, 0), [])
    assert not worker.was_idle, "the next report has it"
    worker.validate()


@pytest.mark.parametrize(
    "worker",
    [
        {"threads": "always", "conf": {"stormspark.exactly.once": True}},
        {"threads": "always", "conf": {"stormspark.trigger.interval.ms": 1000}},
    ],
    indirect=True,
)
def test_it_waits_where_batches_decide_what_belongs_to_them(worker: Worker) -> None:
    worker.run(Step(0, 0, 0), [])
    COMES.set()
    assert not worker.spare_time.fill_gap()


@pytest.mark.parametrize("worker", [{"threads": "always"}], indirect=True)
def test_at_a_stop_it_waits_for_the_rounds_that_work_it_off(worker: Worker) -> None:
    worker.run(Step(0, 0, 0), [])
    worker.limit_waiting()
    COMES.set()
    assert not worker.spare_time.fill_gap()
    superstep = 0

    def round_has_brought_it() -> bool:
        nonlocal superstep
        superstep += 1
        worker.run(Step(0, 0, superstep), [])
        return has_come(worker)

    until(round_has_brought_it)
