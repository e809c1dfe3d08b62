"""A pystorm bolt inside of a task.

A tuple comes through here once, an emit too, so `_executor` and `_emitter` make closures for one instance: what does not change
is looked up once, and what is seldom wanted (a tuple's id) is made when it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stormspark.api import (
    ACK,
    DEFAULT_STREAM,
    TICK_SOURCE,
    AutoAckBolt,
    OutputCollector,
    Send,
    Sender,
    TopologyContext,
    TupleSource,
)
from stormspark.api import Tuple as ApiTuple
from stormspark.compat.streamparse.adapter import Adapter, handle
from stormspark.compat.streamparse.bolt import BatchingBolt, TicklessBatchingBolt
from stormspark.compat.streamparse.bolt import Bolt as PystormBolt
from stormspark.compat.streamparse.component import Surroundings, begin
from stormspark.compat.streamparse.tuples import Tuple, values_type
from stormspark.compat.streamparse.values import PLAIN, copied
from stormspark.errors import EmitError

__all__ = ["BoltAdapter", "BoltSurroundings"]

#: A stream: how many values it has, and how to send them.
_Line = tuple[int, Send]


class BoltSurroundings(Surroundings):
    """The task of a bolt: the tuple at hand, and those that wait and may be called by their ids."""

    def __init__(self, context: TopologyContext, collector: OutputCollector) -> None:
        super().__init__(context, collector)
        self.collector = collector
        self.tup: Tuple | None = None
        #: What emits are anchored to, where that is not the tuple at hand.
        self.batch: list[Tuple] | None = None
        #: Tuples that are neither acked nor failed, and that somebody has asked for their id.
        self.named: dict[str, Tuple] = {}
        #: The fast way to streams, by the names that emits call them; see `AutoAckBolt.connected`.
        self.lines: dict[str | None, _Line] = {}

    @property
    def anchors(self) -> list[Tuple]:
        """What emits are anchored to."""
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
        """Fail a tuple because of ``error``, unless it is acked or failed already."""
        if tup.state != 1:
            self.forget(tup)
            self.collector.fail(tup, f"{type(error).__name__}: {error}"[:1000])

    def of(self, anchors: Iterable[Tuple | str]) -> list[ApiTuple]:
        """The tuples that these are; raises `EmitError` for one that is acked or failed already."""
        return [self._anchor(one) for one in anchors]

    def _anchor(self, tup: Tuple | str) -> Tuple:
        found = tup if isinstance(tup, Tuple) else self.named.get(tup)
        if found is None or found.state == 1:
            msg = (
                f"emit is anchored to {tup!r}, which is acked or failed already, or was never given to this task (I12): emit "
                f"first, then ack"
            )
            raise EmitError(msg)
        return found

    def _taken(self, tup: Tuple | str) -> Tuple | None:
        """The tuple to settle, which is not held any more."""
        found = tup if isinstance(tup, Tuple) else self.named.get(tup)
        if found is None or found.state == 1:
            return None
        self.forget(found)
        return found

    def forget(self, tup: Tuple) -> None:
        """Nobody may call it by its id any more."""
        if tup._id is not None:
            self.named.pop(tup._id, None)

    def _unknown(self, what: str, tup: Tuple | str) -> None:
        self.reports.report_error(
            f"{what} of {tup!r}, which is acked or failed already, or was never given to this task; it changes nothing (E14)"
        )


class BoltAdapter(Adapter[PystormBolt], AutoAckBolt):
    """Runs the pystorm bolt of a class."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Make the bolt and let it begin."""
        bolt = self.component()
        self._surroundings = surroundings = bolt._stormspark = BoltSurroundings(context, collector)
        self.new_tuple = Tuple.maker(surroundings.named)
        bolt._emit = _emitter(bolt, surroundings)
        if type(bolt).emit is PystormBolt.emit:
            bolt.emit = bolt._emit  # type: ignore[method-assign]
        begin(bolt, conf, context)
        if isinstance(bolt, TicklessBatchingBolt):
            context.set_timer(bolt.secs_between_batches, _batch_processor(bolt, surroundings))
        self.execute = _executor(bolt, surroundings, context)  # type: ignore[assignment, method-assign]

    def execute(self, tup: ApiTuple) -> object:  # type: ignore[override]
        """Replaced by a function of the instance."""
        raise NotImplementedError

    def connected(self, sender: Sender) -> None:
        """Make the fast way to each stream."""
        lines = self._surroundings.lines
        lines.clear()
        for name, stream in self.streams.items():
            send = sender(name)
            if send is not None and not stream.direct:
                lines[name] = len(stream.output_fields), send
        if DEFAULT_STREAM in lines:
            lines[None] = lines[DEFAULT_STREAM]


def _emitter(bolt: PystormBolt, surroundings: BoltSurroundings) -> Callable[..., list[int] | None]:
    collector, lines, plain = surroundings.collector, surroundings.lines, PLAIN

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
            current = surroundings.tup
            if current is None:
                onto = ()  # between two tuples there is nothing to be anchored to
            else:
                if direct_task is None and stream in lines and current.state != 1:  # nearly always
                    width, send = lines[stream]
                    if len(tup) == width:
                        tasks = send(tuple(tup), current.roots)
                        return tasks if need_task_ids else None
                onto = [current]
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
) -> Callable[[ApiTuple], object]:
    new = tuple.__new__
    acks = not isinstance(bolt, BatchingBolt)  # the others ack their batch
    source_of = _sources(context)
    last: TupleSource | None = None
    kind: type[tuple[Any, ...]] = tuple
    shared = False

    def execute(tup: Tuple) -> object:
        nonlocal last, kind, shared
        source = tup._source
        if source is not last:
            kind, shared = source_of(source)
            last = source
        values = tup.values
        if shared:
            for value in values:
                if type(value) not in PLAIN:
                    values = copied(values)
                    break
        tup.values = new(kind, values)
        tup._id = None
        surroundings.tup = tup
        ticks = source is TICK_SOURCE
        try:
            if ticks:
                bolt.process_tick(tup)
            else:
                bolt.process(tup)
            if acks and bolt.auto_ack:
                if tup._id is not None:
                    surroundings.forget(tup)
                return ACK
        except Exception as error:
            handle(bolt, error)
        finally:
            surroundings.tup = surroundings.batch = None
        if ticks:
            surroundings.forget(tup)
        return None

    return execute  # type: ignore[return-value]


def _batch_processor(bolt: TicklessBatchingBolt, surroundings: BoltSurroundings) -> Callable[[], None]:
    def process_batches() -> None:
        try:
            bolt.process_batches()
        except Exception as error:
            handle(bolt, error)
        finally:
            surroundings.batch = None

    return process_batches


#: The type of the values, and whether others get the same values.
_Source = tuple[type[tuple[Any, ...]], bool]


def _sources(context: TopologyContext) -> Callable[[TupleSource], _Source]:
    """A function that says what all tuples of one source have in common."""
    fields = {(key.component, key.stream): tuple(names) for key, names in context.this_input_fields.items()}

    def look(source: TupleSource) -> _Source:
        component, stream = source.component, source.stream
        names = fields.get((component, stream))
        if names is None:  # a tick
            return tuple, False
        targets = context.targets(component).get(stream, {})
        shared = len(targets) > 1 or not all(grouping.single for grouping in targets.values())
        return values_type(component, stream, names), shared

    known: dict[TupleSource, _Source] = {}

    def source_of(source: TupleSource) -> _Source:
        found = known.get(source)
        if found is None:
            found = known[source] = look(source)
        return found

    return source_of
