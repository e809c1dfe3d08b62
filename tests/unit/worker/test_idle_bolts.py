"""What a worker keeps of tuples that are done, while nothing comes."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from stormspark import BasicBolt, Bolt
from tests.unit.worker.components import Script
from tests.unit.worker.rig import Rig, two

CHUNK = 500


class Heavy:
    """A value."""


alive: weakref.WeakSet[Heavy] = weakref.WeakSet()


class Make(Script):
    """Emits values that nobody else holds."""

    def next_tuple(self) -> None:
        if self.next < CHUNK:
            self.next += 1
            self.collector.emit((Heavy(),))


class Count(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        alive.add(tup[0])


class Ack(Bolt):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        alive.add(tup[0])
        self.collector.ack(tup)


@pytest.mark.slow
@pytest.mark.parametrize("bolt", [Count, Ack])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_bolt_that_has_executed_all_holds_no_tuple(bolt: Any, workers: int) -> None:
    """Not even those of its last chunk: with values of megabytes that is a worker's memory, for as long as it idles."""
    alive.clear()
    rig = Rig(two(bolt(), Make([])), workers)
    rig.batches(5)
    seen = sum(task.counters.executed for task in rig.tasks("b"))
    gc.collect()
    assert seen == CHUNK
    assert len(alive) == 0
