"""What executors note when a round takes in nothing more, as its batch may be prepared, waits for the next one (C44)."""

from __future__ import annotations

import time
from typing import Any

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


def test_spouts_beside_a_call_that_takes_long_do_not_hold_up_the_other_workers() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("nothing")))
    builder.set_bolt("repeat", Repeat(), 2).shuffle_grouping("numbers")
    conf = {"stormspark.executor.threads": "always", "topology.workers": 2}
    plan = plan_topology(builder.create_topology("beside"), conf)
    (spout,) = (task for task in plan.tasks.values() if task.component == "numbers")
    worker = Worker(plan, spout.worker, side_by_side=True)
    worker.open()
    try:
        (bolt,) = worker.wiring.bolts
        assert isinstance(bolt, ThreadedBoltTask)
        bolt.queue.is_executed = True  # as during a call
        begun = time.monotonic()
        assert not worker.turns.ask_spouts(begun + 120, worker.wiring.spouts)
        assert time.monotonic() < begun + 60
    finally:
        worker.close()


def test_a_worker_whose_spouts_have_emitted_all_they_may_hands_out_their_tuples_at_once() -> None:
    """Its own executors go on meanwhile, and the other worker's have nothing to do before (A16)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([*range(400)], Told("a few")))
    builder.set_bolt("slow", Slow(), 2).shuffle_grouping("numbers")
    conf = {
        "stormspark.executor.threads": "always",
        "topology.workers": 2,
        "topology.max.spout.pending": 1000,
    }
    plan = plan_topology(builder.create_topology("at once"), conf)
    (spout_task,) = (task for task in plan.tasks.values() if task.component == "numbers")
    worker = Worker(plan, spout_task.worker, side_by_side=True)
    worker.open()
    try:
        (bolt,) = worker.wiring.bolts
        (spout,) = worker.wiring.spouts
        later = time.monotonic() + 600
        emitted = 0
        while emitted < 400:  # the spout's thread needs a moment
            spout.allowance.begin(400 - emitted)
            worker.turns.ask_spouts(later, [spout])
            emitted += spout.allowance.take_emitted()
        assert spout.allowance.left <= 0
        assert bolt.waiting > 50, "it has waited for calls of its own executor"
    finally:
        worker.close()


class Slow(Repeat):
    def execute(self, tup: Any) -> None:
        time.sleep(0.003)  # shorter than a worker's patience
        super().execute(tup)
