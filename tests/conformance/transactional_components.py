"""Transactional spouts, batch bolts and committers; what they do is written to files."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    FailedException,
    Fields,
    OutputFieldsDeclarer,
    TopologyContext,
    Tuple,
)
from stormspark.transactional import (
    BatchBolt,
    BatchOutputCollector,
    Committer,
    Coordinator,
    OpaqueCoordinator,
    OpaqueEmitter,
    OpaquePartitionedTransactionalSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
    PartitionedTransactionalSpout,
    TransactionAttempt,
)
from tests.conformance.components import Effects
from tests.repeatable_spouts import RangeEmitter, Ranges

#: Transactions that begin, those that come again among them: more than it takes for all pieces.
ENOUGH = 20


class DrawnRanges(Ranges):
    """The numbers below ``total``. A transaction has between one and ``most``, drawn at random: only its metadata tells which."""

    def __init__(self, total: int, most: int) -> None:
        self.total, self.most = total, most

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> DrawnRangeCoordinator:
        return DrawnRangeCoordinator(self.total, self.most, Effects(conf, context))

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> CleanedRangeEmitter:
        return CleanedRangeEmitter(context)


class DrawnRangeCoordinator(Coordinator[tuple[int, int]]):
    def __init__(self, total: int, most: int, effects: Effects) -> None:
        self.total, self.most, self.effects = total, most, effects
        self.done = False

    def initialize_transaction(self, txid: int, previous: tuple[int, int] | None) -> tuple[int, int]:
        begin = previous[1] if previous else 0
        if begin >= self.total:
            self.done = True
            message = "all numbers are out"
            raise FailedException(message)
        end = min(self.total, begin + random.randint(1, self.most))
        self.effects.write(txid, begin, end)
        return begin, end

    def is_ready(self) -> bool:
        return not self.done


class CleanedRangeEmitter(RangeEmitter):
    def __init__(self, context: TopologyContext) -> None:
        super().__init__(context)
        self.committed = 0

    def cleanup_before(self, txid: int) -> None:
        assert txid >= self.committed
        self.committed = txid


class Pieces(PartitionedTransactionalSpout[tuple[int, int]]):
    """Partition p has p * 1000, p * 1000 + 1, ...; a piece has a random length."""

    def __init__(self, partitions: int, size: int) -> None:
        self.partitions, self.size = partitions, size

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PieceCoordinator:
        return PieceCoordinator(self.partitions, Effects(conf, context))

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> PieceEmitter:
        return PieceEmitter(self.size, self.partitions, Effects(conf, context))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "number"))


class PieceCoordinator(PartitionedCoordinator):
    def __init__(self, partitions: int, effects: Effects) -> None:
        self.partitions, self.effects = partitions, effects

    def num_partitions(self) -> int:
        self.effects.write("asked")
        return self.partitions

    def is_ready(self) -> bool:
        return len(self.effects.read()) < ENOUGH


class PieceEmitter(PartitionedEmitter[tuple[int, int]]):
    def __init__(self, size: int, partitions: int, effects: Effects) -> None:
        self.size, self.effects = size, effects

    def emit_partition_batch_new(
        self,
        attempt: TransactionAttempt,
        collector: BatchOutputCollector,
        partition: int,
        previous: tuple[int, int] | None,
    ) -> tuple[int, int]:
        begin = previous[1] if previous else 0
        piece = begin, min(self.size, begin + random.randint(1, 10))
        self.effects.write("new", attempt.txid, partition)
        self._emit(attempt, collector, partition, piece)
        return piece

    def emit_partition_batch(
        self,
        attempt: TransactionAttempt,
        collector: BatchOutputCollector,
        partition: int,
        metadata: tuple[int, int],
    ) -> None:
        self.effects.write("again", attempt.txid, partition)
        self._emit(attempt, collector, partition, metadata)

    def _emit(
        self,
        attempt: TransactionAttempt,
        collector: BatchOutputCollector,
        partition: int,
        piece: tuple[int, int],
    ) -> None:
        for number in range(*piece):
            collector.emit((attempt, partition * 1000 + number))


class OpaquePieces(OpaquePartitionedTransactionalSpout[int]):
    """The same, and a piece that comes again may have another length."""

    def __init__(self, partitions: int, size: int) -> None:
        self.partitions, self.size = partitions, size

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePieceEmitter:
        return OpaquePieceEmitter(self.partitions, self.size)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePieceCoordinator:
        return OpaquePieceCoordinator(Effects(conf, context))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "number"))


class OpaquePieceCoordinator(OpaqueCoordinator):
    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    def is_ready(self) -> bool:
        self.effects.write("asked")
        return len(self.effects.read()) < ENOUGH


class OpaquePieceEmitter(OpaqueEmitter[int]):
    def __init__(self, partitions: int, size: int) -> None:
        self.partitions, self.size = partitions, size

    def num_partitions(self) -> int:
        return self.partitions

    def emit_partition_batch(
        self,
        attempt: TransactionAttempt,
        collector: BatchOutputCollector,
        partition: int,
        previous: int | None,
    ) -> int:
        begin = previous or 0
        end = min(self.size, begin + random.randint(1, 10))
        for number in range(begin, end):
            collector.emit((attempt, partition * 1000 + number))
        return end


class Unlucky(BasicBolt):
    """Passes on; fails a tuple now and then."""

    def __init__(self, chance: float) -> None:
        self.chance = chance

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        if random.random() < self.chance:
            raise FailedException("bad luck")
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "number"))


class Partial(BatchBolt):
    """Emits its batch's numbers, in a list, when that is over; ``chance`` is that of a failure then."""

    def __init__(self, chance: float = 0.0) -> None:
        self.chance = chance

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        self.collector, self.attempt = collector, attempt
        self.numbers: list[int] = []
        self.effects = Effects(conf, context)

    def execute(self, tup: Tuple) -> None:
        assert tup[0] == self.attempt
        got = tup["number"]
        self.numbers += got if isinstance(got, list) else [got]

    def finish_batch(self) -> None:
        self.effects.write(*self.attempt, len(self.numbers))
        if random.random() < self.chance:
            raise FailedException("bad luck")
        self.collector.emit((self.attempt, self.numbers))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "number"))


class Write(Committer, Partial):
    """Writes what it commits, then may fail, the first time surely: what is outside of the topology stays."""

    def finish_batch(self) -> None:
        first = not self.effects.read()
        self.effects.write(*self.attempt, sorted(self.numbers))
        self.collector.emit((self.attempt, self.numbers))
        if self.chance and (first or random.random() < self.chance):
            raise FailedException("after the fact")


class Seen(Partial):
    """After a committer."""

    def finish_batch(self) -> None:
        self.effects.write(*self.attempt, sorted(self.numbers))
