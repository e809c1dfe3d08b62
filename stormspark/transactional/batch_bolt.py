"""Bolts that process a batch as a whole (G6)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from stormspark.api import (
    DEFAULT_STREAM,
    BasicBolt,
    BasicOutputCollector,
    Component,
    OutputFieldsDeclarer,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import KeyValueState, StatefulComponent
from stormspark.errors import EmitError
from stormspark.pickling import dumped, unpickled
from stormspark.spi import COMMIT, FINISH, BatchAware, TransactionAttempt

__all__ = [
    "BatchBolt",
    "BatchBoltExecutor",
    "BatchOutputCollector",
    "Committer",
    "StatefulBatchBoltExecutor",
]


class BatchOutputCollector:
    """The collector of batch bolts and emitters. The first value of every tuple must be the `TransactionAttempt` (G2)."""

    def __init__(self) -> None:
        self._collector: BasicOutputCollector | None = None
        self._attempt: TransactionAttempt | None = None
        self._place = ""

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emit a tuple. Returns the ids of the tasks that the tuple goes to.

        If the tuple fails anywhere, the whole batch is repeated. Raises `EmitError` if the first value is not the
        `TransactionAttempt`, and for the same reasons as `BasicOutputCollector.emit`.
        """
        return self._checked(values).emit(values, stream)

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit on a direct stream to one task (D11)."""
        self._checked(values).emit_direct(task, values, stream)

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics (C4)."""
        if self._collector is None:
            raise EmitError(self._too_early())
        self._collector.report_error(error)

    def _checked(self, values: Sequence[Any]) -> BasicOutputCollector:
        if self._collector is None:
            raise EmitError(self._too_early())
        if not values or values[0] != self._attempt:
            msg = (
                f"{self._place}: the first value of every tuple must be the transaction attempt, {self._attempt!r}, got "
                f"{values!r}; emit (attempt, ...) and declare a field for it"
            )
            raise EmitError(msg)
        return self._collector

    def _too_early(self) -> str:
        return f"{self._place or 'a batch bolt'}: emit only in execute, finish_batch or emit_batch"


class BatchBolt(Component, ABC):
    """A bolt that receives the tuples of a batch. When it has received all of them, its `finish_batch` is called (G6).

    For each attempt at a batch, each task makes a fresh instance: it is unpickled, prepared, used, and then dropped.
    So an instance's attributes belong to one attempt at a batch, and need no reset. If `execute` or `finish_batch` raises a
    `FailedException`, the batch is taken back, and then repeated with the same txid.

    >>> from stormspark import Fields
    >>> class Count(BatchBolt):
    ...     def prepare(self, conf, context, collector, attempt):
    ...         self.collector, self.attempt, self.count = collector, attempt, 0
    ...     def execute(self, tup):
    ...         self.count += 1
    ...     def finish_batch(self):
    ...         self.collector.emit((self.attempt, self.count))
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("tx", "count"))

    If you also derive the class from `StatefulComponent`, the bolt has state, which is committed with the batch. ``init_state``
    is called before `prepare`, and ``pre_save`` is called after `finish_batch`.
    """

    @abstractmethod
    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        """Called once for this instance, before `execute` and `finish_batch`. The instance serves one attempt at a batch only."""

    @abstractmethod
    def execute(self, tup: Tuple) -> None:
        """Process a tuple. Its first value is the `TransactionAttempt`. Emits are anchored to the tuple, and then it is acked."""

    @abstractmethod
    def finish_batch(self) -> None:
        """Called when all tuples of the batch have been executed, even if this task has received none of them.

        A committer's `finish_batch` is called after all bolts that are no committers have finished the batch. Committers are
        called for one transaction at a time, in the order of txids.
        """


class Committer:
    """A mixin that makes a `BatchBolt` a committer, even if the bolt is added with ``set_bolt`` (G6)."""


class BatchBoltExecutor(BatchAware, BasicBolt):
    """An ordinary bolt that runs a `BatchBolt`, with one instance per attempt at a batch."""

    def __init__(self, bolt: BatchBolt, *, committer: bool) -> None:
        self._bolt = bolt
        self.ends = COMMIT if committer or isinstance(bolt, Committer) else FINISH
        self._collector = BatchOutputCollector()
        self._instance: BatchBolt | None = None

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Pickle the bolt. This is called before the first batch begins."""
        self._conf, self._context = conf, context
        self._pickled = dumped(self._bolt)
        self._place = f"component {context.this_component_id!r}, task {context.this_task_id}"
        self._collector._place = self._place

    def begin_batch(self, attempt: TransactionAttempt, announced: Any = None) -> None:
        """Drop the instance of the previous attempt at a batch."""
        self._attempt, self._instance = attempt, None

    @property
    def takes_part(self) -> bool:
        """Whether this task has received a tuple of the batch."""
        return self._instance is not None

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Pass the tuple to the instance of the current attempt at the batch."""
        if not tup.values or tup.values[0] != self._attempt:
            msg = (
                f"{self._place}: the first value of every tuple must be the transaction attempt, {self._attempt!r}, got "
                f"{tup!r}; let {tup.source_component!r} emit it first"
            )
            raise EmitError(msg)
        (self._instance or self._made(collector)).execute(tup)

    def end_batch(self, collector: BasicOutputCollector) -> None:
        """Call ``finish_batch`` of the current attempt's instance. If the task has received no tuple, make the instance first."""
        (self._instance or self._made(collector)).finish_batch()

    def _made(self, collector: BasicOutputCollector) -> BatchBolt:
        self._collector._collector, self._collector._attempt = collector, self._attempt
        instance: BatchBolt = unpickled(self._pickled)
        self._before(instance)
        instance.prepare(self._conf, self._context, self._collector, self._attempt)
        self._instance = instance
        return instance

    def _before(self, instance: BatchBolt) -> None:
        pass

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the bolt's own streams."""
        self._bolt.declare_output_fields(declarer)

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Return the bolt's own configuration."""
        return self._bolt.get_component_configuration()


class StatefulBatchBoltExecutor(StatefulComponent, BatchBoltExecutor):
    """An executor for a `BatchBolt` that is a `StatefulComponent`. Its instances share the task's state."""

    def init_state(self, state: KeyValueState[Any, Any]) -> None:  # type: ignore[override]
        """Keep the state for later instances."""
        self._state = state

    def pre_save(self, checkpoint_id: int) -> None:
        """Let the current attempt's instance, if there is one, put values into its state before the batch is committed."""
        if isinstance(self._instance, StatefulComponent):
            self._instance.pre_save(checkpoint_id)

    def _before(self, instance: BatchBolt) -> None:
        assert isinstance(instance, StatefulComponent)
        instance.init_state(self._state)


def emitted_through(
    collector: BasicOutputCollector, attempt: TransactionAttempt, place: str
) -> BatchOutputCollector:
    """Return an emitter's collector for one attempt. It passes tuples on to ``collector``. Its errors name ``place``."""
    made = BatchOutputCollector()
    made._collector, made._attempt, made._place = collector, attempt, place
    return made
