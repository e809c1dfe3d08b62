"""The code that every tuple of a pystorm bolt, and every emit of pystorm's bolts and spouts, passes through.

This code is a hot part of the tuple path. So a thing that does not change is looked up only once. A thing that is rarely needed,
such as a tuple's id, is made on demand.
"""

# passage.pxd beside this module gives C types to the attributes and methods of both classes, and to some variables. Cython
# compiles this module with these types. When you add, rename or retype one of them, change both files, and check with `make
# compiled`.
# `at` and `arrived` are second names for the current tuple. They make compiled code faster: the .pxd declares them as `Tuple`,
# so compiled code reads C fields. If the collector is the engine's own, `_native` is a second name for it, also with a C type.

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stormspark.api import DEFAULT_STREAM, TICK_SOURCE, SpoutOutputCollector
from stormspark.api.tuples import Executor, Tuple, TupleSource
from stormspark.compat.streamparse.adapter import handle
from stormspark.compat.streamparse.values import PLAIN, copied
from stormspark.spi import ACK, recycling
from stormspark.worker.tuples.outlets import Outlet
from stormspark.worker.tuples.spout_collector import SpoutCollector

if TYPE_CHECKING:
    from stormspark.compat.streamparse.bolt import Bolt
    from stormspark.compat.streamparse.bolt_adapter import BoltSurroundings

__all__ = ["Passage", "SpoutPassage"]


