"""What users write as the spout of a transactional topology (G3, G4), in three kinds.

| spout | what a batch is | when it comes again |
| --- | --- | --- |
| `TransactionalSpout` | what its coordinator's metadata says | the same metadata, and so the same tuples |
| `PartitionedTransactionalSpout` | a piece of each partition, chosen by the emitters | the same pieces |
| `OpaquePartitionedTransactionalSpout` | a piece of each partition | maybe other ones, after the same position |
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
    """Says what each batch is; there is one, in one task."""

    @abstractmethod
    def initialize_transaction(self, txid: int, previous: M | None) -> M:
        """The metadata of transaction ``txid``, from which the emitters make its tuples, whenever they are asked.

        ``previous`` is that of the transaction before, None before the first. Called again for the same ``txid`` only where
        no committer can have heard of the transaction yet. `FailedException`: not now. Metadata can be anything that can be
        pickled.
        """

    def is_ready(self) -> bool:
        """Whether there is anything for a new transaction; asked before each one, and often."""
        return True

    def close(self) -> None:
        """The topology ends gracefully."""


class Emitter(ABC, Generic[M]):
    """Emits its part of each batch; each task of the spout has one."""

    @abstractmethod
    def emit_batch(self, attempt: TransactionAttempt, metadata: M, collector: BatchOutputCollector) -> None:
        """Emit this task's tuples of a transaction: always the same for the same ``txid``, each with ``attempt`` first."""

    def cleanup_before(self, txid: int) -> None:
        """Transactions up to ``txid`` are committed, and those before it can be forgotten."""

    def close(self) -> None:
        """The topology ends gracefully."""


class TransactionalSpout(Component, ABC, Generic[M]):
    """A coordinator and its emitters (G3).

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
        """Called once in the coordinator's task."""

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> Emitter[M]:
        """Called once in each of the spout's tasks."""


class PartitionedCoordinator(ABC):
    """Says how many partitions there are."""

    @abstractmethod
    def num_partitions(self) -> int:
        """How many, at this moment; it may grow from one transaction to the next."""

    def is_ready(self) -> bool:
        """Whether a new transaction may begin."""
        return True

    def close(self) -> None:  # noqa: B027 - there may be nothing to do
        """The topology ends gracefully."""


class PartitionedEmitter(ABC, Generic[M]):
    """Emits pieces of partitions: task i of m has the partitions i, i + m, i + 2m ... (G4)."""

    @abstractmethod
    def emit_partition_batch_new(
        self,
        attempt: TransactionAttempt,
        collector: BatchOutputCollector,
        partition: int,
        previous: M | None,
    ) -> M:
        """Emit a new piece of a partition; returns what tells the same piece again, and where it ends.

        ``previous`` is what was returned for the transaction before, None where there was none.
        """

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, metadata: M
    ) -> None:
        """Emit exactly the piece again that ``metadata`` tells."""

    def close(self) -> None:
        """The topology ends gracefully."""


class PartitionedTransactionalSpout(Component, ABC, Generic[M]):
    """A spout over partitions that can give any piece again (G4)."""

    @abstractmethod
    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedCoordinator:
        """Called once in the coordinator's task."""

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedEmitter[M]:
        """Called once in each of the spout's tasks."""


class OpaqueCoordinator:
    """Says whether a new transaction may begin."""

    def is_ready(self) -> bool:
        """Whether it may."""
        return True

    def close(self) -> None:
        """The topology ends gracefully."""


class OpaqueEmitter(ABC, Generic[M]):
    """Emits pieces of partitions: task i of m has the partitions i, i + m, i + 2m ... (G4)."""

    @abstractmethod
    def emit_partition_batch(
        self,
        attempt: TransactionAttempt,
        collector: BatchOutputCollector,
        partition: int,
        previous: M | None,
    ) -> M:
        """Emit a piece that begins where the last transaction that was committed ended; returns where this one ends.

        ``previous`` is what was returned for that transaction, None where there was none.
        """

    @abstractmethod
    def num_partitions(self) -> int:
        """How many there are, at this moment."""

    def close(self) -> None:
        """The topology ends gracefully."""


class OpaquePartitionedTransactionalSpout(Component, ABC, Generic[M]):
    """A spout over partitions that may give another piece when a transaction comes again (G4).

    Then the same transaction may have other tuples, and only opaque state counts each of them once (G8, G16).
    """

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaqueCoordinator:
        """Called once in the coordinator's task."""
        return OpaqueCoordinator()

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaqueEmitter[M]:
        """Called once in each of the spout's tasks."""
