"""The thread of one executor. All user code of its tasks runs on this thread, from ``prepare`` or ``open`` to the end (A16,
A17).
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any, Protocol, TypeVar

from stormspark.user_line import running_at
from stormspark.worker.busy import Busy
from stormspark.worker.foreign_calls import start_unwatched
from stormspark.worker.host.forks import end_in_children

__all__ = ["STOP_SECS", "CallNotReturnedError", "ExecutorThread", "Taker", "ThreadRefusedError"]

#: A stop waits at most this many seconds for the calls that are under way, and for the last calls of all tasks.
STOP_SECS = 10.0

_T = TypeVar("_T")


class CallNotReturnedError(RuntimeError):
    """Raised if the topology stops and a call for which the worker's thread waits has not returned in time. ``busy`` is the call,
    if that is known.
    """

    def __init__(self, message: str, busy: Busy | None) -> None:
        super().__init__(message)
        self.busy = busy


class ThreadRefusedError(RuntimeError):
    """Raised if the operating system starts no more threads."""


class Taker(Protocol):
    """A task as its executor's thread sees it."""

    def take_turn(self) -> bool:
        """Run user code for a short while, on the executor's thread. Return whether there was code to run."""


class _Call:
    """A call that the worker's thread waits for. ``returned`` is called as soon as the call has returned, before the worker's
    thread goes on.
    """

    __slots__ = ("_call", "_returned", "error", "is_done", "is_dropped", "result")

    def __init__(self, call: Callable[[], Any], returned: Callable[[], None]) -> None:
        self._call, self._returned = call, returned
        self.is_done = self.is_dropped = False
        self.result: Any = None
        self.error: BaseException | None = None

    def __call__(self) -> None:
        if self.is_dropped:
            return
        try:
            self.result = self._call()
        except BaseException as error:
            self.error = error
        self._returned()
        self.is_done = True


