"""The spout that runs a user's coordinator. It begins at most one transaction per batch, and keeps the metadata (G3, G5).

Storm stores metadata in ZooKeeper before any component may act on it. In stormspark, the metadata is part of the batch's own
commit, which comes after committers have acted. So if there are committers, the metadata is also *announced*: when all other
bolts have finished the batch, the driver stores the metadata before the first committer acts. A repeated batch gets the announced
metadata again, whichever process has died.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, MutableMapping
from typing import Any, ClassVar

from stormspark.api import Fields, OutputFieldsDeclarer, Spout, SpoutOutputCollector, TopologyContext
from stormspark.api.state import StatefulComponent
from stormspark.errors import FailedException
from stormspark.spi import BatchAware, TransactionAttempt
from stormspark.transactional.spouts import (
    Coordinator,
    OpaqueCoordinator,
    OpaquePartitionedTransactionalSpout,
    PartitionedCoordinator,
    PartitionedTransactionalSpout,
    TransactionalSpout,
)

__all__ = ["BATCH_STREAM", "AnyTransactionalSpout", "TransactionalSpoutCoordinator"]

BATCH_STREAM = "batch"
_LAST = "last"

AnyTransactionalSpout = (
    TransactionalSpout[Any] | PartitionedTransactionalSpout[Any] | OpaquePartitionedTransactionalSpout[Any]
)


class TransactionalSpoutCoordinator(StatefulComponent, BatchAware, Spout):
    """Emits the tuple (attempt, metadata, txid of the last committed transaction), at most once per batch.

    In the first transaction, the last committed txid is None. The metadata of a partitioned spout is its number of partitions. An
    opaque spout has no metadata.
    """

    announces: ClassVar[bool] = True

    def __init__(self, spout: AnyTransactionalSpout) -> None:
        self._spout = spout
        self._attempt: TransactionAttempt | None = None
        self._emitted: tuple[Any] | None = None
        self._refused = False

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Keep the state. It has the txid and the metadata of the last transaction."""
        self._state = state

    def pre_save(self, checkpoint_id: int) -> None:
        """Save the transaction of this batch as the last one."""
        if self._emitted is not None and self._attempt is not None:
            self._state[_LAST] = self._attempt.txid, self._emitted[0]

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Make the user's coordinator."""
        self._collector, self._logger = collector, context.logger
        self._coordinator = self._spout.get_coordinator(conf, context)

    def begin_batch(self, attempt: TransactionAttempt, announced: Any = None) -> None:
        """Allow one transaction. If an earlier attempt has announced metadata, the transaction must begin in this batch."""
        self._attempt, self._announced, self._emitted = attempt, announced, None

    @property
    def takes_part(self) -> bool:
        """Whether there is a transaction in this batch."""
        return self._emitted is not None

    def announcement(self) -> Any:
        """Return the transaction's metadata inside of a Python tuple, because metadata can be None.

        Return None if there is no transaction in this batch.
        """
        return self._emitted

    def next_tuple(self) -> None:
        """Begin the batch's transaction, unless it has begun already or no transaction can begin now."""
        attempt = self._attempt
        if attempt is None or self._emitted is not None:
            return
        last, metadata = self._state.get(_LAST, (None, None))
        if self._announced is not None:
            (metadata,) = self._announced
        elif self._coordinator.is_ready():
            try:
                metadata = self._initialized(attempt.txid, metadata)
            except FailedException as error:
                if not self._refused:  # Warn once, because the coordinator is called again in every batch.
                    self._logger.warning("transaction %d can't begin now: %s", attempt.txid, error)
                self._refused = True
                return
        else:
            return
        self._emitted, self._refused = (metadata,), False
        self._collector.emit((attempt, metadata, last), BATCH_STREAM, message_id=attempt)

    def _initialized(self, txid: int, previous: Any) -> Any:
        coordinator = self._coordinator
        if isinstance(coordinator, Coordinator):
            return coordinator.initialize_transaction(txid, previous)
        if isinstance(coordinator, PartitionedCoordinator):
            return coordinator.num_partitions()
        assert isinstance(coordinator, OpaqueCoordinator), coordinator
        return None

    def ack(self, message_id: Hashable) -> None:
        """Do nothing. A committed transaction needs no further action."""

    def close(self) -> None:
        """Close the user's coordinator."""
        self._coordinator.close()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the stream that the emitters subscribe to."""
        declarer.declare_stream(BATCH_STREAM, Fields("tx", "tx-meta", "committed-txid"))
