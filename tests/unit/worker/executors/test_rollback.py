"""A batch is rolled back while a call of it still runs on an executor's thread (C44)."""

from __future__ import annotations

import threading
from typing import Any

from stormspark import StatefulComponent, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.executors.bolt_task import ThreadedBoltTask
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, until

GO_ON = threading.Event()
EXECUTES = threading.Event()


class Slow(StatefulComponent, Repeat):
    """Emits when the test lets it."""

    def init_state(self, state: Any) -> None:
        self.state = state

    def pre_save(self, checkpoint_id: Any) -> None:
        pass

    def execute(self, tup: Any) -> None:
        EXECUTES.set()
        GO_ON.wait()
        super().execute(tup)


def test_what_the_call_emits_does_not_come_into_the_next_attempt() -> None:
    """Not even while the rollback waits for the call to return."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("none")))
    builder.set_bolt("slow", Slow()).shuffle_grouping("numbers")
    builder.set_bolt("end", Repeat()).shuffle_grouping("slow")
    conf = {"stormspark.executor.threads": "always", "stormspark.exactly.once": True}
    worker = Worker(plan_topology(builder.create_topology("back"), conf), 0, side_by_side=True)
    worker.open()
    try:
        slow, end = worker.wiring.bolts
        assert isinstance(slow, ThreadedBoltTask)
        source = next(source for source in worker.wiring.sources.values() if source.component == "numbers")
        slow.inbox.append(((1,), source, None))
        slow.executor.wake()
        EXECUTES.wait()
        threading.Timer(0.05, GO_ON.set).start()
        worker.roll_back(0, -1, "the test says so")
        until(lambda: not slow.is_starting or worker.turns.run_pass(float("inf")))
        assert (slow.waiting, end.waiting, end.counters.executed) == (0, 0, 0)
    finally:
        GO_ON.set()
        worker.close()
