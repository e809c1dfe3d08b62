"""The life of one instance of an async component, from ``prepare`` or ``open`` to ``cleanup`` or ``close``.

These calls run on the event loop, one after another. The worker's thread begins them and goes on with its other tasks, so a
``prepare`` that waits holds up its own task alone. The worker's thread waits only when it opens the worker, for the first start,
and at the end, for the last call.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from copy import copy
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple

from stormspark.api import TaskHook, TopologyContext
from stormspark.metrics import Metric
from stormspark.spi import LivesOutside
from stormspark.user_line import CodePlace
from stormspark.worker.asynchronous.event_loop import EventLoop
from stormspark.worker.busy import Busy
from stormspark.worker.errors_of_code import contained
from stormspark.worker.executors.thread import STOP_SECS, CallNotReturnedError

if TYPE_CHECKING:
    from stormspark.worker.task import Task

__all__ = ["AsyncExecutor", "CallOnLoop"]

_Call = Callable[[], Coroutine[Any, Any, object]]

#: A thread that waits for the last call looks this often whether the topology is killed.
_LOOK_SECS = 0.1


class CallOnLoop(NamedTuple):
    """A call of a coroutine of the user's, which is under way on the event loop."""

    #: Whether the call is the first call of an instance: ``open`` or ``prepare``.
    opens: bool
    #: When the call began, on the loop's clock.
    since: float
    coroutine: Coroutine[Any, Any, object]
    #: How many other calls of the task are under way. For the other two, see `Busy`.
    others: int = 0
    cancelled_after: float = 0.0
    all_places: int = 0


class _Life:
    """The calls of one instance of ``task`` that come one after another. After each call but the last, ``ended`` is called on
    the loop, with the name of the call and its error. After an error in the first call, no other call is made.
    """

    def __init__(self, loop: EventLoop, task: str, ended: Callable[[str, Exception | None], None]) -> None:
        self._loop, self._task, self._ended = loop, task, ended
        #: The calls that have not ended. The first of them is under way, or is about to begin. Any thread may read this.
        self.calls: deque[tuple[str, _Call]] = deque()
        #: The first call of `calls`; None if it has not begun. Any thread may read this.
        self.under_way: CallOnLoop | None = None
        #: Whether no further call may be made.
        self._over = False
        self._running: asyncio.Task[None] | None = None
        self._made = 0
        #: Worker's thread: when the last call has to have returned; None while it was not asked for.
        self._ends_at: float | None = None
        self._last: _Call | None = None
        self._has_ended = Event()
        self._last_error: Exception | None = None

    # -- on the worker's thread --------------------------------------------------------------------------------

    def begin(self, name: str, call: _Call) -> None:
        """Make a call on the loop once all earlier calls have ended. Do not wait for it."""
        self.calls.append((name, call))
        self._loop.call(self._go_on)

    def begin_last(self, name: str, call: _Call) -> None:
        """Begin the last call, unless that was done already. If the first call has not ended, nobody waits for the two."""
        if self._ends_at is None:
            self._ends_at, self._last = time.monotonic() + (STOP_SECS if self._made else 0.0), call
            self.begin(name, call)
            self._loop.call(self._go_on_to_end)

    @property
    def is_ending(self) -> bool:
        """Whether the last call was asked for."""
        return self._ends_at is not None

    def wait_for_last(self) -> None:
        """Wait until the last call has returned, and raise its error.

        Raises `CallNotReturnedError` if it has not returned `STOP_SECS` after `begin_last`, if the first call has not ended, or
        if the topology is killed.
        """
        assert self._ends_at is not None
        while not self._has_ended.wait(max(0.0, min(_LOOK_SECS, self._ends_at - time.monotonic()))):
            if self._loop.is_given_up or time.monotonic() >= self._ends_at:
                self._loop.is_given_up |= bool(self._made)
                raise CallNotReturnedError(*self._stuck())
        if self._last_error is not None:
            raise self._last_error

    def _stuck(self) -> tuple[str, Busy | None]:
        """Return what has happened, and the call that has not returned."""
        name, under_way = self.calls[0][0] if self.calls else "last call", self.under_way
        if under_way is None:
            text = (
                f"its {name} could not begin, because the event loop is blocked at {self._loop.place}, and the topology stops "
                f"without it"
            )
            return text, self._loop.blocked()
        seconds, place = self._loop.now() - under_way.since, self.place
        at = "" if place is None else f" ({place.line})"
        text = f"has not returned from its {name}{at} for {seconds:.0f} s, and the topology stops without it"  # B1, C1
        return text, Busy(self._task, seconds, place=place)

    @property
    def place(self) -> CodePlace | None:
        """Where the code of the call is that is under way; None if that is not known. Any thread may read this."""
        return None if (running := self._running) is None else self._loop.place_of(running)

    # -- on the loop -------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        if self._running is None and self.calls and not self._over:
            self._running = self._loop.begin(self._make_calls(), self._task)

    def _go_on_to_end(self) -> None:
        if self._over:
            self._has_ended.set()

    async def _make_calls(self) -> None:
        while self.calls and not self._over:
            name, call = self.calls[0]
            error = None
            try:
                coroutine = call()
                self.under_way = CallOnLoop(not self._made, self._loop.now(), coroutine)
                await coroutine
            except BaseException as raised:  # includes `SystemExit`, which would end the loop
                error = contained(name, raised)
            if self._over:
                return
            self._made += 1
            if call is self._last:
                self._last_error = error
                self._has_ended.set()
            else:
                self._over = error is not None and self._made == 1
                self._ended(name, error)
            self.under_way = None
            self.calls.popleft()
        self._running = None
        if self._over:
            self.end()

    def end(self) -> None:
        """Cancel the call that is under way, and make no further call."""
        self._over = True
        self.calls.clear()
        self._has_ended.set()
        if self._running is not None:
            self._running.cancel()