class ExecutorThread:
    """The thread of the executor ``name``. Its tasks take turns on it. A turn is short: often a single call of user code.

    ``ring`` wakes up the worker's thread. While the worker's thread waits for a call, it calls ``serve``. ``serve`` carries out
    the notes of this executor's tasks, and waits a moment for a ring. The executor's thread calls ``enter`` with the name of a
    task before it runs code of another task than before. Once ``is_late`` returns true, the worker's thread waits for no call
    any more, except for a ``patient`` one.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: Callable[[], float],
        ring: Callable[[], None],
        serve: Callable[[ExecutorThread], None],
        enter: Callable[[str], None],
        is_late: Callable[[], bool] = lambda: False,
    ) -> None:
        self.name = name
        self._clock, self._ring, self._serve, self._enter = clock, ring, serve, enter
        self._is_late = is_late
        self.tasks: list[Taker] = []
        self._next = 0  # the index of the task whose turn is next
        #: Submitted calls, which are made before the next turn of a task.
        self._calls: deque[tuple[str, Callable[[], object]]] = deque()
        #: Calls of timers that are due. The tasks may take a turn between two of them, so timers starve no task.
        self._timers_due: deque[tuple[str, Callable[[], object]]] = deque()
        self._timer_was_last = False
        #: A lock. It is locked while the thread sleeps, and while the thread has no reason to look for more work.
        self._sleep = threading.Lock()
        self._sleep.acquire()
        self._ends = False
        #: Whether a call was given up, because it did not return in time when the worker ended.
        self.gave_up = False
        self._entered = ""
        #: The task whose code runs, and the time when the code began; None while no code runs. Other threads read this.
        self.at: tuple[str, float] | None = None
        #: When the worker's thread last carried out notes of the tasks.
        self.heard_at = -inf
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._started = False
        end_in_children(self)

    # -- on the worker's thread ----------------------------------------------------------------------------------

    def wake(self) -> None:
        """Let the thread look for something to do. Any thread may call this, at any time.

        The first call starts the thread. Raises `ThreadRefusedError` if the operating system has no more threads.
        """
        try:
            if self.may_sleep:
                self._sleep.release()
        except RuntimeError:
            pass  # another thread has released the lock
        if not self._started:
            self._started = True
            try:
                start_unwatched(self._thread)
            except RuntimeError as error:  # Python does not say which of the system's limits is reached
                self._calls.clear()
                raise ThreadRefusedError(str(error)) from error

    @property
    def may_sleep(self) -> bool:
        """Whether the thread may overlook new work unless somebody wakes it. Any thread may read this."""
        return self._sleep.locked()

    def submit(self, task: str, call: Callable[[], object]) -> None:
        """Make ``call`` on this thread before the next turn. ``call`` must not raise. ``task`` is the name of the task whose
        code ``call`` runs.
        """
        self._calls.append((task, call))
        self.wake()

    def submit_timer(self, task: str, call: Callable[[], object]) -> None:
        """Make the ``call`` of a timer between two turns, and after all calls of `submit`. ``call`` must not raise."""
        self._timers_due.append((task, call))
        self.wake()

    def run(self, task: str, call: Callable[..., _T], *args: Any, patient: bool = False) -> _T:
        """Call a function on this thread, and wait until it returns. Return its result, or raise its error.

        Raises `CallNotReturnedError` if the topology stops and the function, or a call before it, has not returned in time. If
        ``patient``, wait for as long as the function takes.
        """
        waited_for = _Call(lambda: call(*args), self._has_returned)

        def run_and_ring() -> None:
            waited_for()
            self._ring()

        self.submit(task, run_and_ring)
        while not waited_for.is_done:
            if self._is_late() and not patient:
                waited_for.is_dropped = True
                busy = self.busy
                msg = f"{busy.code} has not returned for {busy.seconds:.0f} s, and the topology stops"
                raise CallNotReturnedError(msg, busy)
            self._serve(self)
        if waited_for.error is not None:
            raise waited_for.error
        return waited_for.result  # type: ignore[no-any-return]

    def end(self) -> None:
        """End the thread once the call that runs now has returned. This method does not wait for the end."""
        self._ends = True
        if self._started:  # `wake` would start a thread, and the system may have none left
            self.wake()

    @property
    def has_started(self) -> bool:
        """Whether the thread runs, or has run."""
        return self._thread.ident is not None

    @property
    def ident(self) -> int:
        """The id of the thread; 0 if it has not started."""
        return self._thread.ident or 0

    def end_copy(self) -> None:
        """End the copy of this thread in a process that user code on this thread has forked. The process ends with the copy."""
        self._ends = True  # without `wake`, which starts a thread that has not started yet

    @property
    def is_idle(self) -> bool:
        """Whether no code runs on this thread, and no submitted call waits."""
        return not (self._calls or self._timers_due) and self.at is None

    @property
    def busy(self) -> Busy:
        """The call that runs on this thread, with its place."""
        name, seconds = self.at_for
        return Busy(
            name, seconds, place=running_at(sys._current_frames().get(self.ident), "stormspark.worker.core")
        )

    def is_silent_for(self, seconds: float) -> bool:
        """Return whether a call has been under way for ``seconds`` and has noted nothing in the last ``seconds``."""
        at = self.at
        return at is not None and self._clock() - max(at[1], self.heard_at) >= seconds

    def is_in_call_for(self, seconds: float) -> bool:
        """Return whether a call has been under way for ``seconds``."""
        at = self.at
        return at is not None and self._clock() - at[1] >= seconds

    @property
    def is_current(self) -> bool:
        """Whether the calling thread is this one."""
        return threading.get_ident() == self._thread.ident

    # -- on the executor's thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ends:
            self._sleep.acquire()
            while not self._ends and self._do_one_thing():
                pass

    def _do_one_thing(self) -> bool:
        if self._calls:
            self._make_first(self._calls)
            return True
        if self._timers_due and not self._timer_was_last:
            self._timer_was_last = True
            self._make_first(self._timers_due)
            return True
        self._timer_was_last = False
        for _ in self.tasks:
            task_here = self.tasks[self._next % len(self.tasks)]
            self._next += 1
            if task_here.take_turn():
                self._has_returned()
                return True
        return bool(self._timers_due)

    def _make_first(self, calls: deque[tuple[str, Callable[[], object]]]) -> None:
        task, call = calls[0]
        self.enter(task)
        calls.popleft()  # after `enter`, so that `is_idle` misses no call
        call()
        self._has_returned()

    def _has_returned(self) -> None:
        self.at = None

    @property
    def at_for(self) -> tuple[str, float]:
        """The task whose code runs, and for how many seconds the code has been running."""
        name, since = self.at or (self._entered, self._clock())
        return name, self._clock() - since

    def enter(self, task: str) -> None:
        """Remember that code of a task begins to run now."""
        if task != self._entered:
            self._entered = task
            self._enter(task)
        self.at = (task, self._clock())
