"""The ordinary spout around an `AsyncSpout`. Calls of the user's spout run on the event loop, and the worker's thread takes their
emits.

The *loop* runs two coroutines for each spout. The *caller* calls the user's ``next_tuple`` again and again. It waits while the
spout is inactive, while many emits have not been taken, or while many verdicts wait. The *informer* calls the user's ``ack`` and
``fail``, one at a time. The *worker's thread* takes one emit per ``next_tuple`` of `AsyncSpoutExecutor`. So max spout pending and
backpressure limit an async spout like any other spout.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from stormspark.acker import Verdict
from stormspark.api import DEFAULT_STREAM, AsyncSpout, Spout, SpoutOutputCollector, TopologyContext
from stormspark.worker.asynchronous.event_loop import END_SECS, EventLoop
from stormspark.worker.asynchronous.life import AsyncExecutor, CallOnLoop
from stormspark.worker.busy import Busy
from stormspark.worker.errors_of_code import contained
from stormspark.worker.executors.thread import STOP_SECS, CallNotReturnedError

__all__ = ["AsyncSpoutExecutor"]

_log = logging.getLogger(__name__)

#: For how many seconds the caller waits after a call of ``next_tuple`` that has emitted nothing (B12).
_PAUSE_SECS = 0.001
#: After this many calls the caller lets other coroutines run, because a call may return without ever waiting.
_TURN = 64
#: Once this many acks and fails wait, ``next_tuple`` is not called again until the spout has got half of them.
_MOST_VERDICTS = 1000
#: How much of `STOP_SECS` the informer has to tell the spout all verdicts at the end, and how much for one of them.
_SHARE_OF_VERDICTS = 0.8
_SHARE_OF_ONE = 0.5


class AsyncSpoutCollector:
    """The collector of an async spout; see `stormspark.api.AsyncSpoutOutputCollector`."""

    def __init__(self, collector: Any, note: Callable[[Callable[[], object]], None]) -> None:
        self._collector = collector  # a `SpoutCollector`; only the worker's thread may emit with it
        self._note = note
        self.verdict: Verdict | None = None

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, message_id: Hashable | None = None
    ) -> None:
        """Emit a tuple, and track it if it has a message id (B5, B6). Raises `EmitError`."""
        values = self._collector.outlet(stream).checked(values)
        self._note(partial(self._collector.emit, values, stream, message_id))

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
    ) -> None:
        """Emit a tuple on a direct stream to one task (B9, D11). Raises `EmitError`."""
        values = self._collector.outlet(stream).checked(values)
        self._note(partial(self._collector.emit_direct, task, values, stream, message_id))

    @contextmanager
    def group(self, message_id: Hashable) -> Iterator[AsyncSpoutGroup]:
        """Emit several tuples under one message id (X68)."""
        group = AsyncSpoutGroup(self._collector)
        yield group
        self._note(partial(group.leave, message_id))

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._note(partial(self._collector.report_error, error))


class AsyncSpoutGroup:
    """The tuples of one message of an async spout; see `stormspark.api.AsyncEmitGroup`."""

    def __init__(self, collector: Any) -> None:
        self._collector = collector
        self._emits: list[Callable[[Any], object]] = []

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of the message. Raises `EmitError`."""
        values = self._collector.outlet(stream).checked(values)
        self._emits.append(lambda group: group.emit(values, stream))

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of the message on a direct stream to one task. Raises `EmitError`."""
        values = self._collector.outlet(stream).checked(values)
        self._emits.append(lambda group: group.emit_direct(task, values, stream))

    def leave(self, message_id: Hashable) -> None:
        """Emit the tuples, on the worker's thread."""
        with self._collector.group(message_id) as group:
            for emit in self._emits:
                emit(group)


