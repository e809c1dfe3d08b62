"""The three kinds of spouts that users write for a transactional topology (G3, G4).

| spout | what a batch has | what the batch has when it is repeated |
| --- | --- | --- |
| `TransactionalSpout` | the tuples that its coordinator's metadata defines | the same metadata, and so the same tuples |
| `PartitionedTransactionalSpout` | a piece of each partition, chosen by the emitters | the same pieces |
| `OpaquePartitionedTransactionalSpout` | a piece of each partition | maybe other pieces, which begin at the same positions |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stormspark.api import Component, TopologyContext
from stormspark.spi import TransactionAttempt

if TYPE_CHECKING:
    from stormspark.transactional.batch_bolt import BatchOutputCollector

__all__ = [
    "Coordinator",
    "Emitter",
    "OpaqueCoordinator",
    "OpaqueEmitter",
    "OpaquePartitionedTransactionalSpout",
    "PartitionedCoordinator",
    "PartitionedEmitter",
    "PartitionedTransactionalSpout",
    "TransactionalSpout",
]

M = TypeVar("M")


class Coordinator(ABC, Generic[M]):
    """Defines each batch. A topology has one coordinator, in one task."""

    @abstractmethod
    def initialize_transaction(self, txid: int, previous: M | None) -> M:
        """Return the metadata of transaction ``txid``, from which the emitters make the transaction's tuples.

        ``previous`` is the metadata of the previous transaction; for the first transaction it is None. This method is called
        again for the same ``txid`` only if no committer can have finished that transaction. Raise `FailedException` if no
        transaction can begin now. Metadata can be any object that can be pickled.
        """

    def is_ready(self) -> bool:
        """Return whether there is data for a new transaction. This is called often, and before each new transaction."""
        return True

    def close(self) -> None:
        """Called when the topology ends gracefully."""


class Emitter(ABC, Generic[M]):
    """Emits one task's part of each batch. Each of the spout's tasks has an emitter of its own."""

    @abstractmethod
    def emit_batch(self, attempt: TransactionAttempt, metadata: M, collector: BatchOutputCollector) -> None:
        """Emit this task's tuples of a transaction, each with ``attempt`` first.

        The tuples must always be the same for the same ``txid``.
        """

    def cleanup_before(self, txid: int) -> None:
        """Forget the data of transactions before ``txid``. Called when all transactions up to ``txid`` are committed."""

    def close(self) -> None:
        """Called when the topology ends gracefully."""


class TransactionalSpout(Component, ABC, Generic[M]):
    """A spout that consists of a coordinator and its emitters (G3).

    >>> from stormspark import Fields
    >>> class UpTo(Coordinator[int]):
    ...     def __init__(self, last):
    ...         self.last, self.next = last, 0
    ...     def is_ready(self):
    ...         return self.next < self.last
    ...     def initialize_transaction(self, txid, previous):
    ...         self.next = (previous or 0) + 10
    ...         return self.next
    >>> class Numbers(Emitter[int]):
    ...     def emit_batch(self, attempt, metadata, collector):
    ...         for number in range(metadata - 10, metadata):
    ...             collector.emit((attempt, number))
    >>> class NumberSpout(TransactionalSpout[int]):
    ...     def get_coordinator(self, conf, context):
    ...         return UpTo(100)
    ...     def get_emitter(self, conf, context):
    ...         return Numbers()
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("tx", "number"))
    """

    @abstractmethod
    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> Coordinator[M]:
        """Return the coordinator. Called once, in the coordinator's task."""

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> Emitter[M]:
        """Return an emitter. Called once in each of the spout's tasks."""


class PartitionedCoordinator(ABC):
    """Returns the number of partitions, and whether a transaction may begin."""

    @abstractmethod
    def num_partitions(self) -> int:
        """Return the present number of partitions. It may grow from one transaction to the next."""

    def is_ready(self) -> bool:
        """Return whether a new transaction may begin."""
        return True

    def close(self) -> None:  # noqa: B027 - there may be nothing to do
        """Called when the topology ends gracefully."""


class PartitionedEmitter(ABC, Generic[M]):
    """Emits pieces of partitions. Task i of m has the partitions i, i + m, i + 2m ... (G4)."""

    @abstractmethod
    def emit_partition_batch_new(
        self,
        attempt: TransactionAttempt,
        collector: BatchOutputCollector,
        partition: int,
        previous: M | None,
    ) -> M:
        """Emit a new piece of a partition. Return the piece's metadata, which defines the piece and its end.

        ``previous`` is the metadata of the partition's previous piece, or None if there is no previous piece.
        """

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, metadata: M
    ) -> None:
        """Emit exactly the piece that ``metadata`` defines. The piece has been emitted before."""

    def close(self) -> None:
        """Called when the topology ends gracefully."""


class PartitionedTransactionalSpout(Component, ABC, Generic[M]):
    """A spout that reads partitions, and can emit any piece of them again (G4)."""

    @abstractmethod
    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedCoordinator:
        """Return the coordinator. Called once, in the coordinator's task."""

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedEmitter[M]:
        """Return an emitter. Called once in each of the spout's tasks."""


class OpaqueCoordinator:
    """Decides whether a new transaction may begin."""

    def is_ready(self) -> bool:
        """Return whether a new transaction may begin."""
        return True

    def close(self) -> None:
        """Called when the topology ends gracefully."""


class OpaqueEmitter(ABC, Generic[M]):
    """Emits pieces of partitions. Task i of m has the partitions i, i + m, i + 2m ... (G4)."""

    @abstractmethod
    def emit_partition_batch(
        self,
        attempt: TransactionAttempt,
        collector: BatchOutputCollector,
        partition: int,
        previous: M | None,
    ) -> M:
        """Emit a piece of a partition. It begins where the last committed transaction ended. Return the end of the piece.

        ``previous`` is the end that the last committed transaction returned for this partition. It is None if there is no such
        transaction.
        """

    @abstractmethod
    def num_partitions(self) -> int:
        """Return the present number of partitions."""

    def close(self) -> None:
        """Called when the topology ends gracefully."""


class OpaquePartitionedTransactionalSpout(Component, ABC, Generic[M]):
    """A spout that reads partitions, and may emit other pieces when a transaction is repeated (G4).

    So a repeated transaction may have other tuples than before. Only opaque state counts each tuple once nevertheless (G8, G16).
    """

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaqueCoordinator:
        """Return the coordinator. Called once, in the coordinator's task."""
        return OpaqueCoordinator()

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaqueEmitter[M]:
        """Return an emitter. Called once in each of the spout's tasks."""
