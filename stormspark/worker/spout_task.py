"""The task of a spout. It calls the spout for tuples, and tells the spout how the trees of these tuples ended.

A spout's task has

1. a *life*: the spout is opened, activated and deactivated (`SpoutLife`, `IsActivated`);
2. *verdicts*, which the spout gets at once or after the commit of their batch (`VerdictQueue`, `VerdictDelivery`);
3. a part in batches that are *transactions*;
4. *calls* of ``next_tuple``, which an emit may suspend (`SuspendableCalls`). Acks and fails wait until the call has returned, as
   in Storm (B3);
5. an *allowance* per round (`RoundAllowance`).

The sections below have the same order. If the spout has a *source*, `TakesRows` deals with its rows.
"""

from __future__ import annotations

from typing import Any

from stormspark.api import AsyncSpout, SourceSpout, Spout, TopologyContext
from stormspark.backpressure import SpoutLoad
from stormspark.metrics import TaskCounters
from stormspark.spi import TransactionAttempt
from stormspark.worker.asynchronous.spout_executor import AsyncSpoutExecutor
from stormspark.worker.spouts.activating import IsActivated
from stormspark.worker.spouts.round_allowance import UNLIMITED, RoundAllowance, StopReason
from stormspark.worker.spouts.streams_of_trees import StreamsOfTrees
from stormspark.worker.spouts.suspendable_calls import SuspendableCalls
from stormspark.worker.spouts.verdict_delivery import VerdictDelivery
from stormspark.worker.spouts.verdict_queues import TransactionVerdicts, VerdictQueue
from stormspark.worker.spouts.whether_done import WhetherDone
from stormspark.worker.stories.spout_stories import SpoutStories
from stormspark.worker.tuples.spout_collector import SpoutCollector

__all__ = ["SpoutTask"]

#: After this many emits of one call of ``next_tuple``, the task looks at the clock, and bolts get their turn.
_EMITS_PER_TURN = 1024