class Passage(Executor):
    """Passes tuples to one bolt, and carries out the bolt's emits. ``tup`` is the current tuple.

    If ``batch`` is not None, emits are anchored to its tuples in place of the current tuple. ``lines`` are the outlets of the
    streams, by name, and make emits fast. ``line`` is the outlet for emits that name no stream; see `AutoAckBolt.connected`.
    """

    __slots__ = (
        "_ack_now",
        "_acks",
        "_anchor_now",
        "_asked",
        "_bolt",
        "_kind",
        "_last",
        "_looks",
        "_shared",
        "_source_of",
        "_surroundings",
        "_values",
        "batch",
        "line",
        "lines",
        "tup",
    )

    def __init__(self, bolt: Bolt, surroundings: BoltSurroundings, *, acks: bool) -> None:
        self._bolt, self._surroundings = bolt, surroundings
        self._acks = acks
        self._last: TupleSource | None = None
        self._kind: type[tuple[Any, ...]] = tuple
        self._shared = False
        self._source_of: Callable[[TupleSource], tuple[type[tuple[Any, ...]], bool]]
        #: Whether the bolt has read the id of a tuple since the last check of this attribute.
        self._asked = False
        self.tup: Any = None
        self.batch: Any = None
        self.lines: dict[str, Outlet] = {}
        self.line: Outlet | None = None
        #: The object with the current tuple's values. If user code keeps no reference to it, it is reused for the next tuple.
        self._values: Any = None
        #: The values of the bolt's switches ``auto_anchor`` and ``auto_ack``. If `_looks` is true, these copies are not used:
        #: nobody tells this object that a switch has changed, so it reads the switches for every tuple.
        self._anchor_now = self._ack_now = True
        self._looks = True

    def arriving(self, source_of: Callable[[TupleSource], tuple[type[tuple[Any, ...]], bool]]) -> None:
        """Prepare for tuples. ``source_of`` returns the type of a source's values, and whether other tasks get the values too."""
        self._source_of = source_of
        self._looks = not self._bolt._notifies_of_switches()
        self.turned()

    def turned(self) -> None:
        """Read the bolt's switches again, because one of them may have changed."""
        if not self._looks:
            self._anchor_now = bool(self._bolt.auto_anchor)
            self._ack_now = bool(self._bolt.auto_ack)

    def has_id(self, tup: Any, id: str) -> None:
        """Note that the bolt has read a tuple's id. Until the tuple is acked or failed, the bolt may name it by this id."""
        self._asked = True
        if tup.state != 1:
            self._surroundings.named[id] = tup

    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Iterable[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple, as ``Bolt.emit`` of pystorm does (C13)."""
        values = _sent(tup)
        surroundings, current = self._surroundings, self.tup
        onto: Any
        if anchors is not None:
            onto = surroundings.of(anchors)
        elif not (self._bolt.auto_anchor if self._looks else self._anchor_now):
            onto = ()
        elif self.batch is not None:
            onto = surroundings.of(self.batch)
        elif current is None:
            onto = ()  # the bolt emits between two tuples, so there is no anchor
        else:
            at: Tuple = current
            if direct_task is None and at.state != 1:  # nearly always
                line: Outlet | None = self.line if stream is None else self.lines.get(stream)
                if line is not None and len(values) == line.width:
                    tasks = line.send(values, at.roots)
                    return tasks if need_task_ids else None
            onto = [current]
        # Look up the collector's method for each emit, because methods are replaced when the bolt starts a thread.
        if direct_task is None:
            tasks = surroundings.collector.emit(values, DEFAULT_STREAM if stream is None else stream, onto)
            return tasks if need_task_ids else None
        surroundings.collector.emit_direct(direct_task, values, stream or DEFAULT_STREAM, onto)
        return [direct_task] if need_task_ids else None

    def execute(self, tup: Any) -> object:
        """Let the bolt process a tuple (C12, C14)."""
        arrived: Tuple = tup
        source = arrived._source
        if source is not self._last:
            self._kind, self._shared = self._source_of(source)
            self._last = source
        values = arrived.values
        if self._shared:
            values = _unshared(values)
        last = self._values
        arrived.values = self._values = recycling.refilled(self._kind, last, values)
        if self._asked:  # the engine reuses tuple objects, so the id may be that of an earlier tuple
            tup._id = None
            self._asked = False
        self.tup = tup
        bolt = self._bolt
        answer = None
        try:
            if source is not TICK_SOURCE:
                bolt.process(tup)
            else:
                bolt.process_tick(tup)
            if self._acks and (bolt.auto_ack if self._looks else self._ack_now):
                answer = ACK
        except BaseException as error:
            self._raised(error)
        self.tup = self.batch = None
        if self._asked and (answer is not None or source is TICK_SOURCE):
            self._surroundings.forget(tup)
        return answer

    def _raised(self, error: BaseException) -> None:
        try:
            if not isinstance(error, Exception):
                raise error
            handle(self._bolt, error)
        except BaseException:
            self.tup = self.batch = None
            raise


class SpoutPassage:
    """Carries out the emits of one spout."""

    __slots__ = ("_collector", "_native")

    def __init__(self, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        self._native = collector if isinstance(collector, SpoutCollector) else None

    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Hashable | None = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple, as ``Spout.emit`` of pystorm does (B16)."""
        values = _sent(tup)
        if direct_task is not None:
            self._collector.emit_direct(direct_task, values, stream or DEFAULT_STREAM, tup_id)
            return [direct_task] if need_task_ids else None
        name = DEFAULT_STREAM if stream is None else stream
        if self._native is not None:
            tasks = self._native.emit(values, name, tup_id)
        else:
            tasks = self._collector.emit(values, name, tup_id)
        return tasks if need_task_ids else None


def _sent(tup: Sequence[Any]) -> tuple[Any, ...]:
    """Return emitted values in the form that is sent: a tuple, which shares no mutable value with the sender."""
    if type(tup) is not list and not isinstance(tup, list | tuple):
        msg = f"All Tuples must be either lists or tuples, received {type(tup)!r} instead: {tup!r}"
        raise TypeError(msg)
    return _unshared(tuple(tup))


def _unshared(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values, or a copy if one of them is mutable."""
    for value in values:
        if type(value) is not str and type(value) not in PLAIN:
            return copied(values)
    return values
