"""Batch bolts on threads of their executors (G6)."""

from __future__ import annotations

from threading import Event
from typing import Any

from stormspark import BasicBolt, Fields
from stormspark.transactional import (
    BatchBolt,
    Coordinator,
    Emitter,
    TransactionalSpout,
    TransactionalTopologyBuilder,
)
from tests.unit.worker.executors.runs import Told, running, until

_may_begin = Event()


def _is_first(component: object) -> bool:
    was_ready = vars(component).get("was_ready", False)
    vars(component)["was_ready"] = was_ready or _may_begin.is_set()
    return _may_begin.is_set() and not was_ready


class Once(TransactionalSpout[int], Coordinator[int], Emitter[int]):
    """One batch of one number, once the test lets it begin."""

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        """Return itself."""
        return self

    def get_emitter(self, conf: Any, context: Any) -> Any:
        """Return itself."""
        return self

    def is_ready(self) -> bool:
        """Once."""
        return _is_first(self)

    def initialize_transaction(self, txid: int, previous: int | None) -> int:
        """Return nothing of interest."""
        return 0

    def emit_batch(self, attempt: Any, metadata: int, collector: Any) -> None:
        """Emit the number."""
        collector.emit((attempt, 1))

    def cleanup_before(self, txid: int) -> None:
        """Do nothing."""

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare the fields."""
        declarer.declare(Fields("tx", "number"))


class Count(BatchBolt):
    """Counts the numbers of a batch."""

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        """Begin at 0."""
        self.collector, self.attempt, self.count = collector, attempt, 0

    def execute(self, tup: Any) -> None:
        """Count."""
        self.count += 1

    def finish_batch(self) -> None:
        """Emit."""
        self.collector.emit((self.attempt, self.count))

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare the fields."""
        declarer.declare(Fields("tx", "count"))


class Tell(BasicBolt):
    """Tells what comes."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def execute(self, tup: Any, collector: Any) -> None:
        """Tell."""
        self.told(tup[1])


def test_a_task_without_tuples_emits_at_the_end_of_the_batch_although_there_are_users_threads() -> None:
    told = Told("counts")
    _may_begin.clear()
    builder = TransactionalTopologyBuilder("once", "numbers", Once())
    builder.set_bolt("count", Count(), 2).global_grouping("numbers")
    builder.set_bolt("tell", Tell(told)).shuffle_grouping("count")
    with running(builder.build_topology("batches")) as topology:
        for worker in topology.workers.workers:
            worker.services.guard()
        _may_begin.set()
        until(lambda: len(told.all) >= 2 or topology.error is not None)
        assert topology.error is None
    assert sorted(told.all) == [(0,), (1,)]
