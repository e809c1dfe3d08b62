"""Emits, acks and fails that users make in threads of their own (A28, C18, W26).

A task's collector belongs to the worker's thread, because the tuple path takes no locks. A call in another thread is checked in
that thread and then waits in the task's mailbox. The worker's thread carries the call out between two tuples. So an emit in
such a thread returns no task ids. A mailbox has a bound. When it is full, the calling thread waits for room, as a spout waits
under backpressure (Storm lets its queue grow).

Each check of the calling thread costs one function call, and topologies without threads should not pay for it. So collectors
check the thread (``guarded``) only after user code has started its first thread. To notice that, this module wraps
`Thread.start`. A thread goes unnoticed if it is not one of Python's, or if user code of this worker did not start it.
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
from stormspark.worker.host.task_threads import inherit

__all__ = [
    "Mailbox",
    "comes_later",
    "post",
    "refuse_other_threads",
    "start_unwatched",
    "watch_for_threads",
]

#: How many calls may wait for a task.
_MOST = 10_000
#: If a thread has waited for room for this many seconds, the task reports that.
_PATIENCE_SECS = 1.0


class Mailbox:
    """The calls that other threads have made for one task, and that wait for the worker's thread. Thread-safe.

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
        #: Gets a warning of the next call that comes too late; None if nobody wants to hear of it.
        self._warn: Callable[[str], object] | None = None

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def at_hand(self) -> int:
        """How many of the waiting calls belong to the current tuple.

        These are the calls that were made while the task executed the tuple, and all earlier calls.
        """
        return self._at_hand

    @property
    def is_taking(self) -> bool:
        """Whether `take` runs now."""
        return self._taking

    def post(self, call: Callable[[], object], *, is_at_work: Callable[[], bool] = lambda: False) -> None:
        """Add a call, in any thread; wait while the mailbox is full.

        ``is_at_work`` returns whether the task executes a tuple now. If it does, the task's code may wait for the call.
        """
        with self._changed:
            since, reported = time.monotonic(), False
            while len(self._calls) >= self._most and not self._closed:
                self._changed.wait(_PATIENCE_SECS)
                if not reported and time.monotonic() - since >= _PATIENCE_SECS:
                    reported = True
                    self._report(
                        f"{self._task}: one of its threads emits faster than the topology takes the calls: {self._most:,} calls "
                        f"wait, and the thread waits for room. Do not wait for that thread in execute or next_tuple"
                    )
            if not self._closed:
                self._calls.append(call)
                if is_at_work():
                    self._at_hand = len(self._calls)
                return
        self._say_that_it_is_over()

    def take(
        self, most: int | None = None, may_come: Callable[[Callable[[], object]], bool] = lambda call: True
    ) -> int:
        """Carry out the waiting calls, at most ``most`` of them, on the worker's thread; return their number.

        The first call that may not come yet, and all later calls, stay in the mailbox. If a call raises, this method raises the
        same error, and the later calls stay, too.
        """
        waiting = len(self._calls) if most is None else min(most, len(self._calls))
        taken = 0
        self._taking = True
        try:
            # A call may close the mailbox, and then no call is left.
            while taken < waiting and self._calls and may_come(self._calls[0]):
                with self._changed:
                    call = self._calls.popleft()
                    self._at_hand = max(0, self._at_hand - 1)
                taken += 1
                call()
        finally:
            self._taking = False
            with self._changed:
                self._changed.notify_all()
        return taken

    def close(self) -> None:
        """Drop the waiting calls and all later ones, because the instance has ended."""
        with self._changed:
            self._closed = True
            self._calls.clear()
            self._at_hand = 0
            self._changed.notify_all()

    def end(self, warn: Callable[[str], object]) -> None:
        """Do the same because the topology has ended. ``warn`` of the first call that is dropped."""
        self._warn = warn
        dropped = len(self)
        self.close()
        if dropped:
            self._say_that_it_is_over()

    def _say_that_it_is_over(self) -> None:
        warn, self._warn = self._warn, None
        if warn is not None:
            warn(
                f"{self._task}: its own threads still emit, ack or fail tuples at the end of the topology, without effect. A "
                f"bolt that acks a tuple only after all of its work has time for that work"
            )


class _Collector(Protocol):
    """The collector that another thread has called."""

    _task: Any


def post(collector: _Collector, call: Callable[[], object]) -> None:
    """Put a call into the mailbox of the collector's task. Drop it if the collector's instance has ended."""
    task = collector._task
    if task.has(collector):
        task.mailbox.post(call, is_at_work=lambda: task.executes)


def comes_later(collector: _Collector, call: Callable[[], object]) -> bool:
    """In another thread than the worker's, put an ack or a fail into the mailbox, and return true.

    On the worker's thread return false. But first carry out the calls that other threads made while the task was at work, because
    an ack must come after the emits that were made before it.
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
    """Raise `EmitError` on any thread but the one that calls ``execute``.

    A `BasicBolt` anchors its emits to the tuple that it executes now. An emit of another thread may belong to an earlier tuple.
    """
    if get_ident() != task.thread:
        msg = (
            f"{task.name}: a BasicBolt may emit only in execute, on the thread that called it; to emit in other threads, use "
            f"a Bolt"  # C5
        )
        raise EmitError(msg)


class _Watched(Protocol):
    """The interface of a worker that this module uses."""

    def runs_user_code(self, thread: int) -> bool:
        """Return whether this thread is in a task's code now."""

    def guard(self) -> None:
        """Prepare all tasks for calls from other threads."""


_watched: WeakSet[_Watched] = WeakSet()
_start = threading.Thread.start


def watch_for_threads(worker: _Watched) -> None:
    """Call ``worker.guard()`` before user code of this worker starts its first thread."""
    _watched.add(worker)
    # Only Python 3.12 and later have an audit event for new threads.
    threading.Thread.start = _watched_start  # type: ignore[assignment, method-assign]


def start_unwatched(thread: threading.Thread) -> None:
    """Start a thread of stormspark itself. Such a thread never calls a task's collector, so nobody needs to notice it."""
    _start(thread)


def _watched_start(thread: threading.Thread) -> None:
    starter = get_ident()
    for worker in list(_watched):
        if worker.runs_user_code(starter):
            worker.guard()
    inherit(thread)
    _start(thread)