class SpoutTask(IsActivated):
    """One task of a `Spout`, a `SourceSpout` or an `AsyncSpout`. Max spout pending limits its open trees. If max spout pending is
    not set, there is no limit (B4).

    If ``waits_for_commit``, batches are transactions, so the spout gets its acks and fails only after the batch is committed or
    rolled back.
    """

    _first_call = "open"
    _collector_type = SpoutCollector
    _emits_per_turn = _EMITS_PER_TURN

    def __init__(self, *args: Any, acking: bool, waits_for_commit: bool, **kwargs: Any) -> None:
        super().__init__(*args, acking=acking, waits_for_commit=waits_for_commit, **kwargs)
        self._max_pending = self._settings.max_spout_pending or UNLIMITED
        self._collector: SpoutCollector
        queue = TransactionVerdicts if waits_for_commit else VerdictQueue
        self.verdicts: VerdictQueue = queue(self.account)
        self._stories = SpoutStories(self._host.stories, self)
        self._delivery = VerdictDelivery(self, self._stories, self._clock)
        self.calls = SuspendableCalls(self._clock, self._stories, self._max_pending)
        self.allowance = RoundAllowance(self.counters)
        #: The counts by stream; None unless the spout emits on several.
        several = len(self.component.streams) > 1 and not self.component.vectorised
        self.by_stream = StreamsOfTrees() if several else None
        self.whether_done = WhetherDone(self.report_error)

    # -- 1. life ---------------------------------------------------------------------------------------------

    @property
    def instance(self) -> Spout | None:
        """The spout; None before it is opened (B2), and while the task is down."""
        return self.spout if self.life.is_open and not self.is_down else None

    def _end_previous(self) -> None:
        """See `Task._end_previous`. Open trees of an earlier instance are forgotten, too (B10)."""
        super()._end_previous()
        self.calls.end()
        self._ledger.forget(self.account)
        self.verdicts.forget()
        if self.by_stream is not None:
            self.by_stream.forget()

    def _begin(self, instance: Spout | SourceSpout | AsyncSpout, context: TopologyContext) -> None:
        """Open the spout, and activate it if it was active before."""
        self._collector = self._collector_type(
            self, self.account, self._ledger, acking=self._acking, on_ack=self._delivery.ack_inside_emit
        )
        if self._host.guarded:
            self.guard()
        self._stories.begin(self._collector)
        self.spout = self._spout_for(instance)
        self.calls.begin(self.spout, self._collector)
        self._nothing_told()
        if self.state is not None:
            self.state.before(self.spout)
        collector = self._collector_for_user()
        self.spout.open(self._conf, context, collector)
        if self.state is not None:
            self.state.after(self.spout, context=context, collector=collector, conf=self._conf)
        self.life.opened()
        if self.life.is_active:
            self._activate_or_deactivate(True)

    def _collector_for_user(self) -> Any:
        """Return the collector that the spout gets."""
        return self._collector

    def _spout_for(self, instance: Spout | SourceSpout | AsyncSpout) -> Spout:
        """Return the spout that the task calls."""
        if isinstance(instance, SourceSpout):
            return self._around(instance)
        if isinstance(instance, AsyncSpout):
            return AsyncSpoutExecutor(
                instance, self._host.event_loop, self.call_ended, lambda: self.is_ending
            )
        return instance

    def guard(self) -> None:
        """See `Task.guard`."""
        if hasattr(self, "_collector"):  # otherwise the spout has not been opened yet
            self._collector.guarded = True

    def stop(self) -> None:
        """Deactivate and close the spout. Errors are reported, and stop nothing."""
        if not self.life.is_open:
            return
        self.calls.end()
        if self._tells_later:
            self._call_last(self._tell_late)
        if not self.is_down:
            self._call_last(self.set_active, False)
            self._call_last(self._run, self.spout.close)
        super().stop()

    @property
    def calls_of_life(self) -> int:
        """How many calls of ``open``, ``activate`` and ``deactivate`` an async spout has not returned from."""
        instance = self.instance
        return instance.calls_of_life if isinstance(instance, AsyncSpoutExecutor) else 0

    def says_that_it_is_done(self) -> bool | None:
        """Return whether the spout says that it emits nothing more; None if it does not say (`Spout.is_done`)."""
        instance = self.instance
        if self.component.source or not self.life.is_active:
            return None if self.life.is_active else False
        if instance is None or self.calls.suspended or self.has_verdicts or self.fatal is not None:
            return False
        return self._ask_whether_done(instance)

    def _ask_whether_done(self, instance: Spout) -> bool | None:
        return self.whether_done.ask(instance)

    # -- 2. verdicts -----------------------------------------------------------------------------------------

    @property
    def has_verdicts(self) -> bool:
        """Whether there are verdicts that the spout can get now."""
        return bool(self.verdicts.ready) and not self.calls.suspended

    def deliver(self) -> None:
        """Call ``ack`` or ``fail`` for every tree that has ended. In a transaction, this happens only once the tree's batch is
        committed or rolled back.
        """
        ready = self.verdicts.ready
        while ready and not self.calls.suspended and self.fatal is None:
            self._delivery.deliver(self.verdicts.take(), self._collector)

    def look(self) -> bool:
        """See `Task.look`."""
        return self._delivery.has_moved()

    def read_counters(self) -> TaskCounters:
        """Return the counters, up to date."""
        self._delivery.count_latencies()
        counters = super().read_counters()
        if self.by_stream is not None:
            counters.outputs = self.by_stream.read(counters.outputs, next(iter(self.outlets)), counters)
        return counters

    # -- 3. batches that are transactions --------------------------------------------------------------------

    def begin_batch(self, attempt: TransactionAttempt, announced: Any) -> None:
        """Begin an attempt. A spout that must repeat what an earlier attempt announced is opened even if it is inactive."""
        super().begin_batch(attempt, announced)
        if announced is not None and not self.life.is_open:
            self.begin_anew()

    @property
    def must_finish(self) -> bool:
        """Whether the spout has state that can't be saved yet, because the spout is in the middle of a ``next_tuple``."""
        return self.calls.suspended and self.state is not None

    @property
    def must_go_on(self) -> bool:
        """Whether the spout may have to emit further tuples of the current batch. A source spout always may."""
        return self.component.source or self.must_finish or (self.is_ending and self.has_begun_to_emit)

    @property
    def emits_at_any_time(self) -> bool:
        """Whether the spout emits on an event loop or on a thread of its own, so also between two rounds."""
        return isinstance(self.instance, AsyncSpoutExecutor)

    @property
    def has_begun_to_emit(self) -> bool:
        """Whether the spout has begun emits that are not carried out yet: of a suspended ``next_tuple``, or of coroutines. A stop
        works them off.
        """
        if self.fatal is not None or self.is_down:
            return False
        instance = self.instance
        noted = isinstance(instance, AsyncSpoutExecutor) and instance.has_noted
        return noted or self.calls.suspended

    def note_failures(self) -> None:
        """Abort the batch if any of its trees has failed, and note the rows of a source whose trees have failed."""
        for tree in self.verdicts.failed():
            self.abort(f"message {tree.message_id!r} {tree.verdict}")
            self.source.note_failed(tree)

    def end_attempt(self) -> None:
        """End the attempt, because the worker prepares the batch. Later emits, such as those in ``activate``, belong to the
        next batch.
        """
        self.verdicts.end_attempt()
        if (spout := self._row_spout) is not None:
            try:
                spout.settle()
            except OSError as error:
                self.abort(f"its dead letters can't be written: {error}", outside=True)

    def commit(self) -> None:
        """Make the batch's verdicts final, and mark its rows as done, because the batch is committed.

        The spout gets its acks and fails later. If the spout is in the middle of a ``next_tuple``, it gets them once this call
        has returned. An error in ``ack`` or ``fail`` can't undo the commit.
        """
        self.source.commit(self.verdicts.commit())

    def roll_back(self, batch: int, reason: str) -> None:
        """Fail all trees of the batch, whether acked or not, because the batch runs again. Verdicts of earlier batches stay.

        A spout with state restarts after this, so it gets none of these verdicts.
        """
        self.source.roll_back(batch)
        if (spout := self._row_spout) is not None:
            spout.take_back()
        self.verdicts.roll_back(reason)

    # -- 4. calls of next_tuple ------------------------------------------------------------------------------

    @property
    def may_emit(self) -> bool:
        """Whether the spout may be called, because it is active and below its limits.

        A suspended call may go on even if the spout was deactivated meanwhile, as in Storm (B13). In a transaction an inactive
        spout may be called, too, if it still has to emit tuples before the batch can end. Max spout pending is checked before
        each ``next_tuple``, but not during the call (B4).
        """
        if self.fatal is not None or self.is_down or (self.is_ending and not self.has_begun_to_emit):
            return False
        if self._must_repeat:
            return True
        if self.allowance.left <= 0:
            return False
        if self.calls.suspended:
            return self._may_go_on()
        return (self.life.is_active or self._owes_tuples) and self.account.pending < self._max_pending

    @property
    def waits_for_verdicts(self) -> bool:
        """Whether nothing but max spout pending keeps the spout from being called. If so, an ack or a fail lets the spout go
        on.
        """
        return self.life.is_active and self.allowance.left > 0 and self.account.pending >= self._max_pending

    @property
    def _must_repeat(self) -> bool:
        """Whether the spout has yet to repeat what an earlier attempt at this batch announced."""
        return (
            self._attempt is not None
            and self._attempt[1] is not None
            and self.life.is_open
            and not self.takes_part
        )

    @property
    def _owes_tuples(self) -> bool:
        """Whether the spout must emit more, even if it is inactive, before the batch can be committed (B13, C44)."""
        if not self.waits_for_commit:
            return False
        return self.must_finish or (self.life.was_active_in_batch and self.rows_waiting > 0)

    def _may_go_on(self) -> bool:
        """Whether a suspended call may go on. If too many verdicts wait for the call to return, it must stay suspended, because
        more and more verdicts would wait.
        """
        waiting = self.account.pending
        # In a transaction, all verdicts wait for the end of the batch, and the batch can't end before the call of a spout with
        # state has returned. So the number of verdicts must not stop such a spout.
        if not (self.waits_for_commit and self.must_finish):
            waiting += len(self.verdicts)
        if waiting < self._settings.worker_tuple_marks[0]:
            return True
        self.report_error(
            f"{self.name}: next_tuple has emitted {self.calls.emits_in_call:,} tuples and not returned; {waiting:,} acks and "
            f"fails wait for its return, and it is not asked for more. Emit fewer tuples in one call of next_tuple "
            f"(declared at {self.component.declared_at})"
        )
        return False

    def ask(self, calls: int, deadline: float) -> bool:
        """Call ``next_tuple`` up to ``calls`` times, until a call emits nothing. Return whether the last call emitted.

        Also returns true if the call raised and the task goes on.
        """
        collector, allowance = self._collector, self.allowance
        before, left = collector.emitted, allowance.left
        most = self._emits_per_turn
        turn = most if left > most else left
        result = self.calls.take_turn(turn, calls if calls < left else left, deadline)
        allowance.use(collector.emitted - before)
        if isinstance(result, BaseException):
            self.raised("next_tuple", result)
            return self.fatal is None
        if not self.calls.suspended:
            if self._has_run():
                self._raised_in_row = 0
            if self._tells_later:
                self._tell_late_or_stop()
        allowance.hungry = result
        return result

    def _has_run(self) -> bool:
        """Return whether a call of the user's ``next_tuple`` has returned."""
        return not isinstance(self.spout, AsyncSpoutExecutor) or self.spout.take_returned()

    def pause(self) -> None:
        """Suspend a long ``next_tuple``, so that bolts and other spouts get their turn. The collector's ``emit`` calls this."""
        self.calls.suspend()

    def take_calls(self, most: int | None = None) -> None:
        """Carry out calls that users' threads have made, if the spout may emit now."""
        if len(self.mailbox) and self.may_emit:
            collector = self._collector
            before = collector.emitted
            collector.now = self._clock()
            super().take_calls(most)
            self.allowance.use(collector.emitted - before)

    # -- 5. rounds -------------------------------------------------------------------------------------------

    def begin_round(self, now: float, limit: int | None) -> None:
        """Begin a round, in which the spout may emit ``limit`` tuples, or any number of tuples if ``limit`` is None."""
        self.allowance.go_on(now)
        self.allowance.begin(limit)

    @property
    def has_room_again(self) -> bool:
        """Whether max spout pending stopped the spout, and acks have come since, so that it may emit again."""
        return self.allowance.waits_for_acks and (self.has_verdicts or self.may_emit)

    def stopped_by_marks(self) -> None:
        """If the spout has more to emit, remember that. The spout is not called now, because too much waits in this worker."""
        if self.life.is_active and (not self.component.source or self.source.rows.waiting):
            self.allowance.hungry = True

    def pause_at_max_pending(self, now: float) -> None:
        """Count the time from now on as a pause at max spout pending, if that is why the spout is not called. The worker is about
        to wait, and the pause ends when the spout is called again, or with `end_asking`.
        """
        if self.waits_for_verdicts:
            self.allowance.pause(now)

    def end_asking(self, now: float) -> None:
        """Remember why the spout is not called again in this round, unless it merely has no more tuples or no more time."""
        self.allowance.go_on(now)
        if not (self.life.is_active or self.calls.suspended):
            self.allowance.stop(StopReason.INACTIVE, now)
        elif self.allowance.left <= 0:
            self.allowance.stop(StopReason.LIMIT, now)
        elif self.waits_for_verdicts:
            self.allowance.stop(StopReason.MAX_PENDING, now)

    def load(self) -> SpoutLoad:
        """Return the work that the spout has done since the end of the last round, and how many trees and rows wait."""
        allowance = self.allowance
        # Trees that have ended while next_tuple is suspended still wait for ack or fail, so they count as open (E26).
        trees = self.account.pending + len(self.verdicts)
        return SpoutLoad(
            emitted=allowance.take_emitted(),
            hungry=allowance.hungry,
            limited=allowance.limited,
            rows_waiting=self.source.rows.waiting,
            open_trees=trees,
            held=allowance.held,
        )
