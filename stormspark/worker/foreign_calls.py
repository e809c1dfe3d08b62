"""Emits, acks and fails that users make in threads of their own (A28, C18, W26).

A task's collector belongs to the thread that runs the tasks: the tuple path takes no locks. What another thread
calls is checked there, waits in the task's mailbox, and is done by the worker between two tuples; so an emit
from there returns no task ids. A mailbox has a cap: above it the calling thread waits, which slows it down as
backpressure slows a spout (Storm lets the queue grow).

Telling the threads apart costs a call each time, which nobody should pay who has no threads. So collectors begin to ask
(``guarded``) when the first thread is started by user code: `Thread.start` is wrapped for that. Threads that are not Python's, or
not started by a task of the worker, are not seen.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol
from weakref import WeakSet

from stormspark.errors import EmitError

__all__ = [
    "Mailbox",
    "comes_later",
    "post",
    "refuse_other_threads",
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
        self._at_hand = 0
        self._taking = False
        self._changed = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def at_hand(self) -> int:
        """Of the calls that wait, those that belong to what the task does now: they, and what was called before them."""
        return self._at_hand

    @property
    def is_taking(self) -> bool:
        """Whether it is inside of `take`."""
        return self._taking

    def post(self, call: Callable[[], object], *, is_at_work: Callable[[], bool] = lambda: False) -> None:
        """Leave a call, of any thread; waits while the box is full. ``is_at_work``: whether the task may wait for the call."""
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
                if is_at_work():
                    self._at_hand = len(self._calls)

    def take(self, most: int | None = None) -> int:
        """Do what waits now, or so much of it, on the task's thread; returns how many calls that was. What one raises comes out,
        the rest stays.
        """
        waiting = len(self._calls) if most is None else min(most, len(self._calls))
        self._taking = True
        try:
            for _ in range(waiting):
                with self._changed:
                    call = self._calls.popleft()
                    self._at_hand = max(0, self._at_hand - 1)
                call()
        finally:
            self._taking = False
            with self._changed:
                self._changed.notify_all()
        return waiting

    def close(self) -> None:
        """The instance has ended: what waits is nobody's any more, and so is what comes."""
        with self._changed:
            self._closed = True
            self._calls.clear()
            self._at_hand = 0
            self._changed.notify_all()


class _Collector(Protocol):
    """What another thread has called."""

    _task: Any


def post(collector: _Collector, call: Callable[[], object]) -> None:
    """Leave a call in the mailbox of the collector's task, unless its instance has ended: nobody knows its tuples any more."""
    task = collector._task
    if task.has(collector):
        task.mailbox.post(call, is_at_work=lambda: task.executes)


def comes_later(collector: _Collector, call: Callable[[], object]) -> bool:
    """Leave an ack or a fail of another thread in the mailbox. On the task's own thread: false, once all has been done that other
    threads called before, while it was at work: an ack comes after the emits that were made before it.
    """
    task = collector._task
    if get_ident() != task.thread:
        post(collector, call)
        return True
    mailbox = task.mailbox
    if mailbox.at_hand and not mailbox.is_taking:
        mailbox.take(mailbox.at_hand)
    return False


def refuse_other_threads(task: Any) -> None:
    """Emits of a `BasicBolt` are anchored to whatever tuple is at hand; raises `EmitError` on another thread than the task's."""
    if get_ident() != task.thread:
        msg = (
            f"{task.name}: a BasicBolt emits inside execute, on the thread that called it; use a Bolt, whose collector may be "
            f"called in other threads (C5, W26)"
        )
        raise EmitError(msg)


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
