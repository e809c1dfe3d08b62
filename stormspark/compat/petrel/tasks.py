"""Runs Petrel's components in tasks.

Petrel throws the object away that ``create`` adds to the builder: each child process imports the component's script and calls
its ``run()``, which makes the component. So only the class is pickled here, and each task calls ``run()`` too. An object with an
open connection, or one that ``run()`` makes with other arguments, works as in Petrel.
"""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path, PurePath
from typing import Any

import cloudpickle

from stormspark.api import (
    DEFAULT_STREAM,
    Component,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyContext,
)
from stormspark.api import Bolt as ApiBolt
from stormspark.api import Spout as ApiSpout
from stormspark.api import Tuple as ApiTuple
from stormspark.compat.petrel import storm
from stormspark.compat.streamparse.values import copied
from stormspark.errors import EmitError, InvalidTopologyError
from stormspark.multilang.handshake import context_message
from stormspark.user_code import put_first

__all__ = ["ON_PATH", "BoltTask", "PetrelTask", "SpoutTask", "StreamDeclared"]

#: The folder of the package ``petrel``.
ON_PATH = Path(__file__).parents[1] / "on_path" / "petrel"

#: A stream's fields, and whether it is direct.
StreamDeclared = tuple[tuple[str, ...], bool]


class _Unhashable:
    """A message id that is no hashable value, such as a list. JSON carries any value as an id."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class PetrelTask(Component):
    """The common base of the adapters. The task makes the component; only the component's class is pickled."""

    def __init__(
        self, component: type[storm.Task], script: str, streams: Mapping[str, StreamDeclared]
    ) -> None:
        self.component = component
        self.script = script
        self.streams = dict(streams)

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), cloudpickle.dumps(self.component), self.script, self.streams)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the component's streams."""
        for name, (fields, direct) in self.streams.items():
            declarer.declare_stream(name, fields, direct=direct)

    def _started(
        self, surroundings: storm.Surroundings, conf: Mapping[str, Any], context: TopologyContext
    ) -> Any:
        storm.being_called(surroundings)
        component = self._made()
        component.initialize({"topology.name": context.topology_name, **conf}, context_message(context))
        return component

    def _made(self) -> storm.Task:
        """Return the component that the script's ``run()`` makes. Without a ``run()``, return an instance of the class."""
        name = PurePath(self.script).stem
        of_class = self.component.__module__
        module = importlib.import_module(of_class if of_class.rpartition(".")[2] == name else name)
        run = getattr(module, "run", None)
        if run is None:
            return self.component()
        found = storm.made(run)
        if len(found) != 1:
            msg = (
                f"run() of {self.script} must make one component and call its run(), and it has called {len(found)}: "
                f"for example `def run(): {self.component.__name__}().run()`"
            )
            raise InvalidTopologyError(msg)
        return found[0]


def _revived(
    adapter: type[PetrelTask], component: bytes, script: str, streams: Mapping[str, StreamDeclared]
) -> PetrelTask:
    put_first(ON_PATH)
    return adapter(cloudpickle.loads(component), script, streams)


class _Reports:
    """What spouts and bolts can do alike."""

    def __init__(self, collector: SpoutOutputCollector | OutputCollector, context: TopologyContext) -> None:
        self._reports, self._logger = collector, context.logger

    def report_error(self, message: str) -> None:
        """Show an error in logs and statistics."""
        self._reports.report_error(message)

    def log(self, message: str) -> None:
        """Write to the task's log."""
        self._logger.info("%s", message)


class _SpoutSurroundings(_Reports):
    def __init__(self, collector: SpoutOutputCollector, context: TopologyContext) -> None:
        super().__init__(collector, context)
        self._collector = collector

    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        id: Any = None,
        directTask: int | None = None,  # noqa: N803
        need_task_ids: bool = False,
    ) -> list[int] | None:
        message_id = id if isinstance(id, Hashable) else _Unhashable(id)
        if directTask is not None:
            self._collector.emit_direct(directTask, copied(tup), stream or DEFAULT_STREAM, message_id)
            return None
        tasks = self._collector.emit(copied(tup), stream or DEFAULT_STREAM, message_id)
        return tasks if need_task_ids else None

    def ack(self, tup: Any) -> None:
        msg = f"storm.ack({tup!r}) in a spout: a spout has no tuples to ack"
        raise EmitError(msg)

    fail = ack


