"""Emits, acks and fails that users make in threads of their own (A28, C18, W26).

A task's collector belongs to the thread that runs the tasks: the tuple path takes no locks. What another thread
calls is checked there, waits in the task's mailbox, and is done by the worker between two tuples; so an emit
from there returns no task ids. A mailbox has a cap: above it the calling thread waits, which slows it down as
backpressure slows a spout (Storm lets the queue grow).

Telling the threads apart costs a call each time, which nobody should pay who has no threads. So collectors are made for
one thread, and become `ThreadSafe...` ones of the same layout when the first thread is started by user code: `Thread.start` is
wrapped for that. Threads that are not Python's, or not started by a task of the worker, are not seen.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import get_ident
from typing import Any, Protocol
from weakref import WeakSet

from stormspark.api import DEFAULT_STREAM, Tuple
from stormspark.errors import EmitError
from stormspark.worker.collectors import BasicCollector, BoltCollector, SpoutCollector

__all__ = [
    "Mailbox",
    "ThreadSafeBoltCollector",
    "ThreadSafeSpoutCollector",
    "emit_in_one_thread",
    "watch_for_threads",
]

#: Calls that may wait for a task.
_MOST = 10_000
#: A thread that waits for so long is told of.
_PATIENCE_SECS = 1.0


class Mailbox:
    """The calls of other threads that wait for one task's thread. Thread-safe.

    >>> calls, mailbox = [], Mailbox("bolt[0]", report=print)
    >>> mailbox.post(lambda: calls.append(1)); mailbox.take(); calls
    1
    [1]
    """

    def __init__(self, task: str, report: Callable[[str], None], most: int = _MOST) -> None:
        self._task, self._report, self._most = task, report, most
        self._calls: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        return len(self._calls)

    def post(self, call: Callable[[], object]) -> None:
        """Leave a call, of any thread; waits while the box is full."""
        with self._changed:
            since, told = time.monotonic(), False
            while len(self._calls) >= self._most and not self._closed:
                self._changed.wait(_PATIENCE_SECS)
                if not told and time.monotonic() - since >= _PATIENCE_SECS:
                    told = True
                    self._report(
                        f"{self._task}: a thread of its own emits faster than the topology takes: {self._most:,} calls wait, and "
                        f"the thread waits until there is room (W26). Do not wait for that thread inside execute or next_tuple"
                    )
            if not self._closed:
                self._calls.append(call)

    def take(self) -> int:
        """Do what waits now, on the task's thread; returns how many calls that was. What one raises comes out, the rest stays."""
        waiting = len(self._calls)
        try:
            for _ in range(waiting):
                self._calls.popleft()()
        finally:
            with self._changed:
                self._changed.notify_all()
        return waiting

    def close(self) -> None:
        """The instance has ended: what waits is nobody's any more, and so is what comes."""
        with self._changed:
            self._closed = True
            self._calls.clear()
            self._changed.notify_all()


def _post(collector: BoltCollector | SpoutCollector, call: Callable[[], object]) -> None:
    """Leave a call in the mailbox of the collector's task, unless its instance has ended: nobody knows its tuples any more."""
    task = collector._task
    if task.has(collector):
        task.mailbox.post(call)


def _do_here_or_post(collector: BoltCollector, call: Callable[[], None]) -> None:
    """Do what gives nothing back: at once on the task's own thread, else soon."""
    if get_ident() == collector._task.thread:
        call()
    else:
        _post(collector, call)


class ThreadSafeBoltCollector(BoltCollector):
    """A `BoltCollector` that other threads may call."""

    __slots__ = ()

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, anchors: Tuple | Iterable[Tuple] = ()
    ) -> list[int]:
        """Emit a tuple; of another thread: soon, and no task ids are known yet."""
        task = self._task
        if get_ident() == task.thread:
            return super().emit(values, stream, anchors)
        values, roots = self.outlet(stream).checked(values), self._roots(anchors) if anchors else None
        _post(self, lambda: self.outlet(stream).send(values, roots))
        return []

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] = (),
    ) -> None:
        """Emit to one task on a direct stream."""
        if get_ident() == self._task.thread:
            super().emit_direct(task, values, stream, anchors)
            return
        values, roots = self.outlet(stream).checked(values), self._roots(anchors) if anchors else None
        _post(self, lambda: self.outlet(stream).send_direct(task, values, roots))

    def ack(self, tup: Tuple) -> None:
        """Close the tuple's edge."""
        _do_here_or_post(self, lambda: BoltCollector.ack(self, tup))

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Fail the tuple's trees."""
        _do_here_or_post(self, lambda: BoltCollector.fail(self, tup, reason))

    def reset_timeout(self, tup: Tuple) -> None:
        """Give the tuple's trees another timeout."""
        _do_here_or_post(self, lambda: BoltCollector.reset_timeout(self, tup))


class ThreadSafeSpoutCollector(SpoutCollector):
    """A `SpoutCollector` that other threads may call. Groups of emits belong to the task's own thread."""

    __slots__ = ()

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, message_id: Hashable | None = None
    ) -> list[int]:
        """Emit a tuple; of another thread: soon, and no task ids are known yet."""
        if get_ident() == self._task.thread:
            return super().emit(values, stream, message_id)
        values = self.outlet(stream).checked(values)
        _post(self, lambda: SpoutCollector.emit(self, values, stream, message_id))
        return []

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
    ) -> None:
        """Emit to one task on a direct stream."""
        if get_ident() == self._task.thread:
            super().emit_direct(task, values, stream, message_id)
            return
        values = self.outlet(stream).checked(values)
        _post(self, lambda: SpoutCollector.emit_direct(self, task, values, stream, message_id))


def emit_in_one_thread(collector: BasicCollector, thread: Callable[[], int], task: str) -> None:
    """Have a `BasicCollector` refuse emits of other threads: they are anchored to whatever tuple is at hand."""
    plain = collector.emit

    def emit(values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        if get_ident() != thread():
            msg = (
                f"{task}: a BasicBolt emits inside execute, on the thread that called it; use a Bolt, whose collector may be "
                f"called in other threads (C5, W26)"
            )
            raise EmitError(msg)
        return plain(values, stream)

    collector.emit = emit


class _Watched(Protocol):
    """A worker."""

    def runs_user_code(self, thread: int) -> bool:
        """Whether this thread is in a task's code now."""

    def guard(self) -> None:
        """User code has threads from now on."""


_watched: WeakSet[_Watched] = WeakSet()
_start = threading.Thread.start


def watch_for_threads(worker: _Watched) -> None:
    """Have ``worker.guard()`` called before the first thread runs that user code of it starts."""
    _watched.add(worker)
    # Python tells of new threads by an audit event only from 3.12 on.
    threading.Thread.start = _watched_start  # type: ignore[assignment, method-assign]


def _watched_start(thread: threading.Thread) -> None:
    starter = get_ident()
    for worker in list(_watched):
        if worker.runs_user_code(starter):
            worker.guard()
    _start(thread)
