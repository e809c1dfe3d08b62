"""The task of a spout, for an executor with a thread of its own.

The worker's thread grants *turns*. A turn is a number of calls of ``next_tuple``, and a number of tuples that these calls may
emit. The executor's thread makes the calls, so a call that waits holds up no other executor. An emit beyond the granted number
of tuples waits inside the call. Acks and fails come between two calls (`HearsVerdicts`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import partial
from math import inf
from typing import Any

from stormspark.api import Spout
from stormspark.errors import EmitError
from stormspark.worker.executors.notes import InstanceEnded, Notes
from stormspark.worker.executors.spout_collector import ThreadedSpoutCollector
from stormspark.worker.executors.thread import STOP_SECS
from stormspark.worker.executors.verdicts import HearsVerdicts

__all__ = ["ThreadedSpoutTask"]

#: After a turn without emits, the next turn begins at least this many seconds later, as in Storm (B12).
_PAUSE_SECS = 0.001
#: If a call of ``next_tuple`` has waited for longer than this, the spout is taken to have nothing to emit.
_PATIENCE_SECS = 5.0


class ThreadedSpoutTask(HearsVerdicts):
    """One task of a `Spout` whose executor has a thread of its own."""

    def __init__(self, *args: Any, acking: bool, **kwargs: Any) -> None:
        super().__init__(*args, acking=acking, **kwargs)
        self.acking = acking
        #: `is_asked`: whether emits are carried out now. `may_begin_turns`: whether a new turn may begin. The worker sets both.
        self.is_asked = self.may_begin_turns = True
        self._forget_turns()
        self.allowance.called_until = self._called_until

    def _forget_turns(self) -> None:
        #: `_noted`: how many emits were noted so far. `_taken`: how many of these notes were carried out. `_granted`: how many
        #: emits may be noted in all.
        self._noted = self._taken = self._granted = 0
        #: How many trees will begin when the notes of their emits are taken.
        self._trees_noted = 0
        self._counting = threading.Condition()
        self._unwinds = False
        #: Whether a turn is open; used by the worker's thread. `_calls_left`: how many calls of the turn are left; used by the
        #: executor's thread.
        self._turn_is_open = False
        self._calls_left = 0
        self._turn_began = self._turn_ends = 0.0
        self._is_first_call = True
        #: Whether ``next_tuple`` runs; used by the executor's thread. Emits in ``ack`` and ``fail`` are not limited, as in
        #: Storm.
        self._in_next_tuple = False
        #: When ``next_tuple`` returned last, and since when it has been waiting in an emit; infinity if it is not.
        self._last_returned, self._waits_since = -inf, inf
        self._stirred = self._clock()
        #: The time when the last turn ended, if it had no emits; else None.
        self._empty_at: float | None = None
        #: What the spout said at the end of its last turn, and how many verdicts it had heard by then.
        self._said: tuple[bool | None, int] = (False, 0)
        #: How many tuples were emitted since the last `ask`.
        self._emitted = 0
        self._forget_verdicts()

    # -- life ------------------------------------------------------------------------------------------------

    def _end_previous(self) -> None:
        self.unwind()
        super()._end_previous()
        self._forget_turns()

    def _collector_for_user(self) -> ThreadedSpoutCollector:
        self._threaded = ThreadedSpoutCollector(self, self.notes, self._collector)
        return self._threaded

    def end_thread_work(self) -> None:
        """See `ThreadedTask.end_thread_work`."""
        super().end_thread_work()
        self.unwind()

    def unwind(self) -> None:
        """End a call that waits inside an emit, because its instance ends."""
        with self._counting:
            self._unwinds = True
            self._counting.notify_all()

    # -- on the executor's thread ------------------------------------------------------------------------------

    def take_turn(self) -> bool:
        """Deliver verdicts, or call ``next_tuple`` once. See `stormspark.worker.executors.thread.Taker`."""
        if self.is_held:
            return False
        if self._verdicts:
            self._deliver()
            return True
        if self.is_stopping:
            return False
        if not self._turn_is_open or (self.life.is_active and not self._was_activated):
            return False  # ``activate`` may have been submitted after the thread looked for submitted calls
        first, clock = self._is_first_call, self._clock
        if (
            self._calls_left <= 0
            or self._unwinds
            or self.pending_and_noted >= self._max_pending
            or (clock() >= self._turn_ends and not first)
        ):
            self._end_turn(not first)
            return True
        self._is_first_call = False
        self._calls_left -= 1
        self.executor.enter(self.name)
        notes, before = self.notes, self._noted
        self._in_next_tuple = True
        try:
            self.spout.next_tuple()
        except InstanceEnded:
            return True
        except BaseException as error:
            self.is_held = True
            self._turn_is_open = False
            self._note(notes, partial(self._raised_on_thread, "next_tuple", error))
            return True
        finally:
            self._last_returned = clock()
            self._in_next_tuple = False
        emitted = self._noted != before
        if not emitted or not self._calls_left:
            self._end_turn(emitted)
        return True

    def _end_turn(self, emitted: bool) -> None:
        self._calls_left = 0
        notes = self.notes
        done: bool | None = False
        if not emitted:
            done = self.whether_done.ask(self.spout)
        self._note(notes, partial(self._turn_is_over, emitted, (done, self._heard)))
        self._turn_is_open = False

    def note_emit(
        self, notes: Notes, emit: Callable[[], object], message_id: Hashable | None, emits: int = 1
    ) -> None:
        """Note an emit, or ``emits`` emits of one message. If ``next_tuple`` runs, first wait until the worker's thread grants
        the emit.

        An emit by another thread of user code goes into the mailbox instead, or raises `EmitError` if the spout has state in
        transactions. On the executor's thread this method raises `InstanceEnded` if the instance has ended.
        """
        if not self.executor.is_current:
            self._refuse_threads()
            self.post(notes, emit)
            return
        begins_tree = message_id is not None
        with self._counting:
            while (
                self._in_next_tuple and self._noted >= self._granted and not self._unwinds and not notes.ended
            ):
                self._waits_since = min(self._waits_since, self._clock())
                self._counting.wait()
            self._waits_since = inf
            if notes.ended or (self._unwinds and self._in_next_tuple):
                raise InstanceEnded  # else this is ``deactivate`` or ``close``, which may emit
            self._noted += emits
            self._trees_noted += begins_tree
        notes.add(partial(self.begin_noted, notes, emit) if begins_tree else emit)

    def _refuse_threads(self) -> None:
        if self.waits_for_commit and self.state is not None:
            msg = (
                f"{self.name}: a thread of its own has emitted, but a spout with state emits in next_tuple only: else the tuple "
                f"and the position after it could come into different batches. Let the thread put it into a queue.Queue, take it "
                f"out in next_tuple, emit it and move the position there"  # C37, C42
            )
            self.report_error(msg)
            raise EmitError(msg)

    @property
    def pending_and_noted(self) -> int:
        """How many messages are pending, as the spout sees it. The tree of such a message is open, or begins when the worker's
        thread takes the note of the emit, or the spout has yet to hear the verdict.

        As in Storm, a message is no longer pending when ``ack`` or ``fail`` is called (B4).
        """
        with self._counting:
            # The trees come first, because a tree that ends meanwhile has its verdict before it ceases to be open.
            trees = self.account.pending + self._trees_noted
            return trees + len(self.verdicts.ready) + len(self._verdicts) - self._is_told

    def begin_noted(self, notes: Notes, begin: Callable[[], object]) -> None:
        """Carry out a noted emit that begins a tree, on the worker's thread. The lock makes sure that `pending_and_noted`
        counts the tree only once.
        """
        with self._counting:
            try:
                begin()
            finally:
                if notes is self.notes:
                    self._trees_noted -= 1

    # -- on the worker's thread --------------------------------------------------------------------------------

    def ask(self, calls: int, deadline: float) -> bool:
        """Grant emits. If no turn is open and one may begin, also grant a turn of up to ``calls`` calls of ``next_tuple``. Return
        whether tuples were emitted since the previous call of this method.
        """
        emitted, self._emitted = self._emitted, 0
        allowance = self.allowance
        turn = min(allowance.left, self._emits_per_turn) - (self._noted - self._taken)
        if turn > 0 and self._granted != self._noted + turn:
            with self._counting:
                self._granted = self._noted + turn
                self._counting.notify_all()
        if self._turn_is_open or not (turn > 0 and self.may_begin_turns and self.life.is_active):
            return emitted > 0
        if not (self.is_held or self.is_ending):
            now = self._clock()
            if self._empty_at is not None and now - self._empty_at < _PAUSE_SECS:
                return emitted > 0
            self._turn_began = now
            in_one_batch = self.waits_for_commit and self.state is not None
            self._calls_left = 1 if in_one_batch else min(calls, turn)
            self._is_first_call, self._turn_ends = True, deadline
            self._turn_is_open = True
            self.executor.wake()
        return emitted > 0

    def begin_round(self, now: float, limit: int | None) -> None:
        """See `SpoutTask.begin_round`. At a stop, a call that may never return emits no more, as that could not be worked off."""
        super().begin_round(now, limit)
        if self.is_ending and self.may_wait_for_ever:
            with self._counting:
                self._granted = self._noted

    @property
    def has_emitted(self) -> bool:
        """Whether tuples were emitted since the last call of `ask`."""
        return self._emitted > 0

    @property
    def wants_asking(self) -> bool:
        """Whether `ask` or `deliver` may have an effect. `ask` has none while an open turn has emitted nothing and may emit."""
        return (
            not self._turn_is_open
            or self.has_emitted
            or self._noted >= self._granted
            or bool(self.verdicts.ready)
        )

    @property
    def may_emit(self) -> bool:
        """See `SpoutTask.may_emit`. A call of ``next_tuple`` that is under way may emit whatever max spout pending says, even if
        the spout was deactivated meanwhile, as in Storm (B4, B13).

        But it may not if too many verdicts wait for its return, because they would pile up for ever.
        """
        if not self._in_next_tuple:
            return super().may_emit
        return self.fatal is None and self.allowance.left > 0 and not self._too_many_wait()

    def _too_many_wait(self) -> bool:
        waiting = len(self._verdicts)
        if not waiting or waiting + self.account.pending < self._settings.worker_tuple_marks[0]:
            return False
        self.report_error(
            f"{self.name}: next_tuple has not returned, {waiting:,} acks and fails wait for its return, and it is not "  # B3
            f"asked for more. Emit fewer tuples in one call of next_tuple (declared at {self.component.declared_at})"
        )
        return True

    def _called_until(self, now: float) -> float:
        """See `RoundAllowance.called_until`. A call that waits in an emit is paused."""
        return min(self._waits_since, now) if self._in_next_tuple else self._last_returned

    def began_a_turn_after(self, time: float) -> bool:
        """Return whether a turn is open and has begun after ``time``. If so, tuples may come soon."""
        return self._turn_is_open and self._turn_began > time

    def take_notes(self, notes: Notes) -> None:
        """See `ThreadedTask.take_notes`."""
        if notes is not self.notes:
            return
        collector = getattr(self, "_collector", None)
        if collector is None:  # the first instance has failed before its ``open``
            super().take_notes(notes)
            return
        self.calls.stamp_emits()
        before = collector.emitted
        super().take_notes(notes)
        emitted = collector.emitted - before
        if notes is self.notes:  # else an emit has raised, and a new instance counts its own emits
            self._taken += emitted
        self._emitted += emitted
        self.allowance.use(emitted)
        if emitted:
            self._has_stirred()

    @property
    def may_emit_soon(self) -> bool:
        """Whether tuples may come soon, because the spout has emitted or got a verdict, and no later call has returned without
        an emit.

        Once a call has gone on for `_PATIENCE_SECS` without an emit, no tuples are expected.
        """
        stirred = self._stirred
        return (
            stirred is not None
            and not self.is_down
            and self._clock() - max(stirred, self._turn_began) < _PATIENCE_SECS
        )

    def _call_first(self) -> None:
        super()._call_first()
        self._has_stirred()

    def _ask_whether_done(self, instance: Spout) -> bool | None:
        done, heard = self._said
        if done is None:
            return None
        # A verdict that the spout had not heard may make it emit again.
        return done and heard == self._passed_on and not (len(self.notes) or self.is_starting)

    def _turn_is_over(self, emitted: bool, said: tuple[bool | None, int]) -> None:
        self._raised_in_row = 0
        self._said = said
        now = self._clock()
        self._stirred = now if emitted or self._verdicts else None
        self._empty_at = None if emitted else now
        self.allowance.hungry = emitted

    @property
    def emits_at_any_time(self) -> bool:
        """See `SpoutTask.emits_at_any_time`."""
        return True

    @property
    def must_go_on(self) -> bool:
        """See `SpoutTask.must_go_on`. At a stop, what a call of ``next_tuple`` that is under way emits is worked off, too.

        A call that emits for ever gets no more room, so that the bolts can work off what it has emitted.
        """
        return super().must_go_on or (self.is_ending and self.is_under_way and not self.may_wait_for_ever)

    @property
    def may_wait_for_ever(self) -> bool:
        """Whether a call has lasted so long that a stop does not wait for it."""
        return self.executor.is_in_call_for(STOP_SECS)

    @property
    def must_finish(self) -> bool:
        """See `SpoutTask.must_finish`."""
        return self.state is not None and self.is_under_way

    @property
    def is_under_way(self) -> bool:
        """Whether a turn is open, a note or a verdict waits, or an instance starts."""
        return self._turn_is_open or bool(self._verdicts) or bool(len(self.notes)) or self.is_starting
