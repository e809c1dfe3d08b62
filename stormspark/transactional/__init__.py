"""Transactional topologies (G1-G8): batches of tuples, each with a number (its txid), committed in the order of the numbers.

    coordinator -> emitter -> bolts ... -> committers
    defines the batch         finish_batch   finish_batch, after all others, one transaction at a time

Only committers may change anything outside of the topology. They store the number of the transaction with what they change, and
check it before a change (`stormspark.map_state`). So each batch counts once, whichever process dies in between.
"""

from stormspark.spi import TransactionAttempt
from stormspark.transactional.batch_bolt import BatchBolt, BatchOutputCollector, Committer
from stormspark.transactional.builder import TransactionalTopologyBuilder
from stormspark.transactional.spouts import (
    Coordinator,
    Emitter,
    OpaqueCoordinator,
    OpaqueEmitter,
    OpaquePartitionedTransactionalSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
    PartitionedTransactionalSpout,
    TransactionalSpout,
)

__all__ = [
    "BatchBolt",
    "BatchOutputCollector",
    "Committer",
    "Coordinator",
    "Emitter",
    "OpaqueCoordinator",
    "OpaqueEmitter",
    "OpaquePartitionedTransactionalSpout",
    "PartitionedCoordinator",
    "PartitionedEmitter",
    "PartitionedTransactionalSpout",
    "TransactionAttempt",
    "TransactionalSpout",
    "TransactionalTopologyBuilder",
]
