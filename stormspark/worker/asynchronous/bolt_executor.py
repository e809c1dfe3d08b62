"""The ordinary bolt around an `AsyncBolt`. It begins a coroutine for each tuple, and carries out the emits and acks of the
coroutines.

Two threads take part. The *loop* runs the coroutines. The emits, acks, fails and ends of the coroutines go into a queue, as
*notes* (`PassesNotes`). The *worker's thread* takes the notes out (`WorksOutside.take_in`), because only this thread may use the
tuple path.

A call is *over* when it has returned, raised, or taken too long. What it does to its tuple after that has no effect. In an
ordered bolt each call has a list of notes of its own. The notes of the oldest call that is not over go into the queue at once.
The notes of later calls wait in their lists until all earlier calls are over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from threading import get_ident
from typing import Any

from stormspark.api import AsyncBolt, Bolt, OutputCollector, TopologyContext, Tuple
from stormspark.api.tuple_state import SETTLED
from stormspark.errors import FailedException, ReportedFailedException
from stormspark.metrics import Histogram
from stormspark.worker.asynchronous.bolt_collector import (
    TIMED_OUT,
    AsyncCollector,
    Call,
    FollowsCalls,
    Note,
    current_call,
)
from stormspark.worker.asynchronous.bolt_notes import MOST_NOTES, PassesNotes
from stormspark.worker.asynchronous.event_loop import END_SECS, EventLoop
from stormspark.worker.asynchronous.life import AsyncExecutor, CallOnLoop
from stormspark.worker.bolts.input_counts import InputCounts
from stormspark.worker.errors_of_code import contained

__all__ = ["AsyncBoltExecutor"]

#: How often another thread tries to read which call is the oldest.
_MOST_READS = 10


class AsyncBoltExecutor(PassesNotes, Bolt):
    """A bolt that passes its tuples to the user's ``bolt``.

    ``latency`` and ``by_input``, if there is one, get the time of each call, from its start to its end. ``follower`` follows the
    calls, unless it is None. For the other arguments, see `AsyncExecutor`.
    """

    works_in = "execute"

    def __init__(
        self,
        bolt: AsyncBolt,
        loop: Callable[[], EventLoop],
        ended: Callable[[AsyncExecutor, str, Exception | None], None],
        latency: Histogram,
        follower: FollowsCalls | None = None,
        by_input: InputCounts | None = None,
    ) -> None:
        super().__init__(loop, ended)
        self.bolt = bolt
        self._latency, self._follower, self._by_input = latency, follower, by_input
        self._capacity, self._ordered = bolt.capacity, bolt.ordered
        self.timeout = bolt.timeout_secs  # a replay under a debugger sets it to None
        # A comment says whether the worker's thread, the loop, or any thread may use an attribute.
        #: Worker's thread. `_occupied`: how many calls occupy a place (`room` counts the free places). `_outside`: how many
        #: tuples are not settled yet.
        self._occupied = self._outside = 0
        #: Worker's thread: the tuples that the next `send` passes to the loop.
        self._new: list[Tuple] = []
        #: Worker's thread. `_begun`: the sum of the times when the calls that occupy a place began. `_took`: the times of calls
        #: that have ended, for `_latency`.
        self._begun = 0.0
        self._took: list[float] = []
        #: Worker's thread: of an ordered bolt, for how many seconds all calls together have occupied places that are free again.
        self._in_places = 0.0
        #: Worker's thread: whether the next note is a call whose exception restarts the task.
        self._raises_next = False
        #: Loop: the calls that have not returned, in the order in which their tuples came. `_oldest_work` looks at the first.
        self._calls: dict[Call, None] = {}
        #: Loop: the calls of an ordered bolt whose notes have not all gone into the queue.
        self._order: deque[Call] = deque()
        #: Loop: the calls with a deadline, the earliest first.
        self._deadlines: deque[Call] = deque()
        #: Loop: whether a timer is set for the first deadline.
        self._timer_is_set = False

    # -- on the worker's thread ------------------------------------------------------------------------------------

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Begin to prepare the user's bolt on the event loop."""
        context = self._begin_life(context)
        self._collector = collector
        self._begin_to_signal()
        self.collector = AsyncCollector(
            collector, self.place, self._note if self._follower is None else self._note_followed
        )
        self._life.begin("prepare", partial(self.bolt.prepare, conf, context, self.collector))

    def _call_ended(self, call: str, error: Exception | None) -> None:
        super()._call_ended(call, error)
        if self._notes:
            self._signal()

    def execute(self, tup: Tuple) -> None:
        """Keep a tuple for `send`."""
        self._occupied += 1
        self._outside += 1
        self._new.append(tup)
        if self._follower is not None:
            self._follower.given(tup)

    @property
    def room(self) -> int:
        """See `WorksOutside.room`."""
        return 0 if self._raises_next or self._is_starting else self._capacity - self._occupied

    @property
    def outside(self) -> int:
        """See `WorksOutside.outside`. The start counts like a tuple, because a batch waits for it, too."""
        return self._outside + self._is_starting

    @property
    def waits_for_answer(self) -> bool:
        """Always false, because coroutines go on whether their results are taken in or not."""
        return False

    def send(self) -> None:
        """Begin the calls of the tuples that `execute` got since the last `send`."""
        if self._new:
            new, self._new = self._new, []
            now = self._loop.now()
            self._begun += now * len(new)
            self._loop.call(self._begin_calls, new, now)

    def take_in(self) -> int:
        """Carry out the notes of the coroutines, and return how many tuples were settled.

        If a call has raised an exception other than `FailedException`, raises it, after the call's tuple has failed.
        """
        if self._signalled:
            self._take_signal()
        if self._is_starting:
            return 0  # the task may not know of its hooks yet
        try:
            return self._take_in()
        finally:
            if self._took:
                self._latency.add_all(self._took)
                self._took.clear()

    def _take_in(self) -> int:
        before, notes = self._outside, self._notes
        for _ in range(min(len(notes), MOST_NOTES)):
            note = notes.popleft()
            if type(note) is Call:
                if self._outside < before and _restarts(note.error):
                    # Tuples were settled between the last exception and this one. Return their number first, so that the task
                    # does not count these two exceptions as raised in a row.
                    notes.appendleft(note)
                    self._raises_next = True
                    break
                self._returned(note)
            else:
                note()  # type: ignore[operator]
        if notes:
            self._signal()
        if self._lacks_room:
            self._let_go_on()
        return before - self._outside

    def _returned(self, call: Call) -> None:
        """Ack or fail the tuple of a call that has returned, unless the call has settled the tuple itself."""
        self._occupied -= 1
        self._begun -= call.begun
        if self._ordered:
            self._in_places += self._loop.now() - call.begun
        self._took.append(call.took)
        if self._by_input is not None:
            self._by_input.end(call.tup._source, call.took)
        error, tup = call.error, call.tup
        call.error = None  # else the call and the frames of the error's traceback would refer to each other
        if error is TIMED_OUT:  # the tuple has failed already
            return
        self._outside -= 1
        if error is not None:
            self._raise_or_fail(tup, contained("execute", error))
        elif tup.state != SETTLED:
            self._collector.ack(tup)

    def _raise_or_fail(self, tup: Tuple, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"[:1000]
        if tup.state != SETTLED:
            self._collector.fail(tup, reason)
        if not isinstance(error, FailedException):
            raise error
        if isinstance(error, ReportedFailedException):
            self._collector.report_error(error)

    def _fail_late(self, tup: Tuple) -> None:
        """Fail a tuple whose call has taken too long. The call itself may go on."""
        self._outside -= 1
        if tup.state != SETTLED:
            self._collector.fail(tup, f"execute took longer than {self.timeout:g} s (timeout_secs)")

    def in_calls(self) -> tuple[float, float]:
        """Return the time, and how many seconds all calls together have taken so far: those of all instances that have ended,
        and those of this instance that are under way.

        A call of an ordered bolt counts until its place is free, which is when all earlier calls have ended, too. Here only calls
        of this instance count.
        """
        now = self._loop.now()
        return now, self.secs_of_ended_calls + max((self._occupied - len(self._new)) * now - self._begun, 0.0)

    @property
    def secs_of_ended_calls(self) -> float:
        """How many seconds all calls that have ended have taken together. See `in_calls` for ordered bolts."""
        return self._in_places if self._ordered else self._latency.seconds

    @property
    def oldest_call_secs(self) -> float:
        """For how many seconds the oldest of the calls has been under way; 0 if none is."""
        oldest = self._oldest_work()
        return 0.0 if oldest is None else max(self._loop.now() - oldest.since, 0.0)

    def begin_to_stop(self) -> None:
        """Cancel all calls, and begin to clean up the user's bolt on the event loop."""
        self._life.begin_last("cleanup", self._clean_up)

    def cleanup(self) -> None:
        """Clean up the user's bolt, and wait for that. See `_Life.wait_for_last`."""
        self.begin_to_stop()
        try:
            self._life.wait_for_last()
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Cancel all calls, and drop their notes."""
        if self._closed:
            return
        self._closed = True
        self._loop.call(self._cancel_all)
        self._notes.clear()
        self._new.clear()
        self._occupied = self._outside = 0
        self._begun = 0.0
        self._end_reading()  # the loop closes the other end, because the loop may be writing to it

    # -- on any thread -------------------------------------------------------------------------------------------

    def _oldest_work(self) -> CallOnLoop | None:
        for _ in range(_MOST_READS):
            try:
                oldest = next(iter(self._calls), None)
            except RuntimeError:  # the loop has changed the dictionary meanwhile
                continue
            if oldest is None or oldest.coroutine is None:
                return None
            calls = len(self._calls)
            cancelled_after = (self.timeout or 0.0) if oldest.error is TIMED_OUT else 0.0
            places = self._capacity if calls >= self._capacity else 0
            return CallOnLoop(
                False, oldest.begun, oldest.coroutine, max(0, calls - 1), cancelled_after, places
            )
        return None

    # -- on the loop ---------------------------------------------------------------------------------------------

    def _begin_calls(self, tuples: list[Tuple], begun: float) -> None:
        if self._closed:
            return
        deadline = 0.0 if self.timeout is None else self._loop.now() + self.timeout
        begin, calls, execute = self._loop.begin, self._calls, self.bolt.execute
        for tup in tuples:
            call = Call(tup, begun, deadline)
            calls[call] = None
            if self._ordered:
                self._order.append(call)
            if self.timeout is not None:
                self._deadlines.append(call)
            call.running = begin(self._run(call, execute), self.task)
        self._set_timer()

    async def _run(self, call: Call, code: Callable[[Tuple], Coroutine[Any, Any, None]]) -> None:
        call.has_begun = True
        current_call.set(call)
        try:
            if not call.is_over:
                call.coroutine = code(call.tup)
                await self._paced(call, call.coroutine)
        except BaseException as error:  # includes `SystemExit`, which would end the loop, and a cancellation
            if call.error is None:
                call.error = error
        current_call.set(None)  # else the call, its asyncio task and that one's context would make a circle
        del self._calls[call]
        if self._closed:
            return
        call.took = self._loop.now() - call.begun
        if call.error is TIMED_OUT:
            self._pass_on(call)  # so that only the call's place becomes free
            return
        if self._ordered:
            self._note(call, call)
            self._over(call)
        else:  # does the same as `_note` and `_over`, but faster
            call.is_over = True
            self._pass_on(call)

    def _note(self, call: Call | None, note: Note, outlives: bool = False) -> None:
        """Add a note of a call. ``call`` is None for code outside of all calls. Any thread may call this.

        If ``outlives``, the note counts even if the call is over, because it does not concern the call's tuple.
        """
        if get_ident() != self._loop.thread:
            self._loop.call(self._note, call, note, outlives)
            return
        if self._closed:
            return
        if call is not None and call.is_over:
            if not outlives:
                return
            call = None
        if call is not None and self._ordered and self._order[0] is not call:
            call.notes.append(note)
        else:
            self._pass_on(note)

    def _note_followed(self, call: Call | None, note: Note, outlives: bool) -> None:
        if call is not None and not isinstance(note, Call):
            assert self._follower is not None
            note = partial(self._follower.carry_out, call.tup, note)
        self._note(call, note, outlives)

    def _over(self, call: Call) -> None:
        """Mark a call as over. In an ordered bolt, the notes of the next call then go into the queue."""
        call.is_over = True
        order = self._order
        while order and order[0].is_over:
            order.popleft()
            for note in order[0].notes if order else ():
                self._pass_on(note)
            if order:
                order[0].notes = []
                self._room.set()

    # Deadlines come in order, because all calls have the same timeout. So one timer is enough for all of them.

    def _set_timer(self) -> None:
        deadlines = self._deadlines
        while deadlines and deadlines[0].is_over:
            deadlines.popleft()
        if deadlines and not self._timer_is_set:
            self._timer_is_set = True
            self._loop.call_at(deadlines[0].deadline, self._end_late_calls)

    def _end_late_calls(self) -> None:
        self._timer_is_set = False
        now, deadlines = self._loop.now(), self._deadlines
        while deadlines and (deadlines[0].is_over or deadlines[0].deadline <= now):
            call = deadlines.popleft()
            if not call.is_over:
                call.error = TIMED_OUT
                self._note(call, partial(self._fail_late, call.tup))
                self._over(call)
                if call.has_begun:  # a call that was cancelled before it began would never free its place
                    call.running.cancel()
        self._set_timer()

    async def _clean_up(self) -> None:
        running = self._cancel_calls()
        if running:
            await asyncio.wait(running, timeout=END_SECS / 2)
            self.not_ended = self._busy_with(self._oldest_work())
        await self.bolt.cleanup()

    def _cancel_calls(self) -> list[asyncio.Task[None]]:
        """Cancel all calls. Return the calls that have not ended yet."""
        running = [call.running for call in self._calls]
        for call in self._calls:
            call.is_over = True
            call.running.cancel()
        self._order.clear()
        self._deadlines.clear()
        return running

    def _cancel_all(self) -> None:
        self._life.end()
        self._cancel_calls()
        self._end_writing()


def _restarts(error: BaseException | None) -> bool:
    """Return whether the end of a call restarts the task."""
    return error is not None and error is not TIMED_OUT and not isinstance(error, FailedException)