class SpoutTask(PetrelTask, ApiSpout):
    """The adapter that runs one of Petrel's spouts."""

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Make the spout and initialize it."""
        self._surroundings = _SpoutSurroundings(collector, context)
        self._spout = self._started(self._surroundings, conf, context)

    def next_tuple(self) -> None:
        """Call the spout's ``nextTuple``."""
        storm.being_called(self._surroundings)
        self._spout.nextTuple()

    def ack(self, message_id: Any) -> None:
        """Call the spout's ``ack``."""
        storm.being_called(self._surroundings)
        self._spout.ack(message_id.value if type(message_id) is _Unhashable else message_id)

    def fail(self, message_id: Any) -> None:
        """Call the spout's ``fail``."""
        storm.being_called(self._surroundings)
        self._spout.fail(message_id.value if type(message_id) is _Unhashable else message_id)


class _BoltSurroundings(_Reports):
    def __init__(self, collector: OutputCollector, context: TopologyContext, *, basic: bool) -> None:
        super().__init__(collector, context)
        self._collector, self._basic = collector, basic
        self._ids = count(1)
        #: The current tuple of a basic bolt.
        self._current: ApiTuple | None = None
        #: The open tuples of a bolt that acks by itself, by id.
        self._open: dict[str, storm.Tuple] = {}

    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Iterable[storm.Tuple] = (),
        directTask: int | None = None,  # noqa: N803
        need_task_ids: bool = False,
    ) -> list[int] | None:
        # The anchors that a basic bolt names count for nothing, as in Petrel.
        origins = [one.origin for one in anchors if one.origin is not None]
        if self._current is not None:
            origins = [self._current]
        if directTask is not None:
            self._collector.emit_direct(directTask, copied(tup), stream or DEFAULT_STREAM, origins)
            return None
        tasks = self._collector.emit(copied(tup), stream or DEFAULT_STREAM, origins)
        return tasks if need_task_ids else None

    def arrived(self, tup: ApiTuple) -> storm.Tuple:
        """Return the tuple in Petrel's form. From now on it is the current one."""
        # Other tasks may get the same values, and Petrel's bolts may change them.
        given = storm.Tuple(
            str(next(self._ids)),
            tup.source_component,
            tup.source_stream,
            tup.source_task,
            list(copied(tup.values)),
        )
        given.origin = tup
        if self._basic:
            self._current = None if tup.is_tick else tup
        elif not tup.is_tick:
            self._open[given.id] = given
        return given

    def done(self) -> None:
        """Ack the current tuple of a basic bolt."""
        if self._basic and self._current is not None:
            self._collector.ack(self._current)
        self._current = None

    def ack(self, tup: Any) -> None:
        if (origin := self._taken("ack", tup)) is not None:
            self._collector.ack(origin)

    def fail(self, tup: Any) -> None:
        if (origin := self._taken("fail", tup)) is not None:
            self._collector.fail(origin)

    def _taken(self, what: str, tup: Any) -> ApiTuple | None:
        """Return the engine's tuple, and forget its id. For an unknown tuple report an error and return None."""
        id_ = tup.id if isinstance(tup, storm.Tuple) else tup
        found = self._open.pop(id_, None)
        if found is not None:
            return found.origin  # type: ignore[no-any-return]
        if isinstance(tup, storm.Tuple) and tup.origin is not None:
            return tup.origin  # type: ignore[no-any-return]  # the collector reports a second ack, and ignores that of a tick
        self.report_error(
            f"{what} of {tup!r}, which is acked or failed already, or was never given to this task"  # E14
        )
        return None


class BoltTask(PetrelTask, ApiBolt):
    """The adapter that runs one of Petrel's bolts."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Make the bolt and initialize it."""
        basic = issubclass(self.component, storm.BasicBolt)
        self._surroundings = _BoltSurroundings(collector, context, basic=basic)
        self._bolt = self._started(self._surroundings, conf, context)

    def execute(self, tup: ApiTuple) -> None:
        """Pass the tuple to ``process``; ack it afterwards if the bolt is a basic one."""
        surroundings = self._surroundings
        storm.being_called(surroundings)
        self._bolt.process(surroundings.arrived(tup))
        surroundings.done()
