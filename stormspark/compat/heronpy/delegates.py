"""What a user's spout or bolt calls through: it emits, acks, fails and logs for one instance (B22, B23, C20)."""

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
    """What is known of a component where the topology is built."""

    id: str
    #: The user's class.
    component: type
    #: How many values there are in a tuple of each stream.
    widths: Mapping[str, int]
    #: Those that are direct.
    direct: frozenset[str]
    #: What it reads as its configuration, typed (A44).
    config: Mapping[str, Any]
    #: What of this the engine was told. A value that differs where the component runs comes from the command line.
    told: Mapping[str, Any]
    #: Of each component what it takes: (stream, source) and the number of Heron's protocol for the grouping.
    sources: Mapping[str, Mapping[tuple[str, str], int]]

    def config_for(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration in a task that the engine has given ``conf``: what the command line says wins (A20)."""
        told = self.told
        return {
            **self.config,
            **{key: value for key, value in conf.items() if key not in told or told[key] != value},
        }


class UnhashableId:
    """Stands for a ``tup_id`` that is no key of a dict: the engine looks ids up."""

    def __init__(self, tup_id: Any) -> None:
        self.tup_id = tup_id

    def __repr__(self) -> str:
        return repr(self.tup_id)


class _Delegate:
    """What both kinds share."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint
        self._widths = blueprint.widths
        self.logger = logging.getLogger(f"stormspark.task.{blueprint.id}")
        #: Whether trees are tracked: only with ATLEAST_ONCE (B23, C43).
        self.acking = False
        self._serializer: IHeronSerializer | None = None
        #: Seconds since 1970, by the worker's clock.
        self.now: Callable[[], float] = time.time

    def configure(self, config: Mapping[str, Any]) -> None:
        """Take in the configuration of this task."""
        self.acking = reliability_mode(config) == TopologyReliabilityMode.ATLEAST_ONCE
        self._serializer = serializer_of(config)

    def log(self, message: str, level: str | None = None) -> None:
        """See `BaseComponent.log`; raises ValueError for a level that there is not."""
        if level is not None and level not in _LEVELS:
            msg = f"{level!r} is not supported as logging level; there are {', '.join(_LEVELS)}"
            raise ValueError(msg)
        self.logger.log(_LEVELS[level or "info"], message)

    def _values(self, tup: Sequence[Any], stream: str) -> tuple[Any, ...]:
        """The tuple as the engine wants it; raises RuntimeError where it does not fit its stream (B22)."""
        width = self._widths.get(stream)
        if width is None:
            there = ", ".join(map(repr, self._widths)) or "none"
            msg = (
                f"{self._blueprint.id} emitting to stream {stream!r} but was not declared in output fields; it declares {there} "
                f"(B22)"
            )
            raise RuntimeError(msg)
        if len(tup) != width:
            msg = (
                f"{self._blueprint.id}: Number of fields emitted in stream {stream!r} does not match what's expected. "
                f"Expected: {width}, Observed: {len(tup)}: {tup!r} (B22)"
            )
            raise RuntimeError(msg)
        if self._serializer is not None:
            return tuple(map(self._serializer.serialize, tup))
        return tuple(tup)

    def _checked_direct(self, direct_task: Any, stream: str) -> int:
        if not isinstance(direct_task, int):
            msg = f"{self._blueprint.id}: direct_task argument needs to be an integer, given: {direct_task!r} (B22)"
            raise TypeError(msg)
        if stream not in self._blueprint.direct:
            msg = (
                f"{self._blueprint.id}: direct_task={direct_task} is for direct streams, and {stream!r} is declared as none: "
                f"declare it as Stream(fields, name, direct=True) and take it by Grouping.DIRECT (W23)"
            )
            raise RuntimeError(msg)
        return direct_task


class SpoutDelegate(_Delegate):
    """Of one instance of a spout."""

    collector: SpoutOutputCollector

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__(blueprint)
        #: Ids of emits since the last look, where nothing is tracked: they are acked when ``next_tuple`` returns (B23).
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
    """Of one instance of a bolt."""

    collector: OutputCollector

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__(blueprint)
        self._ids = count(1)
        #: The tuple that is being acked or failed, for hooks; the last one that was processed, while there are hooks.
        self.closing: Any = None
        self.processed: Any = None

    def heron_tuple(self, tup: Tuple) -> Any:
        """What ``process`` is given for a tuple of the engine's (C21)."""
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
        return tuple.__new__(
            HeronTuple, fields
        )  # one is made for each execute: half the price of a call of the class

    @staticmethod
    def tick() -> Any:
        """What ``process_tick`` is given (C21)."""
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
        """The engine's tuples of those anchors that can still be one; as in Heron, what is no tuple is left out."""
        found = []
        for anchor in anchors:
            if not isinstance(anchor, HeronTuple) or anchor.roots is None:
                continue
            if anchor.roots.state == 1:
                self.collector.report_error(
                    f"{self._blueprint.id}: emit is anchored to {anchor!r} after its ack or fail: what is emitted is not "
                    f"tracked (E14); emit first, then ack"
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
        # Where nothing is tracked, what came from a spout of stormspark's own has been acked already.
        return self.acking or roots.state != 1


def load_class(path: str, what: str) -> Any:
    """The class ``module.Class``; raises `ComponentError` that says what it is for."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:
        msg = f"{what} {path!r} can't be loaded: {type(error).__name__}: {error}"
        raise ComponentError(msg) from error


def serializer_of(config: Mapping[str, Any]) -> IHeronSerializer | None:
    """The serializer that the configuration names; None where values go as they are (A45)."""
    path = config.get(TOPOLOGY_SERIALIZER_CLASSNAME)
    if path is None:
        return None
    serializer: IHeronSerializer = load_class(path, TOPOLOGY_SERIALIZER_CLASSNAME)()
    return serializer
