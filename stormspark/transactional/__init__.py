"""Transactional topologies (G1-G8): numbered batches of tuples, which are committed in the order of their numbers (txids).

    coordinator -> emitter -> bolts ... -> committers
    defines the batch         finish_batch   finish_batch, after all others, one transaction at a time

Only committers may change anything outside of the topology. With each value that a committer changes, it stores the txid of the
transaction. Before it changes a value, it compares the value's stored txid with the present one (`stormspark.map_state`). So each
batch counts once, whichever process dies in between.
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
