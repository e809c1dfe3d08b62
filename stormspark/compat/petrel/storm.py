"""``petrel.storm``: components, their tuples, and the functions by which components emit, ack and log.

In Petrel these functions write to the pipe of the one component of the process. A worker has many components, so here the
functions act for the component that is being called. A context variable says which one that is: threads of executors have
contexts of their own, and so has a spout that is suspended in an emit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from stormspark.errors import EmitError, StormsparkError

__all__ = [
    "BasicBolt",
    "Bolt",
    "Spout",
    "StormIPCException",
    "Surroundings",
    "Task",
    "Tuple",
    "ack",
    "ackId",
    "being_called",
    "emit",
    "emitDirect",
    "emitMany",
    "fail",
    "initialize_profiling",
    "json_decode",
    "json_encode",
    "log",
    "made",
    "reportError",
    "sendFailureMsgToParent",
    "storm_log",
    "sync",
]

storm_log = logging.getLogger("storm")
json_encode = json.dumps
json_decode = json.loads

_HEARTBEAT_STREAM, _TICK_STREAM = "__heartbeat", "__tick"


class StormIPCException(Exception):  # noqa: N818 - Petrel's name
    """Petrel raises this if its pipe to Storm breaks. Nothing raises it here, because there is no pipe."""


class Tuple:
    """A tuple as Petrel's bolts get it. ``values`` is a list.

    >>> tup = Tuple("7", "words", "default", 3, ["dog"])
    >>> tup.values, tup.is_tick_tuple(), tup == Tuple("7", "words", "default", 3, ["dog"])
    (['dog'], False, True)
    """

    __slots__ = ("component", "id", "origin", "stream", "task", "values")

    def __init__(
        self, id: Any, component: str | None, stream: str | None, task: int | None, values: Sequence[Any]
    ) -> None:
        self.id = id
        self.component = component
        self.stream = stream
        self.task = task
        self.values = values
        #: The engine's tuple; None if the user has made this one.
        self.origin: Any = None

    def is_heartbeat_tuple(self) -> bool:
        """Return whether this is a heartbeat. No bolt gets one here."""
        return self.task == -1 and self.stream == _HEARTBEAT_STREAM

    def is_tick_tuple(self) -> bool:
        """Return whether this is a tick (C9)."""
        return self.task == -1 and self.stream == _TICK_STREAM

    def _five(self) -> tuple[Any, ...]:
        return self.id, self.component, self.stream, self.task, self.values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tuple) and self._five() == other._five()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        id_, component, stream, task, values = self._five()
        return f"<Tuple component={component!r} id={id_!r} stream={stream!r} task={task!r} values={values!r}>"


class Surroundings(Protocol):
    """The receiver of what the component does that is being called."""

    def emit(self, tup: Sequence[Any], *args: Any, **kwargs: Any) -> list[int] | None:
        """Emit a tuple. The further arguments are those of Petrel's spouts or bolts."""

    def ack(self, tup: Tuple | Any) -> None:
        """Ack a tuple, or the tuple with this id."""

    def fail(self, tup: Tuple) -> None:
        """Fail a tuple."""

    def report_error(self, message: str) -> None:
        """Show an error."""

    def log(self, message: str) -> None:
        """Write to the task's log."""


_called: ContextVar[Surroundings | None] = ContextVar("called", default=None)
_made: ContextVar[list[Task] | None] = ContextVar("made", default=None)


def being_called(surroundings: Surroundings | None) -> None:
    """Let the functions of this module act for a component, until this is called again in the same context."""
    _called.set(surroundings)


def _here(name: str) -> Surroundings:
    found = _called.get()
    if found is None:
        msg = (
            f"storm.{name} was called outside of the methods that the engine calls (initialize, process, nextTuple, ack, fail), "
            f"for example by a thread of the component: let the thread fill a queue, and emit from the component's methods"
        )
        raise EmitError(msg)
    return found


def emit(*args: Any, **kwargs: Any) -> list[int] | None:
    """Emit a tuple: ``emit([word], stream=..., anchors=[...])`` in a bolt, ``emit([word], id=...)`` in a spout.

    ``directTask`` names a task. With ``need_task_ids=True``, return the ids of the tasks that get the tuple, otherwise None.
    """
    return _here("emit").emit(*args, **kwargs)


def emitMany(tuples: Iterable[Sequence[Any]], *args: Any, **kwargs: Any) -> None:  # noqa: N802
    """Emit several tuples, each with the same further arguments."""
    surroundings = _here("emitMany")
    for tup in tuples:
        surroundings.emit(tup, *args, **kwargs)


def emitDirect(task: int, *args: Any, **kwargs: Any) -> None:  # noqa: N802
    """Emit a tuple to one task, on a direct stream."""
    _here("emitDirect").emit(*args, **{**kwargs, "directTask": task})


def ack(tup: Tuple) -> None:
    """Ack a tuple."""
    _here("ack").ack(tup)


def ackId(tupid: Any) -> None:  # noqa: N802
    """Ack the open tuple that has this id."""
    _here("ackId").ack(tupid)


def fail(tup: Tuple) -> None:
    """Fail a tuple."""
    _here("fail").fail(tup)


def reportError(msg: str) -> None:  # noqa: N802
    """Show an error in logs and statistics, and do nothing else (C4)."""
    _here("reportError").report_error(msg)


def log(msg: str) -> None:
    """Write a line to the task's log."""
    _here("log").log(str(msg))


def sendFailureMsgToParent(msg: str) -> None:  # noqa: N802
    """End this instance, as Petrel does: the message is shown, and the task starts again (B14)."""
    raise StormIPCException(msg)


def sync() -> None:
    """Do nothing: there is no pipe on which somebody waits for an answer."""


def initialize_profiling() -> None:
    """Do nothing: the summary of a run has the latencies of all components."""


class Task:
    """The common base of Petrel's components."""

    #: Petrel sets these from a patched Storm; without the patch they are -1, too.
    task_index = worker_port = -1

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        """Start; the user's class overrides this. ``context`` is that of Storm's multilang protocol (I2)."""

    def run(self) -> None:
        """Offer this component to the task that called the ``run()`` of the component's script. Nothing else happens.

        Raises `StormsparkError` if nobody has: a component can't be run alone.
        """
        box = _made.get()
        if box is None:
            msg = (
                f"{type(self).__name__} can't be run alone: run its topology, with `stormspark run create.py`"
            )
            raise StormsparkError(msg)
        box.append(self)


def made(run: Any) -> list[Task]:
    """Call the ``run()`` of a component's script, and return the components whose ``run`` method it calls."""
    box: list[Task] = []
    token = _made.set(box)
    try:
        run()
    finally:
        _made.reset(token)
    return box


class Spout(Task):
    """Petrel's spout."""

    def nextTuple(self) -> None:  # noqa: N802
        """Emit some tuples; the user's class overrides this."""

    def ack(self, id: Any) -> None:
        """Hear that the tree of a tuple was acked."""

    def fail(self, id: Any) -> None:
        """Hear that the tree of a tuple failed."""


class Bolt(Task):
    """Petrel's bolt that acks its tuples itself, by `ack`, and names its anchors."""

    def process(self, tuple: Tuple) -> None:
        """Process a tuple; the user's class overrides this."""


class BasicBolt(Task):
    """Petrel's bolt whose emits are anchored to the current tuple, which is acked when ``process`` returns."""

    def process(self, tuple: Tuple) -> None:
        """Process a tuple; the user's class overrides this."""
