"""Transactional components that tell a list of this process what is done to them, and can be told to fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import sqlalchemy as sql

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    FailedException,
    Fields,
    OutputFieldsDeclarer,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import StatefulComponent
from stormspark.map_state import OpaqueMap, StateType, TransactionalMap
from stormspark.map_state.sql import SqlBackingMap
from stormspark.transactional import (
    BatchBolt,
    BatchOutputCollector,
    Committer,
    Coordinator,
    Emitter,
    TransactionalSpout,
    TransactionAttempt,
)

#: What happened, in order; and who fails when: called with a component's id and the attempt.
told: list[tuple[Any, ...]] = []
fails: list[Callable[[str, TransactionAttempt], bool]] = []


def begin(*failing: Callable[[str, TransactionAttempt], bool]) -> None:
    told.clear()
    fails[:] = failing


def fail_if_told(component: str, attempt: TransactionAttempt) -> None:
    if any(fail(component, attempt) for fail in fails):
        raise FailedException(f"{component} fails {attempt}")


def of(what: str) -> list[tuple[Any, ...]]:
    return [one[1:] for one in told if one[0] == what]


class Tens(TransactionalSpout[int]):
    """Transaction after transaction, ten numbers each; ``batches`` of them."""

    def __init__(self, batches: int = 3) -> None:
        self.batches = batches

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> TensCoordinator:
        return TensCoordinator(self.batches)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> TensEmitter:
        return TensEmitter(context)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "number"))


class TensCoordinator(Coordinator[int]):
    def __init__(self, batches: int) -> None:
        self.batches = batches

    def initialize_transaction(self, txid: int, previous: int | None) -> int:
        begin = 0 if previous is None else previous + 10
        if begin >= 10 * self.batches:
            raise FailedException("no more")
        told.append(("initialize", txid, previous))
        return begin

    def close(self) -> None:
        told.append(("closed", "coordinator"))


class TensEmitter(Emitter[int]):
    def __init__(self, context: TopologyContext) -> None:
        self.context = context

    def emit_batch(self, attempt: TransactionAttempt, metadata: int, collector: BatchOutputCollector) -> None:
        told.append(("emit", attempt, metadata, self.context.this_task_index))
        tasks = len(self.context.component_tasks(self.context.this_component_id))
        for number in range(metadata, metadata + 10):
            if number % tasks == self.context.this_task_index:
                collector.emit((attempt, number))

    def cleanup_before(self, txid: int) -> None:
        told.append(("cleanup", txid))

    def close(self) -> None:
        told.append(("closed", "emitter"))


class Sum(BatchBolt):
    """Emits the sum of its batch, ``copies`` times."""

    def __init__(self, copies: int = 1) -> None:
        self.copies = copies

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        self.collector, self.attempt, self.id = collector, attempt, context.this_component_id
        self.sum = 0
        told.append(("prepare", self.id, attempt))

    def execute(self, tup: Tuple) -> None:
        self.sum += tup["number"]

    def finish_batch(self) -> None:
        told.append(("finish", self.id, self.attempt, self.sum))
        for _ in range(self.copies):
            self.collector.emit((self.attempt, self.sum))
        fail_if_told(self.id, self.attempt)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "number"))


class Total(StatefulComponent, Sum):
    """The sum of all batches, as state."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def finish_batch(self) -> None:
        self.sum += self.state.get("sum", 0)
        self.state["sum"] = self.sum
        super().finish_batch()

    def pre_save(self, checkpoint_id: int) -> None:
        told.append(("saved", self.sum))


class Add(Committer, Sum):
    """Adds its batch's sum to one in a database, and fails afterwards when it is told to."""

    def __init__(self, url: str, kind: StateType) -> None:
        super().__init__()
        self.url, self.kind = url, kind

    def finish_batch(self) -> None:
        engine = sql.create_engine(self.url)
        state = {StateType.TRANSACTIONAL: TransactionalMap, StateType.OPAQUE: OpaqueMap}[self.kind]
        totals: Any = state(SqlBackingMap(engine, "totals", self.kind))
        totals.begin_commit(self.attempt.txid)
        totals.multi_update([("sum",)], [lambda total: (total or 0) + self.sum])
        totals.commit(self.attempt.txid)
        engine.dispose()
        super().finish_batch()


class Pass(BasicBolt):
    """Passes on, and fails when it is told to."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.id = context.this_component_id

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        told.append(("executed", self.id, tup[0], tup["number"]))
        fail_if_told(self.id, tup[0])
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "number"))


class Nameless(Sum):
    """Forgets the attempt."""

    def finish_batch(self) -> None:
        self.collector.emit((self.sum, self.sum))
