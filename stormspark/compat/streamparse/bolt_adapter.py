"""Runs a pystorm bolt inside a task. The code that runs once per tuple is in `passage`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stormspark.api import DEFAULT_STREAM, OutputCollector, TopologyContext, TupleSource
from stormspark.api import Tuple as ApiTuple
from stormspark.compat.streamparse.adapter import Adapter, handle
from stormspark.compat.streamparse.bolt import BatchingBolt, TicklessBatchingBolt
from stormspark.compat.streamparse.bolt import Bolt as PystormBolt
from stormspark.compat.streamparse.component import Surroundings, begin
from stormspark.compat.streamparse.early import secs_between_batches, with_task_ids
from stormspark.compat.streamparse.passage import Passage
from stormspark.compat.streamparse.tuples import Tuple, values_type
from stormspark.errors import EmitError
from stormspark.spi import AutoAckBolt, Line
from stormspark.worker.tuples.outlets import Outlet

__all__ = ["BatchingBoltAdapter", "BoltAdapter", "BoltSurroundings"]


class BoltSurroundings(Surroundings):
    """A bolt's view of its task: the current tuple, and the open tuples that the bolt may name by their ids."""

    def __init__(self, bolt: PystormBolt, context: TopologyContext, collector: OutputCollector) -> None:
        super().__init__(context, collector)
        self.collector = collector
        #: The open tuples whose ``id`` the bolt has read, by id. For these tuples, the bolt can ack, fail and anchor by the id.
        self.named: dict[str, Tuple] = {}
        # The passage must not ack the tuples of a BatchingBolt, because the bolt does that when it has processed a batch.
        self.passage = Passage(bolt, self, acks=not isinstance(bolt, BatchingBolt))

    @property
    def tup(self) -> Tuple | None:
        """The current tuple."""
        return self.passage.tup  # type: ignore[no-any-return]

    @property
    def batch(self) -> list[Tuple] | None:
        """The tuples that emits are anchored to; None if emits are anchored to the current tuple."""
        return self.passage.batch  # type: ignore[no-any-return]

    @batch.setter
    def batch(self, batch: list[Tuple] | None) -> None:
        self.passage.batch = batch

    @property
    def anchors(self) -> list[Tuple]:
        """The tuples to which an emit is anchored if it names no anchors: the batch, or else the current tuple."""
        if self.batch is not None:
            return self.batch
        return [] if self.tup is None else [self.tup]

    def ack(self, tup: Tuple | str) -> None:
        """Ack a tuple."""
        if (known := self._taken(tup)) is not None:
            self.collector.ack(known)
        else:
            self._unknown("ack", tup)

    def fail(self, tup: Tuple | str) -> None:
        """Fail a tuple."""
        if (known := self._taken(tup)) is not None:
            self.collector.fail(known)
        else:
            self._unknown("fail", tup)

    def fail_open(self, tup: Tuple, error: Exception) -> None:
        """Fail a tuple because of ``error``, unless it was already acked or failed."""
        if tup.state != 1:
            self.forget(tup)
            self.collector.fail(tup, f"{type(error).__name__}: {error}"[:1000])

    def of(self, anchors: Iterable[Tuple | str]) -> list[ApiTuple]:
        """Return the tuples for these anchors, each a tuple or an id.

        Raises `EmitError` for an anchor that was already acked or failed, and for an unknown id.
        """
        return [self._anchor(one) for one in anchors]

    def _anchor(self, tup: Tuple | str) -> Tuple:
        found = tup if isinstance(tup, Tuple) else self.named.get(tup)
        if found is None or found.state == 1:
            msg = (
                f"emit is anchored to {tup!r}, which is acked or failed already, or was never given to this task: emit "  # I12
                f"first, then ack"
            )
            raise EmitError(msg)
        return found

    def _taken(self, tup: Tuple | str) -> Tuple | None:
        """Return the tuple to ack or fail, and forget its id. Return None if it is not open, or if its id is unknown."""
        found = tup if isinstance(tup, Tuple) else self.named.get(tup)
        if found is None or found.state == 1:
            return None
        self.forget(found)
        return found

    def forget(self, tup: Tuple) -> None:
        """Forget a tuple's id. From now on, the bolt can't name the tuple by this id."""
        if tup._id is not None:
            self.named.pop(tup._id, None)

    def _unknown(self, what: str, tup: Tuple | str) -> None:
        self.reports.report_error(
            f"{what} of {tup!r}, which is acked or failed already, or was never given to this task; it changes nothing"  # E14
        )


