"""What executors note when a round takes in nothing more, as its batch may be prepared, waits for the next one (C44)."""

from __future__ import annotations

import time

from stormspark import TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.executors.bolt_task import ThreadedBoltTask
from tests.unit.worker.executors.runs import Numbers, Repeat, Told


def test_the_worker_does_not_wait_for_what_it_may_not_take_in() -> None:
    """It would wait for ever."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("none")))
    builder.set_bolt("repeat", Repeat()).shuffle_grouping("numbers")
    conf = {"stormspark.executor.threads": "always", "stormspark.exactly.once": True}
    worker = Worker(plan_topology(builder.create_topology("closed"), conf), 0, side_by_side=True)
    worker.open()
    try:
        (bolt,) = worker.wiring.bolts
        assert isinstance(bolt, ThreadedBoltTask)
        worker.turns.listens = False
        bolt.notes.add(lambda: None)
        later = time.monotonic() + 600
        worker.turns.work(later, later)
        worker.turns.finish_outside()
        assert bolt.calls_under_way == 1
        worker.turns.listens = True
        worker.turns.work(later, later)
        assert bolt.calls_under_way == 0
    finally:
        worker.close()
