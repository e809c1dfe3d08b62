"""The bolts that emit a batch's tuples (G3, G4).

For a transactional spout, these bolts receive the batch's metadata from the coordinator's task, and call the user's emitters.
For a source spout, `AttemptFirst` puts the `TransactionAttempt` in front of each tuple's values.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, ClassVar

from stormspark.api import (
    BasicBolt,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    StreamDeclaration,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import StatefulComponent
from stormspark.spi import BatchAware, TransactionAttempt
from stormspark.transactional.batch_bolt import BatchOutputCollector, emitted_through
from stormspark.transactional.spouts import (
    OpaquePartitionedTransactionalSpout,
    PartitionedTransactionalSpout,
    TransactionalSpout,
)

__all__ = ["AttemptFirst", "EmitterBolt", "OpaqueEmitterBolt", "PartitionedEmitterBolt"]


class _SpoutBolt(BasicBolt):
    """The base class of the bolts that call a user's emitter. It has the user's spout, which declares the streams."""

    _spout: Any

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Make the user's emitter."""
        self._index = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))
        self._place = f"component {context.this_component_id!r}, task {context.this_task_id}"
        self._emitter: Any = self._spout.get_emitter(conf, context)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Emit this task's part of the batch. The coordinator has defined the batch."""
        attempt, metadata, committed = tup.values
        self.emit_batch(attempt, metadata, emitted_through(collector, attempt, self._place))
        if committed is not None:
            self.cleanup_before(committed)

    @abstractmethod
    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """Emit this task's part of a batch."""

    def cleanup_before(self, txid: int) -> None:
        """Clean up. Called when all transactions up to ``txid`` are committed."""

    def cleanup(self) -> None:
        """Close the user's emitter."""
        self._emitter.close()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the spout's own streams."""
        self._spout.declare_output_fields(declarer)

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Return the spout's own configuration."""
        return self._spout.get_component_configuration()  # type: ignore[no-any-return]


class EmitterBolt(_SpoutBolt):
    """Emits for a `TransactionalSpout`."""

    def __init__(self, spout: TransactionalSpout[Any]) -> None:
        self._spout = spout

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """Call the user's emitter."""
        self._emitter.emit_batch(attempt, metadata, collector)

    def cleanup_before(self, txid: int) -> None:
        """Call the user's emitter."""
        self._emitter.cleanup_before(txid)


class OpaqueEmitterBolt(StatefulComponent, _SpoutBolt):
    """Emits for an `OpaquePartitionedTransactionalSpout`.

    For each partition, the user's emitter emits a piece of the partition, and returns a value. Usually the value is the end of
    the piece. These values are the task's state, and are committed with the batch.
    """

    def __init__(self, spout: OpaquePartitionedTransactionalSpout[Any]) -> None:
        self._spout = spout

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Keep the state. For each partition, it has the value that the user's emitter has returned last."""
        self._metadata = state

    def pre_save(self, checkpoint_id: int) -> None:
        """Do nothing: the metadata is already in the state."""

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """Continue each of this task's partitions where the last committed transaction ended. ``metadata`` is not used."""
        for partition in self._mine(self._emitter.num_partitions()):
            previous = self._metadata.get(partition)
            self._metadata[partition] = self._emitter.emit_partition_batch(
                attempt, collector, partition, previous
            )

    def _mine(self, partitions: int) -> Iterable[int]:
        return range(self._index, partitions, self._tasks)


class PartitionedEmitterBolt(BatchAware, OpaqueEmitterBolt):
    """Emits for a `PartitionedTransactionalSpout`. If an earlier attempt has announced a piece, exactly this piece is emitted."""

    announces: ClassVar[bool] = True

    def __init__(self, spout: PartitionedTransactionalSpout[Any]) -> None:
        self._spout = spout
        self._announced: Mapping[int, Any] = {}
        self._emitted: dict[int, Any] = {}

    def begin_batch(self, attempt: TransactionAttempt, announced: Any = None) -> None:
        """Keep the announcement of an earlier attempt at the batch. For each partition, it has the metadata of the piece."""
        self._announced, self._emitted = announced or {}, {}

    @property
    def takes_part(self) -> bool:
        """Always false, because the coordinator already takes part in the batch."""
        return False

    def announcement(self) -> Any:
        """Return the metadata of this batch's pieces, by partition; None if there are no pieces."""
        return self._emitted or None

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """For each of this task's partitions, emit the announced piece, or a new piece if none was announced.

        ``metadata`` is the total number of partitions.
        """
        for partition in self._mine(metadata):
            if partition in self._announced:
                piece = self._announced[partition]
                self._emitter.emit_partition_batch(attempt, collector, partition, piece)
            else:
                previous = self._metadata.get(partition)
                piece = self._emitter.emit_partition_batch_new(attempt, collector, partition, previous)
            self._emitted[partition] = self._metadata[partition] = piece


class AttemptFirst(BatchAware, BasicBolt):
    """Puts the `TransactionAttempt` in front of the values of a source spout's tuples, on each of the spout's ``streams``.

    The bolt announces nothing, because when a batch is repeated, Spark reads the same rows.
    """

    #: The name of the field that has the `TransactionAttempt`.
    FIELD = "tx"

    def __init__(self, streams: Iterable[StreamDeclaration]) -> None:
        self._streams = tuple(streams)
        self._takes_part = False

    def begin_batch(self, attempt: TransactionAttempt, announced: Any = None) -> None:
        """Keep the attempt, and begin a batch without rows."""
        self._attempt, self._takes_part = attempt, False

    @property
    def takes_part(self) -> bool:
        """Whether this task has received a tuple in this batch. If it has, bolts are told of the end of the batch."""
        return self._takes_part

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Emit the tuple's values with the attempt in front."""
        self._takes_part = True
        collector.emit((self._attempt, *tup.values), tup.source_stream)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the source's streams. Each stream has one more field, in front of the others."""
        for stream in self._streams:
            declarer.declare_stream(stream.id, Fields(self.FIELD, *stream.fields))
