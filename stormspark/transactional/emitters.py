"""The tasks of a transactional spout: bolts that hear what the batch is, and emit their part of it (G3, G4)."""

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
    """What they share: the user's spout, which declares what they emit."""

    _spout: Any

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Make the user's emitter."""
        self._index = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))
        self._place = f"component {context.this_component_id!r}, task {context.this_task_id}"
        self._emitter: Any = self._spout.get_emitter(conf, context)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """The coordinator says what the batch is."""
        attempt, metadata, committed = tup.values
        self.emit_batch(attempt, metadata, emitted_through(collector, attempt, self._place))
        if committed is not None:
            self.cleanup_before(committed)

    @abstractmethod
    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """Emit this task's part."""

    def cleanup_before(self, txid: int) -> None:
        """Transactions up to this one are committed."""

    def cleanup(self) -> None:
        """Close the user's."""
        self._emitter.close()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """The spout's own."""
        self._spout.declare_output_fields(declarer)

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """The spout's own."""
        return self._spout.get_component_configuration()  # type: ignore[no-any-return]


class EmitterBolt(_SpoutBolt):
    """Of a `TransactionalSpout`."""

    def __init__(self, spout: TransactionalSpout[Any]) -> None:
        self._spout = spout

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """As the user's emitter does."""
        self._emitter.emit_batch(attempt, metadata, collector)

    def cleanup_before(self, txid: int) -> None:
        """Tell the user's emitter."""
        self._emitter.cleanup_before(txid)


class OpaqueEmitterBolt(StatefulComponent, _SpoutBolt):
    """Of an `OpaquePartitionedTransactionalSpout`: where each partition ended is state, which is committed with the batch."""

    def __init__(self, spout: OpaquePartitionedTransactionalSpout[Any]) -> None:
        self._spout = spout

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """What was returned last, by partition."""
        self._metadata = state

    def pre_save(self, checkpoint_id: int) -> None:
        """It is there already."""

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """Each partition on from where the last transaction that was committed ended."""
        for partition in self._mine(self._emitter.num_partitions()):
            previous = self._metadata.get(partition)
            self._metadata[partition] = self._emitter.emit_partition_batch(
                attempt, collector, partition, previous
            )

    def _mine(self, partitions: int) -> Iterable[int]:
        return range(self._index, partitions, self._tasks)


class PartitionedEmitterBolt(BatchAware, OpaqueEmitterBolt):
    """Of a `PartitionedTransactionalSpout`: what was announced is emitted again exactly."""

    announces: ClassVar[bool] = True

    def __init__(self, spout: PartitionedTransactionalSpout[Any]) -> None:
        self._spout = spout
        self._announced: Mapping[int, Any] = {}
        self._emitted: dict[int, Any] = {}

    def begin_batch(self, attempt: TransactionAttempt, announced: Any = None) -> None:
        """Pieces of partitions that are to be emitted again."""
        self._announced, self._emitted = announced or {}, {}

    @property
    def takes_part(self) -> bool:
        """The coordinator speaks for it."""
        return False

    def announcement(self) -> Any:
        """The pieces of this batch, by partition."""
        return self._emitted or None

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        """The same pieces again where they are known, else new ones; the coordinator says how many partitions there are."""
        for partition in self._mine(metadata):
            if partition in self._announced:
                piece = self._announced[partition]
                self._emitter.emit_partition_batch(attempt, collector, partition, piece)
            else:
                previous = self._metadata.get(partition)
                piece = self._emitter.emit_partition_batch_new(attempt, collector, partition, previous)
            self._emitted[partition] = self._metadata[partition] = piece


class AttemptFirst(BatchAware, BasicBolt):
    """Puts the attempt in front of what a source spout emits, on each of its ``streams``: Spark gives the same rows again."""

    #: The name of the first field.
    FIELD = "tx"

    def __init__(self, streams: Iterable[StreamDeclaration]) -> None:
        self._streams = tuple(streams)
        self._takes_part = False

    def begin_batch(self, attempt: TransactionAttempt, announced: Any = None) -> None:
        """No row yet."""
        self._attempt, self._takes_part = attempt, False

    @property
    def takes_part(self) -> bool:
        """A row has come: there is a transaction in this batch."""
        return self._takes_part

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Emit it."""
        self._takes_part = True
        collector.emit((self._attempt, *tup.values), tup.source_stream)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """The source's streams, with a field more."""
        for stream in self._streams:
            declarer.declare_stream(stream.id, Fields(self.FIELD, *stream.fields))
