"""The collector of an `AsyncBolt`. It makes a note of each emit, ack and fail of a coroutine, and the worker's thread carries the
notes out later.

A coroutine belongs to a *call* of ``execute``, for one tuple. The call decides what an emit is anchored to, and whether a note
still counts; see `stormspark.worker.asynchronous.bolt_executor`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

from stormspark.api import DEFAULT_STREAM, Tuple
from stormspark.errors import EmitError
from stormspark.user_line import user_line

__all__ = ["TIMED_OUT", "AsyncCollector", "Call", "FollowsCalls", "Note", "current_call"]


class Call:
    """One call of ``execute``, for one tuple."""

    __slots__ = (
        "begun",
        "coroutine",
        "deadline",
        "error",
        "has_begun",
        "is_over",
        "is_settled",
        "notes",
        "running",
        "took",
        "tup",
    )

    def __init__(self, tup: Tuple, begun: float, deadline: float) -> None:
        self.tup = tup
        #: The time when the worker's thread passed the tuple to the loop, and the deadline, both on the loop's clock.
        self.begun, self.deadline = begun, deadline
        #: How many seconds the call has taken, once it has ended.
        self.took = 0.0
        self.running: asyncio.Task[None]
        #: The coroutine of ``execute``; None before the call has begun.
        self.coroutine: Coroutine[Any, Any, None] | None = None
        self.has_begun = self.is_over = False
        #: Whether the call has acked or failed its tuple itself.
        self.is_settled = False
        #: The exception with which the call has ended.
        self.error: BaseException | None = None
        #: In an ordered bolt, the notes that the call has made while earlier calls were not over.
        self.notes: list[Note] = []


#: The error of a call whose time is over (``timeout_secs``).
TIMED_OUT = TimeoutError("execute took too long")
#: A note: a function that the worker's thread has to call, or a `Call` that has ended.
Note = Callable[[], object] | Call
#: The call of ``execute`` that the running code belongs to. An asyncio task that a call starts belongs to that call, too.
current_call: ContextVar[Call | None] = ContextVar("stormspark_async_call", default=None)


class FollowsCalls(Protocol):
    """Wants to know to which call each emit of an async bolt belongs. The worker's thread calls these methods.

    Calls run side by side, so the emits of several calls come in any order.
    """

    def given(self, tup: Tuple) -> None:
        """Take note that the bolt has got its next tuple."""

    def carry_out(self, tup: Tuple, note: Callable[[], object]) -> None:
        """Call ``note``, which the call for this tuple has made."""


class AsyncCollector:
    """The collector of an async bolt; see `stormspark.api.AsyncOutputCollector`.

    ``note`` takes a call, a note, and whether the note counts even if the call is over. ``place`` names the task in errors.
    """

    def __init__(self, collector: Any, place: str, note: Callable[[Call | None, Note, bool], None]) -> None:
        self._collector = collector  # a `BoltCollector`; only the worker's thread may emit or ack by it
        self._place, self._note = place, note

    def emit(
        self,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] | None = None,
    ) -> None:
        """Emit a tuple that is anchored to the current tuple, or to ``anchors``.

        Raises `EmitError` for an unknown stream, a wrong number of values, or an anchor that is settled.
        """
        call, anchors, outlives = self._anchored(anchors)
        values = self._collector.outlet(stream).checked(values)
        self._note(call, partial(self._collector.emit, values, stream, anchors), outlives)

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] | None = None,
    ) -> None:
        """Emit a tuple on a direct stream to one task (B9, D11). Raises `EmitError` as `emit` does."""
        call, anchors, outlives = self._anchored(anchors)
        values = self._collector.outlet(stream).checked(values)
        self._note(call, partial(self._collector.emit_direct, task, values, stream, anchors), outlives)

    def _anchored(
        self, anchors: Tuple | Iterable[Tuple] | None
    ) -> tuple[Call | None, Tuple | tuple[Tuple, ...], bool]:
        """Return the call that an emit belongs to, the emit's anchors, and whether the emit counts even if the call is over.

        Raises `EmitError` if an anchor is settled.
        """
        call = current_call.get()
        if anchors is None and call is not None:
            self._check_open(call)
            return call, call.tup, False
        given = anchors if isinstance(anchors, Tuple) else tuple(anchors or ())
        if not given:
            return call, given, True
        own = call is not None and any(
            call.tup is one for one in ((given,) if isinstance(given, Tuple) else given)
        )
        if own:  # before the other check, so that the error does not depend on what the worker's thread has done already
            assert call is not None
            self._check_open(call)
        self._collector.roots_of(given)
        return call, given, not own

    def _check_open(self, call: Call) -> None:
        """Raise `EmitError` if the call is over or has settled its tuple.

        The tuple's own state may not show this yet, because the worker's thread changes the state later.
        """
        if call.is_over:
            msg = (
                f"{self._place}: emit is anchored to {call.tup!r}, whose execute has ended: await in execute what it "
                f"starts, or emit with anchors=()"
            )
            late = EmitError(msg)
            # Nobody may hear of the exception, since it is raised in an asyncio task that nobody awaits.
            late.is_reported = self._report_late(call, f"EmitError: {msg}")
            raise late
        if call.is_settled:
            msg = f"{self._place}: emit is anchored to {call.tup!r} after its ack or fail; emit first, then ack"  # E14
            raise EmitError(msg)

    def _report_late(self, call: Call, text: str) -> bool:
        """Report what code has done too late, with its line. If the time of its call was over (``timeout_secs``), the tuple has
        failed for that reason. Then report nothing, and return false.
        """
        if call.error is TIMED_OUT:
            return False
        self._note(None, partial(self._collector.report_error, f"{user_line()}: {text}"), True)
        return True

    def ack(self, tup: Tuple) -> None:
        """Ack a tuple before its call ends."""
        self._settle("ack", tup, partial(self._collector.ack, tup))

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Fail the tuple's trees (E5)."""
        self._settle("fail", tup, partial(self._collector.fail, tup, reason))

    def _settle(self, what: str, tup: Tuple, note: Note) -> None:
        call = current_call.get()
        if call is None or tup is not call.tup:
            self._note(call, note, True)
        elif call.is_over or call.is_settled:
            why = "which is acked or failed already" if call.is_settled else "whose execute has ended"
            self._report_late(call, f"{what} of {tup!r}, {why}; it changes nothing")
        else:
            call.is_settled = True
            self._note(call, note, False)

    def reset_timeout(self, tup: Tuple) -> None:
        """Begin the timeouts of the tuple's trees anew (C11)."""
        self._note(current_call.get(), partial(self._collector.reset_timeout, tup), True)

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._note(current_call.get(), partial(self._collector.report_error, error), True)
