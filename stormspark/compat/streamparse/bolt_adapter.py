"""A pystorm bolt inside of a task.

A tuple comes through here once, an emit too, so `_executor` and `_emitter` make closures for one instance: what does not change
is looked up once. The tuple at hand is told apart from those that wait, so a tuple that is acked when ``process`` returns
never costs a look into a table; its id is its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

from stormspark.api import (
    DEFAULT_STREAM,
    Bolt,
    OutputCollector,
    OutputFieldsDeclarer,
    TopologyContext,
    TupleSource,
)
from stormspark.api import Tuple as ApiTuple
from stormspark.compat.streamparse.bolt import BatchingBolt, TicklessBatchingBolt
from stormspark.compat.streamparse.bolt import Bolt as PystormBolt
from stormspark.compat.streamparse.component import Surroundings, begin
from stormspark.compat.streamparse.shipping import packed, unpacked
from stormspark.compat.streamparse.streams import StreamInfo
from stormspark.compat.streamparse.tuples import Tuple, values_type
from stormspark.compat.streamparse.values import PLAIN, copied
from stormspark.errors import EmitError

__all__ = ["BoltAdapter", "BoltSurroundings"]


class BoltSurroundings(Surroundings):
    """The task of a bolt: the tuple at hand, as the engine has it (``origin``) and as the bolt does (``tup``), and what waits."""

    def __init__(self, context: TopologyContext, collector: OutputCollector) -> None:
        super().__init__(context, collector)
        self.collector = collector
        self.origin: ApiTuple | None = None
        self.tup: Tuple | None = None
        #: What emits are anchored to, where that is not the tuple at hand.
        self.batch: list[Tuple] | None = None
        #: The bolt has acked or failed the tuple at hand, of any thread.
        self.settled = False
        #: Tuples that were processed and neither acked nor failed.
        self.held: dict[str, ApiTuple] = {}

    @property
    def anchors(self) -> list[Tuple]:
        """What emits are anchored to."""
        if self.batch is not None:
            return self.batch
        return [] if self.tup is None else [self.tup]

    def ack(self, tup: Tuple | str) -> None:
        """Ack a tuple."""
        if (origin := self._taken(tup)) is not None:
            self.collector.ack(origin)
        else:
            self._unknown("ack", tup)

    def fail(self, tup: Tuple | str) -> None:
        """Fail a tuple."""
        if (origin := self._taken(tup)) is not None:
            self.collector.fail(origin)
        else:
            self._unknown("fail", tup)

    def fail_open(self, tup: Tuple, error: Exception) -> None:
        """Fail a tuple because of ``error``, unless it is acked or failed already."""
        origin = self._taken(tup)
        if origin is not None and origin.state != 1:
            self.collector.fail(origin, f"{type(error).__name__}: {error}"[:1000])

    def of(self, anchors: Iterable[Tuple | str]) -> list[ApiTuple]:
        """The engine's tuples of these; raises `EmitError` for one that is acked or failed already."""
        return [self._anchor(one) for one in anchors]

    def _anchor(self, tup: Tuple | str) -> ApiTuple:
        id = tup.id if isinstance(tup, Tuple) else tup
        if self.tup is not None and id == self.tup.id:
            assert self.origin is not None
            return self.origin
        origin = self.held.get(id)
        if origin is None:
            msg = (
                f"emit is anchored to {tup!r}, which is acked or failed already, or was never given to this task (I12): emit "
                f"first, then ack"
            )
            raise EmitError(msg)
        return origin

    def _taken(self, tup: Tuple | str) -> ApiTuple | None:
        """The engine's tuple, which is not held any more."""
        id = tup.id if isinstance(tup, Tuple) else tup
        if self.tup is not None and id == self.tup.id:
            self.settled = True
            return self.origin
        return self.held.pop(id, None)

    def _unknown(self, what: str, tup: Tuple | str) -> None:
        self.reports.report_error(
            f"{what} of {tup!r}, which is acked or failed already, or was never given to this task; it changes nothing (E14)"
        )


class BoltAdapter(Bolt):
    """Runs the pystorm bolt of a class, which is imported and made in the task."""

    def __init__(self, component: type[PystormBolt], streams: Mapping[str, StreamInfo]) -> None:
        self.component = component
        self.streams = dict(streams)

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (packed(self.component), self.streams)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the streams of ``outputs``."""
        for name, stream in self.streams.items():
            declarer.declare_stream(name, stream.output_fields, direct=stream.direct)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Make the bolt and let it begin."""
        bolt = self.component()
        surroundings = bolt._stormspark = BoltSurroundings(context, collector)
        bolt._emit = _emitter(bolt, surroundings)
        if type(bolt).emit is PystormBolt.emit:
            bolt.emit = bolt._emit  # type: ignore[method-assign]
        begin(bolt, conf, context)
        if isinstance(bolt, TicklessBatchingBolt):
            context.set_timer(bolt.secs_between_batches, _batch_processor(bolt, surroundings))
        self.execute = _executor(bolt, surroundings, context)  # type: ignore[assignment, method-assign]

    def execute(self, tup: ApiTuple) -> None:
        """Replaced by a function of the instance."""
        raise NotImplementedError


