"""Spouts of numbers for exactly-once topologies: their position is in their state, or in the metadata of a transaction.

So after a crash they emit the same numbers again, and nothing that was committed before.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, ClassVar

from stormspark import Fields, OutputFieldsDeclarer, Spout, SpoutOutputCollector, TopologyContext
from stormspark.api.state import StatefulComponent
from stormspark.transactional import BatchOutputCollector, Emitter, TransactionalSpout, TransactionAttempt

__all__ = ["NumbersFromState", "RangeEmitter", "Ranges"]


class NumbersFromState(StatefulComponent, Spout):
    """Counts from 0, and goes on where its committed state ends. A subclass decides when it emits, in `next_tuple`."""

    fields: ClassVar[tuple[str, ...]] = ("n",)

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state, self.n = state, state.get("n", 0)

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector

    def emit_next(self, *values: Any) -> None:
        """Emit these values, or the number alone. The number is the message id."""
        self.collector.emit(values or (self.n,), message_id=self.n)
        self.n += 1

    def pre_save(self, checkpoint_id: int) -> None:
        self.state["n"] = self.n

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields(*self.fields))


class RangeEmitter(Emitter[tuple[int, int]]):
    """Emits the numbers of a transaction that belong to its task. The metadata is their begin and their end."""

    def __init__(self, context: TopologyContext) -> None:
        self.index = context.this_task_index
        self.tasks = len(context.component_tasks(context.this_component_id))

    def index_for(self, number: int) -> int:
        """The index of the task that emits this number."""
        return number % self.tasks

    def emit_batch(
        self, attempt: TransactionAttempt, metadata: tuple[int, int], collector: BatchOutputCollector
    ) -> None:
        for number in range(*metadata):
            if self.index_for(number) == self.index:
                collector.emit((attempt, number))


class Ranges(TransactionalSpout[tuple[int, int]]):
    """Transactions of successive numbers. A subclass has the coordinator, which decides how many each one gets."""

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> RangeEmitter:
        return RangeEmitter(context)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "number"))