class AsyncExecutor(LivesOutside):
    """What the ordinary spout around an `AsyncSpout` and the ordinary bolt around an `AsyncBolt` have in common.

    ``get_loop`` returns the worker's event loop. The worker's thread calls ``ended`` when a call of the instance's life has
    ended, with this object, the name of the call, and its error.
    """

    def __init__(
        self,
        get_loop: Callable[[], EventLoop],
        ended: Callable[[AsyncExecutor, str, Exception | None], None],
    ) -> None:
        self._get_loop, self._ended = get_loop, ended
        self._closed = False
        #: Worker's thread: whether the first call, ``prepare`` or ``open``, has not returned yet.
        self._is_starting = True
        #: The call that had not ended when the instance ended, if there is one, such as one that ignored its cancellation.
        self.not_ended: Busy | None = None
        self._loop: EventLoop
        self._life: _Life
        #: The name of the task. `place` names the component and the task's id, for messages.
        self.task = self.place = ""

    def _begin_life(self, context: TopologyContext) -> TopologyContext:
        """Begin the life of the instance. Return the context for its coroutines."""
        self._loop = self._get_loop()
        self.task = f"{context.this_component_id}[{context.this_task_index}]"
        self._loop.tasks.add(self.task)
        self._life = _Life(self._loop, self.task, self._note_end)
        self.place = f"component {context.this_component_id!r}, task {context.this_task_id}"
        mine = copy(context)
        mine._services = _ServicesOnLoop(mine._services, self._later)  # type: ignore[arg-type]
        return mine

    @abstractmethod
    def begin_to_stop(self) -> None:
        """Begin the last calls of the instance on the event loop, without waiting for them."""

    def oldest_call(self) -> CallOnLoop | None:
        """Return the call of the instance that has been under way for longest. Any thread may call this.

        Return None once the last call was asked for, because whoever waits for that call also warns about it.
        """
        if not hasattr(self, "_life") or self._life.is_ending:
            return None
        return self._life.under_way or self._oldest_work()

    def awaiting(self) -> Busy | None:
        """Return `oldest_call` with its place. Any thread may call this."""
        return self._busy_with(self.oldest_call())

    def _busy_with(self, call: CallOnLoop | None) -> Busy | None:
        """Return a call with its place. Any thread may call this."""
        if call is None:
            return None
        seconds = self._loop.now() - call.since
        place = self._loop.place_in(call.coroutine)
        return Busy(
            self.task,
            seconds,
            call.opens,
            awaits=True,
            place=place,
            others=call.others,
            cancelled_after=call.cancelled_after,
            all_places=call.all_places,
        )

    def _oldest_work(self) -> CallOnLoop | None:
        """Return the oldest call that is not one of the instance's life. Any thread may call this."""
        return None

    @property
    def place_in_code(self) -> CodePlace | None:
        """Where the code is that the instance's life has called; None if that is not known. Any thread may read this."""
        return self._life.place if hasattr(self, "_life") else None

    @property
    def is_given_up(self) -> bool:
        """See `EventLoop.is_given_up`."""
        return self._loop.is_given_up

    @property
    def calls_of_life(self) -> int:
        """How many calls of the instance's life have not ended."""
        return len(self._life.calls)

    def _later(self, function: Callable[[], object]) -> None:
        """Make the worker's thread call a function, unless the instance has ended by then. Any thread may call this."""
        self._loop.note(partial(self._unless_closed, function))

    def _unless_closed(self, function: Callable[[], object]) -> None:
        if not self._closed:
            function()

    def _note_end(self, call: str, error: Exception | None) -> None:
        self._later(partial(self._call_ended, call, error))

    def _call_ended(self, call: str, error: Exception | None) -> None:
        if self._is_starting:
            self._is_starting = error is not None
        self._ended(self, call, error)


class _ServicesOnLoop:
    """The services of a worker for coroutines of a task. Whatever changes the task waits for the worker's thread."""

    def __init__(self, task: Task, later: Callable[[Callable[[], object]], None]) -> None:
        self._task, self._later = task, later

    def set_timer(self, seconds: float, callback: Callable[[], None], first: float | None = None) -> None:
        """See `Task.set_timer`."""
        self._later(partial(self._task.set_timer, seconds, callback, first))

    def now(self) -> float:
        """See `Task.now`."""
        return self._task.now()

    def add_hook(self, hook: TaskHook) -> None:
        """See `Task.add_hook`."""
        self._task.check_hook(hook)
        self._later(partial(self._task.append_hook, hook))
        self._task.prepare_hook(hook)

    def add_metric(self, name: str, metric: Metric, bucket_secs: float) -> None:
        """See `Task.add_metric`."""
        self.set_timer(bucket_secs, self._task.register_metric(name, metric, bucket_secs))

    @property
    def shared_executor(self) -> Executor:
        """See `Task.shared_executor`. No check is turned on, because collectors of async components always check the thread."""
        return self._task.shared_pool
