"""Delegates. A delegate emits, acks, fails and logs for one instance of a user's spout or bolt (B22, B23, C20)."""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from stormspark.api import OutputCollector, SpoutOutputCollector, Tuple
from stormspark.compat.heronpy.configuration import reliability_mode
from stormspark.compat.heronpy.constants import TOPOLOGY_SERIALIZER_CLASSNAME, TopologyReliabilityMode
from stormspark.compat.heronpy.serializer import IHeronSerializer
from stormspark.compat.heronpy.tuples import HeronTuple, TupleHelper
from stormspark.errors import ComponentError

__all__ = ["Blueprint", "BoltDelegate", "SpoutDelegate", "UnhashableId", "load_class", "serializer_of"]

_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


@dataclass(frozen=True)
class Blueprint:
    """The facts about a component that are known when the topology is built."""

    id: str
    #: The user's class.
    component: type
    #: For each stream, how many values its tuples have.
    widths: Mapping[str, int]
    #: The names of the direct streams.
    direct: frozenset[str]
    #: The typed configuration: the component reads numbers and booleans in it, not strings (A44).
    config: Mapping[str, Any]
    #: The settings that the topology declares to the engine. If a task gets another value, that value is from the command line.
    declared: Mapping[str, Any]
    #: For each component, its inputs: for each (stream, source), the grouping's number in Heron's protocol.
    sources: Mapping[str, Mapping[tuple[str, str], int]]

    def config_for(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        """Return the component's configuration in a task to which the engine passes ``conf``.

        Settings of the command line override the component's (A20).
        """
        declared = self.declared
        return {
            **self.config,
            **{key: value for key, value in conf.items() if key not in declared or declared[key] != value},
        }


class UnhashableId:
    """Holds a ``tup_id`` that is not hashable. This object is hashable, because the engine uses ids as keys."""

    def __init__(self, tup_id: Any) -> None:
        self.tup_id = tup_id

    def __repr__(self) -> str:
        return repr(self.tup_id)


class _Delegate:
    """The base class of both kinds of delegates."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint
        self._widths = blueprint.widths
        self.logger = logging.getLogger(f"stormspark.task.{blueprint.id}")
        #: Whether trees are tracked. Only the reliability mode ATLEAST_ONCE tracks them (B23, C43).
        self.acking = False
        self._serializer: IHeronSerializer | None = None
        #: Returns the seconds since 1970, by the worker's clock.
        self.now: Callable[[], float] = time.time

    def configure(self, config: Mapping[str, Any]) -> None:
        """Use the configuration of this task."""
        self.acking = reliability_mode(config) == TopologyReliabilityMode.ATLEAST_ONCE
        self._serializer = serializer_of(config)

    def log(self, message: str, level: str | None = None) -> None:
        """See `BaseComponent.log`. Raises ValueError for an unknown level."""
        if level is not None and level not in _LEVELS:
            msg = f"{level!r} is not supported as logging level; the levels are {', '.join(_LEVELS)}"
            raise ValueError(msg)
        self.logger.log(_LEVELS[level or "info"], message)

    def _values(self, tup: Sequence[Any], stream: str) -> tuple[Any, ...]:
        """Return the values in the engine's form. Raises RuntimeError if they do not fit the stream (B22)."""
        width = self._widths.get(stream)
        if width is None:
            declared = ", ".join(map(repr, self._widths)) or "no stream"
            msg = (
                f"{self._blueprint.id} emitting to stream {stream!r} but was not declared in output fields; it declares "
                f"{declared}"
            )
            raise RuntimeError(msg)
        if len(tup) != width:
            msg = (
                f"{self._blueprint.id}: Number of fields emitted in stream {stream!r} does not match what's expected. "
                f"Expected: {width}, Observed: {len(tup)}: {tup!r}"
            )
            raise RuntimeError(msg)
        if self._serializer is not None:
            return tuple(map(self._serializer.serialize, tup))
        return tuple(tup)

    def _checked_direct(self, direct_task: Any, stream: str) -> int:
        if not isinstance(direct_task, int):
            msg = f"{self._blueprint.id}: direct_task argument needs to be an integer, given: {direct_task!r}"
            raise TypeError(msg)
        if stream not in self._blueprint.direct:
            msg = (
                f"{self._blueprint.id}: direct_task={direct_task} needs a direct stream, and {stream!r} is not declared as one: "
                f"declare it as Stream(fields, name, direct=True), and subscribe with Grouping.DIRECT"  # W23
            )
            raise RuntimeError(msg)
        return direct_task


class SpoutDelegate(_Delegate):
    """The delegate of one instance of a spout."""

    collector: SpoutOutputCollector

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__(blueprint)
        #: If nothing is tracked: the ids that this call of ``next_tuple`` has emitted. They are acked when it returns (B23).
        self.immediate: list[Any] = []

    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """See `BaseSpout.emit`."""
        values = self._values(tup, stream)
        tracked: Any = None
        if tup_id is not None:
            if self.acking:
                tracked = tup_id if tup_id.__hash__ is not None else UnhashableId(tup_id)
            else:
                self.immediate.append(tup_id)
        if direct_task is None:
            tasks = self.collector.emit(values, stream, tracked)
        else:
            tasks = [self._checked_direct(direct_task, stream)]
            self.collector.emit_direct(direct_task, values, stream, tracked)
        return tasks if need_task_ids else None


class BoltDelegate(_Delegate):
    """The delegate of one instance of a bolt."""

    collector: OutputCollector

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__(blueprint)
        self._ids = count(1)
        #: The tuple that was acked or failed last. Only hooks need it.
        self.closing: Any = None
        #: The tuple that is being processed, or else the one that was processed last; None if there are no hooks.
        self.processed: Any = None

    def heron_tuple(self, tup: Tuple) -> Any:
        """Return the object that ``process`` gets for a tuple of the engine (C21)."""
        source = tup._source
        values: Any = [*tup.values]
        if self._serializer is not None:
            values = [self._serializer.deserialize(value) for value in values]
        fields = (
            str(next(self._ids)),
            source.component,
            source.stream,
            source.task,
            values,
            time.time(),
            tup,
        )
        # Every call of `execute` makes a HeronTuple. ``tuple.__new__`` costs half as much as ``HeronTuple(...)``.
        return tuple.__new__(HeronTuple, fields)

    @staticmethod
    def tick() -> Any:
        """Return the object that ``process_tick`` gets (C21)."""
        name = TupleHelper.TICK_TUPLE_ID
        return HeronTuple(name, TupleHelper.TICK_SOURCE_COMPONENT, name, None, None, time.time(), None)

    def emit(
        self,
        tup: Sequence[Any],
        stream: str = "default",
        anchors: Iterable[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """See `BaseBolt.emit`."""
        values = self._values(tup, stream)
        anchored = self._open(anchors) if anchors and self.acking else ()
        if direct_task is None:
            tasks = self.collector.emit(values, stream, anchored)
        else:
            tasks = [self._checked_direct(direct_task, stream)]
            self.collector.emit_direct(direct_task, values, stream, anchored)
        return tasks if need_task_ids else None

    def _open(self, anchors: Iterable[Any]) -> list[Tuple]:
        """Return the engine's tuples for the anchors that are still open. As in Heron, anchors that are no tuples are ignored.

        An anchor that was acked or failed before is reported as an error.
        """
        found = []
        for anchor in anchors:
            if not isinstance(anchor, HeronTuple) or anchor.roots is None:
                continue
            if anchor.roots.state == 1:
                self.collector.report_error(
                    f"{self._blueprint.id}: emit is anchored to {anchor!r} after its ack or fail, so the emitted tuple is not "
                    f"tracked: emit first, then ack"  # E14
                )
            else:
                found.append(anchor.roots)
        return found

    def ack(self, tup: Any) -> None:
        """See `BaseBolt.ack`."""
        if self._closes(tup, "ack"):
            self.closing = tup
            self.collector.ack(tup.roots)

    def fail(self, tup: Any) -> None:
        """See `BaseBolt.fail`."""
        if self._closes(tup, "fail"):
            self.closing = tup
            self.collector.fail(tup.roots)

    def _closes(self, tup: Any, what: str) -> bool:
        if not isinstance(tup, HeronTuple):
            self.logger.error("Only HeronTuple type is supported in %s(), given: %r", what, tup)
            return False
        roots = tup.roots
        if roots is None:
            return False  # a tick belongs to no tree (W20)
        # If the topology tracks nothing, `HeronBolt.execute` itself acks tuples from spouts of stormspark, and users may still
        # ack them later.
        return self.acking or roots.state != 1


def load_class(path: str, what: str) -> Any:
    """Load and return the class at ``path``, such as ``module.Class``.

    Raises `ComponentError` if the class can't be loaded. The error's message begins with ``what``.
    """
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:
        msg = f"{what} {path!r} can't be loaded: {type(error).__name__}: {error}"
        raise ComponentError(msg) from error


def serializer_of(config: Mapping[str, Any]) -> IHeronSerializer | None:
    """Return the serializer that the configuration names. Without one, returns None, and values are not serialized (A45)."""
    path = config.get(TOPOLOGY_SERIALIZER_CLASSNAME)
    if path is None:
        return None
    serializer: IHeronSerializer = load_class(path, TOPOLOGY_SERIALIZER_CLASSNAME)()
    return serializer
