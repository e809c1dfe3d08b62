"""`TransactionalTopologyBuilder` turns a transactional topology into an ordinary one (G1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark.api import (
    BasicBolt,
    BoltDeclarer,
    OutputFieldsDeclarer,
    SourceSpout,
    SpoutDeclarer,
    Topology,
    TopologyBuilder,
)
from stormspark.api.declarers import described
from stormspark.api.state import StatefulComponent, TwoPhaseStatefulComponent
from stormspark.config import merged
from stormspark.coroutines import problem_with_coroutine
from stormspark.errors import InvalidTopologyError
from stormspark.transactional.batch_bolt import BatchBolt, BatchBoltExecutor, StatefulBatchBoltExecutor
from stormspark.transactional.coordinator import (
    BATCH_STREAM,
    AnyTransactionalSpout,
    TransactionalSpoutCoordinator,
)
from stormspark.transactional.emitters import (
    AttemptFirst,
    EmitterBolt,
    OpaqueEmitterBolt,
    PartitionedEmitterBolt,
)
from stormspark.transactional.spouts import (
    OpaquePartitionedTransactionalSpout,
    PartitionedTransactionalSpout,
    TransactionalSpout,
)
from stormspark.user_line import user_line

__all__ = ["TransactionalTopologyBuilder"]

_TRANSACTIONAL_ID = "topology.transactional.id"


class TransactionalTopologyBuilder:
    """Builds a topology of a spout and bolts. Some of the bolts process whole batches (G1).

    ``spout`` may be one of the three kinds of spouts in `stormspark.transactional`. Its coordinator runs as the component
    ``<spout_id>/coordinator``, and its emitters run in ``parallelism`` tasks of ``<spout_id>``. Or ``spout`` may be any source
    spout, such as KafkaSpout. Then Spark decides which rows a batch has. The source spout runs as ``<spout_id>/source``. The
    bolt ``<spout_id>`` puts the `TransactionAttempt` in front of the values of the source's tuples, as the field ``tx``.

    In Storm, ``id`` identifies the topology's state. In stormspark the checkpoint folder identifies it. ``id`` is only a setting
    in the configuration, and the topology's default name.

    Each micro-batch has at most one transaction, whose txid is the number of the micro-batch, counted from 1. So txids grow, and
    they have gaps for micro-batches without a transaction. Transactions do not overlap (G5), because a micro-batch already uses
    all cores.

    >>> from stormspark import Fields
    >>> from stormspark.connectors import FileSpout
    >>> from stormspark.transactional import BatchBolt, Committer
    >>> class Count(BatchBolt):
    ...     def prepare(self, conf, context, collector, attempt):
    ...         self.collector, self.attempt, self.count = collector, attempt, 0
    ...     def execute(self, tup):
    ...         self.count += 1
    ...     def finish_batch(self):
    ...         self.collector.emit((self.attempt, self.count))
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("tx", "count"))
    >>> class Total(Committer, Count):
    ...     def execute(self, tup):
    ...         self.count += tup["count"]
    >>> builder = TransactionalTopologyBuilder("counts", "lines", FileSpout("/data/lines"), parallelism=2)
    >>> _ = builder.set_bolt("count", Count(), 4).shuffle_grouping("lines")
    >>> _ = builder.set_bolt("total", Total()).global_grouping("count")
    >>> sorted(builder.create_topology("count-lines").components)
    ['count', 'lines', 'lines/source', 'total']
    """

    def __init__(
        self,
        id: str,
        spout_id: str,
        spout: AnyTransactionalSpout | SourceSpout,
        parallelism: int | None = None,
    ) -> None:
        if not isinstance(id, str) or not id:
            msg = (
                f"{user_line()}: a transactional topology's id must be a string that is not empty, got {id!r}"
            )
            raise InvalidTopologyError(msg)
        self._id = id
        self._builder = TopologyBuilder()
        tasks = 1 if parallelism is None else parallelism
        if isinstance(spout, SourceSpout):
            self._spout_declarer = self._add_source(spout_id, spout, tasks)
            return
        coordinator = f"{spout_id}/coordinator"
        emitter: BasicBolt
        match spout:
            case TransactionalSpout():
                emitter = EmitterBolt(spout)
            case PartitionedTransactionalSpout():
                emitter = PartitionedEmitterBolt(spout)
            case OpaquePartitionedTransactionalSpout():
                emitter = OpaqueEmitterBolt(spout)
            case _:
                msg = (
                    f"{user_line()}: spout {spout_id!r} of a transactional topology must be a TransactionalSpout, a "
                    f"PartitionedTransactionalSpout, an OpaquePartitionedTransactionalSpout or a SourceSpout, got "
                    f"{described(spout)}"
                )
                raise InvalidTopologyError(msg)
        self._spout_declarer = self._builder.set_spout(coordinator, TransactionalSpoutCoordinator(spout))
        self._spout_declarer.set_max_task_parallelism(1)
        self._builder.set_bolt(spout_id, emitter, tasks).all_grouping(coordinator, BATCH_STREAM)

    @property
    def spout_declarer(self) -> SpoutDeclarer:
        """The declarer of the coordinator or of the source spout. Use it to set the spout's configuration."""
        return self._spout_declarer

    def set_bolt(self, component_id: str, bolt: BatchBolt | BasicBolt, parallelism: int = 1) -> BoltDeclarer:
        """Add a bolt that processes whole batches or single tuples. A bolt derived from `Committer` is a committer.

        Raises `InvalidTopologyError` for any other kind of bolt, for a batch bolt that is a `TwoPhaseStatefulComponent`, and for
        the same reasons as `TopologyBuilder.set_bolt`.
        """
        if isinstance(bolt, BasicBolt):
            return self._builder.set_bolt(component_id, bolt, parallelism)
        return self._add(component_id, bolt, parallelism, committer=False)

    def set_committer_bolt(self, component_id: str, bolt: BatchBolt, parallelism: int = 1) -> BoltDeclarer:
        """Add a committer. Its ``finish_batch`` is called once that of all bolts has returned, except for committers and bolts
        behind a committer. It is called for one transaction at a time (G5, G6).
        """
        return self._add(component_id, bolt, parallelism, committer=True)

    def create_topology(self, name: str | None = None, conf: Mapping[str, Any] | None = None) -> Topology:
        """Return the topology, as `TopologyBuilder.create_topology` does. By default its name is the builder's ``id``."""
        return self._builder.create_topology(
            name or self._id, merged({_TRANSACTIONAL_ID: self._id}, conf or {})
        )

    def build_topology(self, name: str | None = None, conf: Mapping[str, Any] | None = None) -> Topology:
        """Return the topology as `create_topology` does. Storm calls this method ``buildTopology``."""
        return self.create_topology(name, conf)

    def _add(self, component_id: str, bolt: BatchBolt, parallelism: int, *, committer: bool) -> BoltDeclarer:
        if not isinstance(bolt, BatchBolt):
            wanted = "a BatchBolt" if committer else "a BatchBolt or a BasicBolt"
            msg = f"{user_line()}: bolt {component_id!r} must be {wanted}, got {described(bolt)}"
            raise InvalidTopologyError(msg)
        if isinstance(bolt, TwoPhaseStatefulComponent):
            msg = (
                f"{user_line()}: batch bolt {component_id!r} is a TwoPhaseStatefulComponent, but post_save would come when the "
                f"instance of its batch is gone: make it a StatefulComponent, or a BasicBolt"
            )
            raise InvalidTopologyError(msg)
        problem = problem_with_coroutine(
            bolt, ("prepare", "execute", "finish_batch"), "await in it by asyncio.run(...)"
        )
        if problem is not None:
            msg = f"{user_line()}: batch bolt {component_id!r}: {problem}"
            raise InvalidTopologyError(msg)
        kind = StatefulBatchBoltExecutor if isinstance(bolt, StatefulComponent) else BatchBoltExecutor
        return self._builder.set_bolt(component_id, kind(bolt, committer=committer), parallelism)

    def _add_source(self, spout_id: str, spout: SourceSpout, tasks: int) -> SpoutDeclarer:
        source = f"{spout_id}/source"
        declarer = self._builder.set_spout(source, spout, tasks)
        declared = OutputFieldsDeclarer(source)
        spout.declare_output_fields(declared)
        for stream in declared.streams.values():
            if AttemptFirst.FIELD in stream.fields:
                msg = (
                    f"{user_line()}: stream {stream.id!r} of spout {spout_id!r} has a field {AttemptFirst.FIELD!r}, but in a "
                    f"transactional topology the attempt has that name: rename the field"  # G2
                )
                raise InvalidTopologyError(msg)
        first = self._builder.set_bolt(spout_id, AttemptFirst(declared.streams.values()), tasks)
        for stream in declared.streams.values():
            first.local_or_shuffle_grouping(source, stream.id)
        return declarer