def _revived(component: bytes, streams: Mapping[str, StreamInfo]) -> BoltAdapter:
    return BoltAdapter(unpacked(component), streams)


def _emitter(bolt: PystormBolt, surroundings: BoltSurroundings) -> Callable[..., list[int] | None]:
    collector, plain = surroundings.collector, PLAIN

    def emit(
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Iterable[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        if type(tup) is not list and not isinstance(tup, list | tuple):
            msg = f"All Tuples must be either lists or tuples, received {type(tup)!r} instead: {tup!r}"
            raise TypeError(msg)
        for value in tup:
            if type(value) not in plain:
                tup = copied(tup)
                break
        onto: Any
        if anchors is not None:
            onto = surroundings.of(anchors)
        elif not bolt.auto_anchor:
            onto = ()
        elif surroundings.batch is None:
            onto = surroundings.origin  # None between two tuples: then there is nothing to be anchored to
        else:
            onto = surroundings.of(surroundings.batch)
        # The collector's methods are looked up each time: they become others when the bolt starts a thread.
        if direct_task is None:
            tasks = collector.emit(tuple(tup), DEFAULT_STREAM if stream is None else stream, onto)
            return tasks if need_task_ids else None
        collector.emit_direct(direct_task, tuple(tup), stream or DEFAULT_STREAM, onto)
        return [direct_task] if need_task_ids else None

    return emit


def _executor(
    bolt: PystormBolt, surroundings: BoltSurroundings, context: TopologyContext
) -> Callable[[ApiTuple], None]:
    collector, held, new = surroundings.collector, surroundings.held, tuple.__new__
    acks = not isinstance(bolt, BatchingBolt)  # the others ack their batch
    next_id = _ids().__next__
    source_of = _sources(context)
    last: TupleSource | None = None
    component, stream, task = "", "", -1
    kind: type[tuple[Any, ...]] = tuple
    ticks = shared = False

    def execute(origin: ApiTuple) -> None:
        nonlocal last, component, stream, task, kind, ticks, shared
        source = origin._source
        if source is not last:
            component, stream, task, kind, ticks, shared = source_of(source)
            last = source
        values = origin.values
        if shared:
            for value in values:
                if type(value) not in PLAIN:
                    values = copied(values)
                    break
        surroundings.origin = origin
        surroundings.tup = tup = new(Tuple, (next_id(), component, stream, task, new(kind, values)))
        try:
            if ticks:
                bolt.process_tick(tup)
            else:
                bolt.process(tup)
            if origin.state or surroundings.settled:
                surroundings.settled = False
            elif acks and bolt.auto_ack:
                collector.ack(origin)
            elif not ticks:
                held[tup.id] = origin
        except Exception as error:
            _handle(bolt, error)
            if not surroundings.settled and not ticks:
                held[tup.id] = origin
            surroundings.settled = False
        finally:
            surroundings.origin = surroundings.tup = surroundings.batch = None

    return execute


def _ids() -> Iterator[str]:
    """An id for each tuple: texts that differ. To put one together costs half of what a number's text does."""
    ends = tuple(f"{end:04}" for end in range(10_000))
    return chain.from_iterable(map(str(begin).__add__, ends) for begin in count(1))


def _batch_processor(bolt: TicklessBatchingBolt, surroundings: BoltSurroundings) -> Callable[[], None]:
    def process_batches() -> None:
        try:
            bolt.process_batches()
        except Exception as error:
            _handle(bolt, error)
        finally:
            surroundings.batch = None

    return process_batches


def _handle(bolt: PystormBolt, error: Exception) -> None:
    """What pystorm does with an exception (C14): it comes out of here where the instance ends with it."""
    try:
        bolt._handle_run_exception(error)
    except Exception as another:
        bolt._stormspark.reports.report_error(another)
    if bolt.exit_on_exception:
        raise error


#: Component, stream, task, the type of the values, whether these are ticks, and whether others get the same values.
_Source = tuple[str, str, int, type[tuple[Any, ...]], bool, bool]


def _sources(context: TopologyContext) -> Callable[[TupleSource], _Source]:
    """A function that says what all tuples of one source have in common."""
    fields = {(key.component, key.stream): tuple(names) for key, names in context.this_input_fields.items()}

    def look(source: TupleSource) -> _Source:
        component, stream = source.component, source.stream
        names = fields.get((component, stream))
        if names is None:  # a tick
            return (
                component,
                stream,
                source.task,
                tuple,
                component == "__system" and stream == "__tick",
                False,
            )
        targets = context.targets(component).get(stream, {})
        shared = len(targets) > 1 or not all(grouping.single for grouping in targets.values())
        return component, stream, source.task, values_type(component, stream, names), False, shared

    known: dict[TupleSource, _Source] = {}

    def source_of(source: TupleSource) -> _Source:
        found = known.get(source)
        if found is None:
            found = known[source] = look(source)
        return found

    return source_of