class AsyncSpoutExecutor(AsyncExecutor, Spout):
    """A spout that runs the user's ``spout`` on an event loop. ``is_ending`` says whether the topology stops and asks for nothing
    more; any thread may call it. For the other arguments, see `AsyncExecutor`.
    """

    def __init__(
        self,
        spout: AsyncSpout,
        loop: Callable[[], EventLoop],
        ended: Callable[[AsyncExecutor, str, Exception | None], None],
        is_ending: Callable[[], bool],
    ) -> None:
        super().__init__(loop, ended)
        self.spout, self._is_ending = spout, is_ending
        self._prefetch = spout.prefetch
        #: From the loop to the worker's thread: notes of what the spout did.
        self._notes: deque[Callable[[], object]] = deque()
        #: From the loop to the worker's thread: the exception with which a call of the spout has ended.
        self._error: Exception | None = None
        #: From the worker's thread to the loop: how trees have ended.
        self._verdicts: deque[tuple[bool, Hashable, Verdict | None]] = deque()
        #: The ``ack`` or ``fail`` that is under way. Any thread may read this.
        self._telling: CallOnLoop | None = None
        self._noted = 0  # how many notes were made so far
        self._returned = False  # whether a call of ``next_tuple`` has returned since `take_returned`
        #: `_active`: whether ``next_tuple`` may be called. `_was_activated`: whether the worker's thread has asked for
        #: ``activate``, and not for ``deactivate`` since.
        self._active = self._was_activated = False
        self._opened = False

    # -- on the worker's thread ----------------------------------------------------------------------------------

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Begin to open the user's spout on the event loop."""
        context = self._begin_life(context)
        self._spout_collector = collector
        self.collector = AsyncSpoutCollector(collector, self._note)
        #: `_may_call` wakes up the caller, and `_has_verdicts` wakes up the informer.
        self._may_call, self._has_verdicts = asyncio.Event(), asyncio.Event()
        self._coroutines: list[asyncio.Task[None]] = []
        self._opened = True
        self._life.begin("open", partial(self._open, conf, context))

    def activate(self) -> None:
        """Begin to activate the user's spout. Its ``next_tuple`` is called once ``activate`` has returned."""
        self._was_activated = True
        self._life.begin("activate", self._activate)

    def deactivate(self) -> None:
        """Stop the calls of ``next_tuple``, and begin to deactivate the user's spout."""
        self._was_activated = self._active = False
        if not self._life.is_ending:
            self._life.begin("deactivate", self._deactivate)

    def next_tuple(self) -> None:
        """Carry out the next emit of the user's spout. If none waits, raise the exception that has ended a call of that spout."""
        notes = self._notes
        if self._is_starting:
            return
        if notes:
            notes.popleft()()
            if len(notes) == self._prefetch // 2:
                self._loop.call(self._may_call.set)
        elif self._error is not None:
            raise self._error

    @property
    def has_noted(self) -> bool:
        """Whether emits of the user's spout wait to be carried out."""
        return bool(self._notes)

    def take_returned(self) -> bool:
        """Return whether a call of the user's ``next_tuple`` has returned since the last call of this method."""
        returned, self._returned = self._returned, False
        return returned

    def ack(self, message_id: Hashable) -> None:
        """Pass an ack on to the user's spout."""
        self._inform(True, message_id)

    def fail(self, message_id: Hashable) -> None:
        """Pass a fail on to the user's spout."""
        self._inform(False, message_id)

    def _inform(self, acked: bool, message_id: Hashable) -> None:
        self._verdicts.append((acked, message_id, self._spout_collector.verdict))
        if len(self._verdicts) == 1:
            self._loop.call(self._has_verdicts.set)

    def begin_to_stop(self) -> None:
        """Begin to deactivate the user's spout, if it is active, and to close it."""
        if self._was_activated:
            self.deactivate()
        self._life.begin_last("close", self._close)

    def close(self) -> None:
        """End all calls, close the user's spout, and wait for that. See `_Life.wait_for_last`."""
        self.begin_to_stop()
        try:
            self._life.wait_for_last()
        except CallNotReturnedError:
            self.not_ended = None  # a later call has not returned either, and is the one that counts
            raise
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Cancel the calls that are under way, and drop the emits that have not been taken."""
        self._closed = True
        self._notes.clear()
        if self._opened:
            self._loop.call(self._cancel_all)

    # -- on any thread -------------------------------------------------------------------------------------------

    def _oldest_work(self) -> CallOnLoop | None:
        return self._telling  # nobody waits for ``next_tuple``, which may await its next input for ever

    # -- on the loop ---------------------------------------------------------------------------------------------

    def _note(self, note: Callable[[], object]) -> None:
        """Note what the spout does. Any thread may call this."""
        if not self._closed:
            self._noted += 1
            self._notes.append(note)

    async def _open(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        await self.spout.open(conf, context, self.collector)
        self._coroutines = [
            self._loop.begin(self._call(), self.task),
            self._loop.begin(self._inform_spout(), self.task),
        ]

    async def _activate(self) -> None:
        await self.spout.activate()
        self._active = True
        self._may_call.set()

    async def _deactivate(self) -> None:
        self._active = False  # an ``activate`` may have ended meanwhile
        await self.spout.deactivate()

    async def _call(self) -> None:
        calls = 0
        try:
            while not self._closed and self._error is None:
                while self._must_wait():
                    self._may_call.clear()
                    # The worker's thread may have made room after the condition was read.
                    if self._must_wait():
                        await self._may_call.wait()
                before = self._noted
                await self.spout.next_tuple()
                self._returned = True
                calls += 1
                if self._noted == before:
                    await asyncio.sleep(_PAUSE_SECS)
                elif not calls % _TURN:
                    await asyncio.sleep(0)
        except BaseException as error:
            self._end("next_tuple", error)

    def _must_wait(self) -> bool:
        return (
            not self._active
            or self._is_ending()
            or len(self._notes) >= self._prefetch
            or len(self._verdicts) >= _MOST_VERDICTS
        )

    async def _inform_spout(self) -> None:
        spout, verdicts = self.spout, self._verdicts
        try:
            while True:
                self._has_verdicts.clear()
                while verdicts:
                    acked, message_id, self.collector.verdict = verdicts[0]
                    coroutine = spout.ack(message_id) if acked else spout.fail(message_id)
                    self._telling = CallOnLoop(False, self._loop.now(), coroutine)
                    await coroutine
                    self._telling = None
                    verdicts.popleft()
                    if len(verdicts) == _MOST_VERDICTS // 2:
                        self._may_call.set()
                self.collector.verdict = None
                await self._has_verdicts.wait()
        except BaseException as error:
            self._end("ack or fail", error)

    def _end(self, call: str, error: BaseException) -> None:
        """Remember the exception that has ended a call, unless it is the cancellation at the end."""
        if not self._closed:
            self._error = contained(call, error)

    def _cancel_all(self) -> None:
        self._life.end()
        self._cancel()

    def _cancel(self) -> None:
        for coroutine in self._coroutines:
            coroutine.cancel()

    async def _close(self) -> None:
        """Let the informer tell the spout all verdicts. Then end both coroutines, and close the spout."""
        await self._tell_verdicts()
        self._closed = True
        self._cancel()
        if self._coroutines:
            await asyncio.wait(self._coroutines, timeout=END_SECS / 2)
        await self.spout.close()

    async def _tell_verdicts(self) -> None:
        """Wait until the informer has told the spout all verdicts. If that takes too long, log a warning, and wait no longer."""
        begun = moved = self._loop.now()
        left = len(self._verdicts)
        while self._verdicts and self._error is None:
            await asyncio.sleep(_PAUSE_SECS)
            now = self._loop.now()
            if len(self._verdicts) != left:
                left, moved = len(self._verdicts), now
            if now - begun >= STOP_SECS * _SHARE_OF_VERDICTS or now - moved >= STOP_SECS * _SHARE_OF_ONE:
                if (telling := self._telling) is not None:
                    seconds, place = now - telling.since, self._loop.place_in(telling.coroutine)
                    self.not_ended = call = Busy(self.task, seconds, of_spout=True, awaits=True, place=place)
                    _log.warning(
                        "%s has not returned for %.0f s: the spout does not hear of %d trees, and is closed",  # B1, B3
                        call.code,
                        call.seconds,
                        left,
                    )
                return
