"""The collector of a spout, for an executor with a thread of its own.

An emit in ``next_tuple`` waits until the worker's thread allows more emits. Then the emit becomes a note, and the worker's thread
carries the note out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from stormspark.acker import Verdict
from stormspark.api import DEFAULT_STREAM
from stormspark.worker.executors.bolt_collectors import emitted

if TYPE_CHECKING:
    from stormspark.worker.executors.notes import Notes
    from stormspark.worker.executors.spout_task import ThreadedSpoutTask
    from stormspark.worker.tuples.spout_collector import SpoutCollector

__all__ = ["ThreadedSpoutCollector"]


class ThreadedSpoutCollector:
    """The collector of one instance. ``collector`` is the task's collector on the worker's thread, which makes the trees."""

    def __init__(self, task: ThreadedSpoutTask, notes: Notes, collector: SpoutCollector) -> None:
        self._task, self._notes, self._collector = task, notes, collector
        self.verdict: Verdict | None = None

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, message_id: Hashable | None = None
    ) -> list[int]:
        """Emit a tuple, and track it if it has a message id and there are ackers (B5, B6).

        Without ackers, a message id is acked at once (B8).
        """
        task = self._task
        outlet = self._collector.outlet(stream)
        values = outlet.as_sent(outlet.checked(values))
        tasks = task.choose(outlet, values)
        tracked = message_id if task.acking else None
        self._note(partial(self._collector.deliver, outlet, values, tasks, tracked), tracked)
        emitted(task, outlet, tasks, values)
        if message_id is not None and tracked is None:
            task.ack_at_once(message_id)
        return tasks

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
    ) -> None:
        """Emit to one task on a direct stream (D11). For the rest, see `emit`."""
        mine = self._task
        outlet = self._collector.outlet(stream)
        values = outlet.checked(values)
        tasks = (task,) if outlet.check_direct(task) else ()
        tracked = message_id if mine.acking else None
        self._note(partial(self._collector.emit_direct, task, values, stream, tracked), tracked)
        emitted(mine, outlet, tasks, values)
        if message_id is not None and tracked is None:
            mine.ack_at_once(message_id)

    def _note(self, emit: Callable[[], object], message_id: Hashable | None) -> None:
        self._task.note_emit(self._notes, emit, message_id)

    def group(self, message_id: Hashable) -> ThreadedSpoutGroup:
        """Emit several tuples under one message id, with one verdict (X68).

        Raises `EmitError` on any thread but that of the executor.
        """
        if not self._task.executor.is_current:
            raise self._collector.refused_group()
        return ThreadedSpoutGroup(self._task, self._notes, self._collector, message_id)

    def flush(self) -> None:
        """Do nothing, because tuples leave with the superstep (B5)."""

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._task.report_error_of(self._notes, error)

    @property
    def pending_count(self) -> int:
        """How many trees of this task are open, including those that begin only when a noted emit is carried out (B5)."""
        return self._task.pending_and_noted


class ThreadedSpoutGroup:
    """One message of several tuples (X68). All tuples of the group are noted when the group ends."""

    def __init__(
        self, task: ThreadedSpoutTask, notes: Notes, collector: SpoutCollector, message_id: Hashable
    ) -> None:
        self._task, self._notes, self._collector, self._message_id = task, notes, collector, message_id
        self._open = False
        self._emits: list[Callable[[Any], object]] = []

    def __enter__(self) -> Self:
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        task = self._task
        tracked = self._message_id if task.acking else None
        task.note_emit(
            self._notes, partial(self._carry_out, tracked, kind, error), tracked, 1 + len(self._emits)
        )
        if error is None and self._message_id is not None and tracked is None:
            task.ack_at_once(self._message_id)

    def _carry_out(
        self, message_id: Hashable, kind: type[BaseException] | None, error: BaseException | None
    ) -> None:
        group = self._collector.group(message_id)
        group.__enter__()
        try:
            for emit in self._emits:
                emit(group)
        except Exception as raised:
            group.__exit__(type(raised), raised, None)
            raise
        group.__exit__(kind, error, None)

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emit one tuple of the message."""
        self._check_open()
        outlet = self._collector.outlet(stream)
        values = outlet.as_sent(outlet.checked(values))
        tasks = self._task.choose(outlet, values)
        self._emits.append(lambda group: group.deliver(outlet, values, tasks))
        emitted(self._task, outlet, tasks, values)
        return tasks

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of the message to one task on a direct stream (D11)."""
        self._check_open()
        outlet = self._collector.outlet(stream)
        values = outlet.checked(values)
        tasks = (task,) if outlet.check_direct(task) else ()
        self._emits.append(lambda group: group.emit_direct(task, values, stream))
        emitted(self._task, outlet, tasks, values)

    def _check_open(self) -> None:
        if not self._open:
            raise self._collector.closed_group(self._message_id)