class BoltAdapter(Adapter[PystormBolt], AutoAckBolt):
    """The adapter that runs a pystorm bolt."""

    _bolt: PystormBolt

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Make the bolt and start it."""
        self._bolt = bolt = self.component()
        self._surroundings = surroundings = bolt._stormspark = BoltSurroundings(bolt, context, collector)
        passage = surroundings.passage
        self.new_tuple = Tuple.maker(passage)
        emit: Callable[..., list[int] | None] = passage.emit
        bolt._emit = with_task_ids(emit) if self.early else emit
        if type(bolt).emit is PystormBolt.emit:
            bolt.emit = bolt._emit  # type: ignore[method-assign]
        begin(bolt, conf, context, early=self.early)
        secs = bolt.secs_between_batches if isinstance(bolt, TicklessBatchingBolt) else None
        if self.early and secs is None:
            secs = secs_between_batches(bolt, conf)
        if secs is not None and isinstance(bolt, BatchingBolt):
            context.set_timer(secs, _batch_processor(bolt, surroundings))
        passage.arriving(_facts_of_sources(context))
        self.execute = passage.execute  # type: ignore[method-assign]
        self.executor = passage

    def execute(self, tup: ApiTuple) -> object:  # type: ignore[override]
        """Raise NotImplementedError. This is never called, because `prepare` replaces the method by a function."""
        raise NotImplementedError

    def connected(self, line: Callable[[str], Line | None]) -> None:
        """Look up the outlets of all streams that are not direct, so that an emit need not do that."""
        passage = self._surroundings.passage
        found = {name: line(name) for name, stream in self.streams.items() if not stream.direct}
        passage.lines = {name: outlet for name, outlet in found.items() if isinstance(outlet, Outlet)}
        passage.line = passage.lines.get(DEFAULT_STREAM)


class BatchingBoltAdapter(BoltAdapter):
    """The adapter that runs a pystorm bolt which collects tuples (C17, C18)."""

    _bolt: BatchingBolt

    def end_of_input(self) -> None:
        """Process the batches, because no further tick would find more tuples in them."""
        bolt = self._bolt
        if bolt._batches:
            _batch_processor(bolt, self._surroundings)()


def _batch_processor(bolt: BatchingBolt, surroundings: BoltSurroundings) -> Callable[[], None]:
    def process_batches() -> None:
        try:
            bolt.process_batches()
        except Exception as error:
            handle(bolt, error)
        finally:
            surroundings.batch = None

    return process_batches


#: Two facts about all tuples of one `TupleSource`: the type of their values, and whether other tasks get the same values.
_Facts = tuple[type[tuple[Any, ...]], bool]


def _facts_of_sources(context: TopologyContext) -> Callable[[TupleSource], _Facts]:
    """Return a function from a `TupleSource` to its `_Facts`."""
    fields = {(key.component, key.stream): tuple(names) for key, names in context.this_input_fields.items()}

    def look(source: TupleSource) -> _Facts:
        component, stream = source.component, source.stream
        names = fields.get((component, stream))
        if names is None:  # a tick
            return tuple, False
        targets = context.targets(component).get(stream, {})
        shared = len(targets) > 1 or not all(grouping.single for grouping in targets.values())
        return values_type(component, stream, names), shared

    known: dict[TupleSource, _Facts] = {}

    def source_of(source: TupleSource) -> _Facts:
        found = known.get(source)
        if found is None:
            found = known[source] = look(source)
        return found

    return source_of
