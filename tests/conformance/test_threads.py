"""Work that a task does in threads, the same on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import pytest

from stormspark import Bolt, Fields, TopologyBuilder
from tests.conformance.components import Numbers, Record

Run = Callable[..., Any]


class Pooled(Bolt):
    """Hands each tuple to the worker's shared pool, which emits and acks it; the first 7 of each task is failed there."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.failed = collector, False
        self.pool: Executor = context.shared_executor

    def execute(self, tup: Any) -> None:
        self.pool.submit(self.work, tup)

    def work(self, tup: Any) -> None:
        (n,) = tup.values
        if n == 7 and not self.failed:
            self.failed = True
            self.collector.fail(tup, "not yet")
            return
        self.collector.emit((n,), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [1, 3])
def test_a_shared_pool_may_emit_ack_and_fail(run: Run, tasks: int) -> None:
    """A28, C1, W26: Storm's tasks share a pool, and collectors may be called there; no tuple is lost, none is left open."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(2000))
    builder.set_bolt("pooled", Pooled(), parallelism=tasks).shuffle_grouping("numbers")
    builder.set_bolt("record", Record(), parallelism=2).fields_grouping("pooled", Fields("n"))
    done = run(builder.create_topology("pooled"))
    seen = Counter(one.values[0] for one in done.recorded("record"))
    assert seen == Counter(range(2000))
    assert done.acked("numbers").total() == 2000
    assert 1 <= len(done.failed("numbers")) <= tasks
    assert done.statistics.total("pending") == 0
