"""The asyncio event loop of a worker, which runs the coroutines of all its async components."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from queue import Empty, SimpleQueue
from typing import Any

from stormspark.errors import EmitError
from stormspark.user_line import CodePlace, running_at, waiting_at
from stormspark.worker.busy import Busy
from stormspark.worker.executors.switching import switch_interval
from stormspark.worker.foreign_calls import start_unwatched
from stormspark.worker.pools import end_pool

__all__ = ["END_SECS", "EventLoop"]

#: For how many seconds `EventLoop.end` waits for cancelled coroutines. If a coroutine blocks the loop, the loop's thread is
#: left running.
END_SECS = 2.0
#: For how many seconds it waits if a stop has waited for a coroutine in vain already.
_GIVEN_UP_SECS = 0.2
#: User code blocks the loop if a function has waited this many seconds for its call, or if the loop has been at the same line of
#: user code, at each look, for this many seconds.
_LATE_SECS, _SAME_LINE_SECS = 1.0, 2.0


class EventLoop:
    """A running event loop in a thread of its own. ``name`` is the name of the thread.

    ``context_of`` returns the context in which a coroutine of a task runs. If it returns None, that is a copy of the current one.
    """

    def __init__(self, name: str, context_of: Callable[[str], Context | None] = lambda task: None) -> None:
        self._context_of = context_of
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_say_once)
        #: The pool of `asyncio.to_thread`.
        self._pool = ThreadPoolExecutor(thread_name_prefix=f"{name}-pool")
        self._loop.set_default_executor(self._pool)
        self._ends = False
        #: Whether nobody waits for coroutines any longer: a stop has waited in vain, or the topology is killed.
        self.is_given_up = False
        #: Functions that the worker's thread has to call.
        self._notes: SimpleQueue[Callable[[], object]] = SimpleQueue()
        #: The names of the tasks of async components. Each coroutine of theirs runs under such a name.
        self.tasks: set[str] = set()
        #: The thread that looks: the task whose code the loop was in when it was last seen in user code, and the place.
        #: `_same_since`: since when it was at that line at each look; None if it is not there any more.
        self._seen: tuple[str, CodePlace] = ("", CodePlace("", ""))
        self._same_since: float | None = None
        #: For each component that has blocked the loop, the call that did so longest at a time. The thread that looks writes it.
        self.longest_blocks: dict[str, Busy] = {}
        #: When `look` asked the loop for a call; None once the loop has made the call.
        self._asked_at: float | None = None
        switch_interval.shorten()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        # The loop's thread calls no collector of a task, so tasks need not be prepared for calls from this thread.
        start_unwatched(self._thread)
        assert self._thread.ident is not None
        #: The id of the loop's thread.
        self.thread: int = self._thread.ident

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        # So Python's warning of a coroutine that nobody awaits names the line that made it. That costs some 50 ns per coroutine.
        sys.set_coroutine_origin_tracking_depth(1)
        try:
            while not self._ends:  # user code may stop the loop
                try:
                    self._loop.run_forever()
                except (KeyboardInterrupt, SystemExit) as error:
                    # This error comes from an asyncio task or a callback that a coroutine has started. Whoever awaits the
                    # asyncio task gets the error, too. The loop goes on, because it belongs to all components.
                    what = f"a task or a callback raised {type(error).__name__}"
                    self._loop.call_exception_handler({"message": what, "exception": error})
        finally:
            self._loop.close()

    def now(self) -> float:
        """Return the loop's time, in seconds."""
        return self._loop.time()

    def note(self, function: Callable[[], object]) -> None:
        """Make the worker's thread call a function. Any thread may call this."""
        self._notes.put(function)

    def has_notes(self) -> bool:
        """Return whether a noted function waits for the worker's thread. Any thread may call this."""
        return not self._notes.empty()

    def take_notes(self, seconds: float = 0.0) -> None:
        """Call the noted functions, on the worker's thread. If none waits, wait for one for ``seconds``."""
        with suppress(Empty):
            note = self._notes.get(timeout=seconds) if seconds else self._notes.get_nowait()
            while True:
                note()
                note = self._notes.get_nowait()

    @property
    def place(self) -> str:
        """The line at which the loop's thread is now."""
        frame = sys._current_frames().get(self.thread)
        place = running_at(frame, __name__)
        if place is not None:
            return place.line
        return "no line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def place_of(self, running: asyncio.Task[None]) -> CodePlace | None:
        """Return where the code of an asyncio task waits or runs. Any thread may call this."""
        waits = waiting_at(running.get_coro())
        if asyncio.current_task(self._loop) is running:  # it may begin to wait while it is looked at
            return running_at(sys._current_frames().get(self.thread), __name__) or waits
        return waits

    def place_in(self, coroutine: Coroutine[Any, Any, object]) -> CodePlace | None:
        """Return where a coroutine waits or runs. Any thread may call this."""
        waits = waiting_at(coroutine)
        if getattr(coroutine, "cr_running", False):  # it may begin to wait while it is looked at
            return running_at(sys._current_frames().get(self.thread), __name__) or waits
        return waits

    def look(self) -> None:
        """Look whether user code blocks the loop. Another thread calls this several times per second.

        That code need not be one long call. It may also be a short call, such as ``time.sleep(0.02)``, that each coroutine
        makes. Then the loop is late if it has many coroutines, and is always seen at the same line.
        """
        place = running_at(sys._current_frames().get(self.thread), __name__, only_own=True)
        if place is None:
            self._same_since = None
            return
        if self._same_since is None or self._seen[1] != place:
            self._same_since = time.monotonic()
        running = asyncio.current_task(self._loop)
        name = "" if running is None else running.get_name()
        self._seen = name if name in self.tasks else "a coroutine", place
        if self._asked_at is None:
            self._asked_at = time.monotonic()
            self.call(self._answer)

    def _answer(self) -> None:
        self._asked_at = None

    def blocked(self) -> Busy | None:
        """Return the call that blocks the loop, if `look` has found one. The thread that looks calls this."""
        now, asked_at, same_since = time.monotonic(), self._asked_at, self._same_since
        if same_since is None:  # it is in no user code now, so something else may have made it late
            return None
        late, same = 0.0 if asked_at is None else now - asked_at, now - same_since
        if late < _LATE_SECS and same < _SAME_LINE_SECS:
            return None
        task, place = self._seen
        busy = Busy(task, max(late, same), alone=True, on_loop=True, place=place)
        longest = self.longest_blocks.get(busy.component)
        if longest is None or longest.seconds < busy.seconds:
            # A new dict, because the worker's thread may read the old one at the same time.
            self.longest_blocks = {**self.longest_blocks, busy.component: busy}
        return busy

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function on the loop soon. Any thread may call this. Do nothing if the loop has ended."""
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def call_at(self, when: float, function: Callable[[], object]) -> None:
        """Call a function at time ``when`` of the loop's clock (`now`). Only functions that run on the loop may call this."""
        self._loop.call_at(when, function)

    def begin(self, coroutine: Coroutine[Any, Any, None], task: str) -> asyncio.Task[None]:
        """Begin a coroutine of the task named ``task``. Only functions that run on the loop may call this."""
        return self._loop.create_task(coroutine, name=task, context=self._context_of(task))

    def end(self) -> None:
        """Cancel all coroutines, and end the thread."""
        switch_interval.restore()
        self.call(lambda: self._loop.create_task(self._end()))
        self._thread.join(_GIVEN_UP_SECS if self.is_given_up else END_SECS)
        end_pool(self._pool)

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            _, left = await asyncio.wait(others, timeout=END_SECS / 2)
            for task in left:  # the summary names them, so asyncio need not say of each that it was destroyed
                task._log_destroy_pending = False  # type: ignore[attr-defined]
        await self._loop.shutdown_asyncgens()
        self._ends = True
        self._loop.stop()


def _say_once(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Do what asyncio does with an exception that nobody retrieves, unless the task has reported the exception already."""
    error = context.get("exception")
    if not (isinstance(error, EmitError) and error.is_reported):
        loop.default_exception_handler(context)
