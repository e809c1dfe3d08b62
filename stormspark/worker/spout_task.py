"""A spout's task: is asked for tuples, and hears how its trees ended.

``next_tuple`` runs in a greenlet of its own. Storm asks that it returns soon and without blocking (B1), and a
spout that keeps to it never notices. One that emits a whole file in a single call, or for ever, is suspended
inside ``emit`` when its time is up or too much waits, and goes on when it is asked again: so nothing is
unbounded (B4, E27), and the superstep ends. Acks and fails wait until the call has returned, as in Storm (B3).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from weakref import ReferenceType, ref

from greenlet import GreenletExit, getcurrent, greenlet

from stormspark.acker import ACKED, Outcome, SpoutAccount, Tree, Verdict
from stormspark.acker.records import AckerTime, Change, Record
from stormspark.api import SourceProgress, SourceSpout, Spout, SpoutAckInfo, SpoutFailInfo, TopologyContext
from stormspark.backpressure import SpoutLoad
from stormspark.checkpoint.state_files import TaskChanges
from stormspark.errors import ComponentError, SerializationError
from stormspark.metrics import TaskCounters
from stormspark.spi import RangeSpout, TransactionAttempt
from stormspark.worker.sources.held_rows import HeldRows
from stormspark.worker.sources.row_spout import RowSpout
from stormspark.worker.sources.source_rows import Row, SourceRows, comparable, message_id_of
from stormspark.worker.stories.stories import SpoutStories
from stormspark.worker.task import Task
from stormspark.worker.tuples.collectors import SpoutCollector
from stormspark.worker.tuples.execution import ask_for_tuples
from stormspark.worker.tuples.verdicts import tell_acks

__all__ = ["SpoutTask"]

#: Emits inside one call of ``next_tuple`` after which the clock is looked at, and bolts get their turn.
_EMITS_A_TURN = 1024
#: So many latencies are noted at once.
_MOST_WAITS = 4096
#: So many rows that failed are told of in an attempt.
_MOST_FAILED_ROWS = 1000


class SpoutTask(Task):
    """One task of a `Spout`. ``max_pending`` is its limit of open trees, None for none (B4)."""

    _first_call = "open"
    _collector_type = SpoutCollector

    def __init__(self, *args: Any, acking: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.account = SpoutAccount(self.id)
        self._stories = SpoutStories(self._host.stories, self)
        self.spout: Spout
        self.active = False
        self.opened = False
        #: Batches are transactions: it hears of acks and fails when the batch is committed, and not before.
        self.waits_for_commit = False
        #: Trees of batches that are committed or taken back, of which it has not heard yet.
        self._decided: list[Tree] = []
        #: It has been active in the batch that runs, whose rows are emitted although it is not any more.
        self._has_begun = False
        self._undecided = 0  # the number of the first attempt that is neither committed nor taken back
        self._max_pending = self._settings.max_spout_pending or None
        self._acking = acking
        self._collector: SpoutCollector
        self._rows: SourceRows | None = None  # of a source spout; they outlive its instances
        self._held = HeldRows(self.component.id, self.index)
        self._reliable = True
        self._runner: greenlet | None = None
        #: ``next_tuple`` is suspended inside an emit.
        self.suspended = False
        self.emits_in_call = 0
        self.turn = _EMITS_A_TURN
        self.deadline = 0.0
        self.calls = 0
        #: Tuples that it may still emit in this round; None: no limit.
        self._left: int | None = None
        self._emitted_in_round = 0
        #: Seconds that trees took, which are not counted yet: many at once are cheaper.
        self._waits: list[float] = []
        self._verdicts_seen = 0  # of the verdicts that the spout has heard, at the last `look`
        #: Its limit stopped it in this round; and whether it would have emitted more, whatever stopped it.
        self._hungry = self.limited = False
        #: Of a source, whose trees failed since somebody asked.
        self.failed_rows: list[Hashable] = []
        #: Why it is not asked, and since when (F6).
        self._skipped: tuple[str, float] | None = None

    def _begin(self, instance: Spout | SourceSpout, context: TopologyContext) -> None:
        """Open and activate the spout; open trees of an earlier instance are forgotten (B10)."""
        self._end_call()
        self._ledger.forget(self.account)
        self._decided.clear()
        self._collector = self._collector_type(
            self, self.account, self._ledger, acking=self._acking, on_ack=self._ack_inside_emit
        )
        if self._host.guarded:
            self.guard()
        self._stories.begin(self._collector)
        if isinstance(instance, SourceSpout):
            rows = self._rows_for(instance)
            folder = self._settings.dead_letter_dir
            by_commit = self.waits_for_commit and self._acking
            instance = RowSpout(
                instance, rows, self._clock, folder, self._gave_up, self._nothing_of, done_by_commit=by_commit
            )
        self.spout = instance
        if self.state is not None:
            self.state.before(instance)
        instance.open(self._conf, context, self._collector)
        if self.state is not None:
            self.state.after(instance, context=context, collector=self._collector, conf=self._conf)
        self.opened = True
        if self.active:
            self.active = False
            self.set_active(True)

    def set_active(self, active: bool) -> None:
        """Call ``activate`` or ``deactivate`` when that is a change (B13); open the spout before its first ``activate`` (B2)."""
        if active == self.active:
            return
        if not self.opened:
            self.start()
        self.active = active
        self._has_begun |= active
        try:
            if active:
                self.spout.activate()
            else:
                self.spout.deactivate()
        except Exception as error:
            failure = self._component_error("raised in activate or deactivate", error)
            raise failure from error

    def stop(self) -> None:
        """Deactivate and close; what that raises is reported and stops nothing."""
        if not self.opened:
            return
        self._end_call()
        try:
            self.set_active(False)
            self.spout.close()
        except Exception as error:
            self.report_error(error)
        super().stop()

    # -- rows of a source ------------------------------------------------------------------------------------

    def take_rows(self, batch: int, partition: int, payload: bytes) -> None:
        """Rows that Spark has read for this task; they wait until they are asked for, also while the spout is not open yet."""
        if self._rows is None:
            self._rows_for(self._instance())
        assert self._rows is not None
        self._rows.take(batch, partition, payload)

    def add_rows(self, batch: int, partition: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """The same for rows that are Python's already: the local engine's."""
        if self._rows is None:
            self._rows_for(self._instance())
        assert self._rows is not None
        self._rows.add(batch, partition, rows)

    def adopt(self, rows: Iterable[tuple[Record | None, Row]]) -> None:
        """Rows that an earlier life of this task left open."""
        if self._rows is None:
            self._rows_for(self._instance())
        assert self._rows is not None
        adopted = self._rows.adopt(rows)
        if adopted:
            self.logger.info("%s emits %d rows again that its earlier worker left open", self.name, adopted)

    def acker_changes(self, time: AckerTime, draw: Callable[[int], Sequence[int]]) -> list[Change]:
        """What the durable acker has to know of this task's rows; see `SourceRows.changes`.

        Nothing of a spout that is not reliable: what comes back might have been emitted (K2).
        """
        return self._rows.changes(time, draw) if self._rows is not None and self._reliable else []

    def progress(self, batch: int) -> SourceProgress | None:
        """How far it has come with its source; None for a spout that is its own."""
        if not self.component.source:
            return None
        spout, rows = self._row_spout, self._rows
        source = None if spout is None else spout.source
        if rows is None or source is None:
            return SourceProgress(self.rows_waiting)
        came, rows.came = rows.came, 0
        every = source.low_marks_every
        asked = every is not None and batch % every == 0
        marks = source.low_marks(rows.open_ids(), rows.unread()) if asked else None
        return SourceProgress(rows.waiting, marks, came)

    def forget_batch(self, batch: int) -> None:
        """The batch is run again, from its rows on."""
        if self._rows is not None:
            self._rows.forget_batch(batch, trees_live_on=not self.waits_for_commit)

    @property
    def rows_waiting(self) -> int:
        """Rows of a source that wait to be emitted, or to be emitted again."""
        return 0 if self._rows is None else len(self._rows)

    @property
    def rows_left(self) -> int:
        """Those of them without which the batch can't end: rows of committed batches wait while the spout is inactive (B13)."""
        if self._rows is None or self.active or self._has_begun:
            return self.rows_waiting
        return self._rows.waiting_but(self._held)

    @property
    def _row_spout(self) -> RowSpout | None:
        """What makes a spout of the source, once it is open."""
        return self.spout if self.opened and isinstance(self.spout, RowSpout) else None

    def _rows_for(self, source: SourceSpout) -> SourceRows:
        self._reliable = source.reliable
        if self._rows is None:
            ranges = source if isinstance(source, RangeSpout) else None
            self._rows = SourceRows(source.retry, source.id_columns, ranges)
        elif isinstance(source, RangeSpout):
            self._rows.read_with(source)
        return self._rows

    # -- batches that are transactions ------------------------------------------------------------------------

    @property
    def instance(self) -> Spout | None:
        """The spout; None before it is opened (B2)."""
        return self.spout if self.opened else None

    def begin_batch(self, attempt: TransactionAttempt, announced: Any) -> None:
        """An attempt begins; what was announced of the one before must be emitted again, also while spouts are not active."""
        super().begin_batch(attempt, announced)
        if announced is not None and not self.opened:
            self.begin_anew()

    @property
    def _must_repeat(self) -> bool:
        return (
            self._attempt is not None and self._attempt[1] is not None and self.opened and not self.takes_part
        )

    @property
    def must_finish(self) -> bool:
        """It is in the middle of a ``next_tuple``, and so is its state."""
        return self.suspended and self.state is not None

    @property
    def must_go_on(self) -> bool:
        """What it has to emit belongs to the batch that runs."""
        return self.component.source or self.must_finish

    @property
    def _owes(self) -> bool:
        """It is not active, but without what it has to emit its batch can't be committed: that goes on (B13, C44)."""
        if not self.waits_for_commit:
            return False
        return self.must_finish or (self._has_begun and self.rows_waiting > 0)

    def _failed(self) -> Iterator[Tree]:
        """The trees of this batch that have failed."""
        # Not by the time of the emit: outside of `next_tuple` that is the one of some call before.
        return (
            tree
            for tree in self.account.ended
            if tree.verdict is not ACKED and tree.attempt >= self._undecided
        )

    @property
    def failed_tree(self) -> Tree | None:
        """One of this batch that has failed."""
        return next(self._failed(), None)

    def note_failures(self) -> None:
        """Trees have ended, and are not told of before the batch is committed; one of this batch that failed is why not."""
        for tree in self._failed():
            self.abort(f"message {tree.message_id!r} {tree.verdict}")
            if self._rows is not None and len(self.failed_rows) < _MOST_FAILED_ROWS:
                self.failed_rows.append(tree.message_id)
                self._rows.why[tree.message_id] = str(tree.verdict)

    def take_failed_rows(self) -> list[Hashable]:
        """Ids of rows of a source whose trees failed in this attempt, some of them."""
        rows, self.failed_rows = self.failed_rows, []
        return rows

    def skip(self, rows: Iterable[Hashable]) -> None:
        """These rows have failed in too many attempts: they are dead letters."""
        if self._rows is not None:
            self._rows.skipped = frozenset(map(comparable, rows))

    def next_batch(self) -> None:
        """Another batch begins than the one before. Where the spout is not active by now, its rows wait until it is (B13)."""
        self._has_begun = self.active

    def end_attempt(self) -> None:
        """The worker prepares the batch: what is emitted from now on, as in ``activate``, belongs to the next one."""
        self.account.attempt += 1
        if (spout := self._row_spout) is not None:
            try:
                spout.settle()
            except OSError as error:
                self.abort(f"its dead letters can't be written: {error}", outside=True)

    def restore_rows(self, found: Iterable[tuple[int, bytes, bytes]]) -> None:
        """Rows that were open when the last batch was committed, out of the table; see `HeldRows.load`."""
        self.adopt((None, row) for row in self._held.load(found))

    def held_rows(self) -> list[TaskChanges]:
        """The batch is prepared: what is to be written of rows that are still open; see `HeldRows`."""
        rows, ended = self._rows, self.account.ended
        if rows is None or (not self._held and (len(ended) == rows.open or not self._reliable)):
            return []
        acked = {tree.message_id for tree in ended if tree.verdict is ACKED}
        try:
            return self._held.changes(rows.open_rows(acked))
        except SerializationError as error:
            self.abort(f"a bolt keeps a tuple over the end of its batch, and {error}")
            return []

    def commit(self) -> None:
        """A batch is committed: what has ended in it is decided, and its rows are done with.

        The spout hears of it after this, which may take until its ``next_tuple`` has returned; what a callback of it raises
        changes nothing of this any more.
        """
        account = self.account
        self._undecided = account.attempt
        # What was emitted since the worker has prepared the batch belongs to the next one, although it may have ended already.
        ended = [tree for tree in account.ended if tree.attempt < account.attempt]
        account.ended = [tree for tree in account.ended if tree.attempt >= account.attempt]
        self._decided += ended
        if self._rows is not None:
            self._rows.commit([tree.message_id for tree in ended if tree.verdict is ACKED])
            self._held.commit()

    def roll_back(self, batch: int, reason: str) -> None:
        """The batch comes again: all that was emitted in it has failed, acked or not. What was decided before it stays so.

        A spout with state begins anew after this, and hears of nothing.
        """
        self.forget_batch(batch)
        self._held.roll_back()
        if (spout := self._row_spout) is not None:
            spout.take_back()
        self.failed_rows.clear()
        lost = Verdict(Outcome.TAKEN_BACK, reason)
        ended, self.account.ended = self.account.ended, []
        for tree in ended:
            tree.verdict = lost
        self._decided += ended
        self.end_attempt()
        self._undecided = self.account.attempt

    # -- tuples ----------------------------------------------------------------------------------------------

    @property
    def may_emit(self) -> bool:
        """Active, and below max spout pending, which is looked at before each ``next_tuple`` (B4), not inside."""
        if self.fatal is not None:
            return False
        if self._must_repeat:
            return True
        if (self._left is not None and self._left <= 0) or not (self.active or self._owes):
            return False
        if self.suspended:
            return self._may_go_on()
        limit = self._max_pending
        return limit is None or self.account.pending < limit

    def _may_go_on(self) -> bool:
        """Whether a suspended call may: verdicts wait for its return, and they must not pile up for ever."""
        waiting = self.account.pending
        if not (
            self.waits_for_commit and self.must_finish
        ):  # else the batch, and with it the verdicts, wait for its return
            waiting += len(self.account.ended) + len(self._decided)
        if waiting < self._settings.worker_tuple_marks[0]:
            return True
        self.report_error(
            f"{self.name}: next_tuple has emitted {self.emits_in_call:,} tuples and not returned; {waiting:,} acks and fails "
            f"wait for its return (B3), and it is not asked for more. Emit fewer tuples in one call of next_tuple (declared at "
            f"{self.component.declared_at})"
        )
        return False

    def ask(self, calls: int, deadline: float) -> bool:
        """Call ``next_tuple`` up to ``calls`` times, until it emits nothing; true if the last call emitted."""
        left = self._left
        self.calls, self.deadline = calls if left is None else min(calls, left), deadline
        if self._runner is None:
            # Made here: it belongs to the thread that made it. It knows its task weakly: no garbage collector looks into a
            # suspended greenlet.
            self._runner = greenlet(partial(_ask_for_ever, ref(self)))
        collector = self._collector
        before = collector.emitted
        self.turn = _EMITS_A_TURN if left is None else min(_EMITS_A_TURN, left)
        if self.suspended:
            collector.pause_at = before + self.turn
        answer = self._runner.switch()
        collector.pause_at = -1
        emitted = collector.emitted - before
        self._emitted_in_round += emitted
        if left is not None:
            self._left = left - emitted
        if not isinstance(answer, Exception):
            self._hungry = bool(answer)
            return self._hungry
        self.raised("next_tuple", answer)
        return self.fatal is None

    def _ask(self) -> bool | Exception:
        collector = self._collector
        collector.now = now = self._clock()
        collector.new_tree = self._stories.maker(now)
        limit = self._max_pending if self._max_pending is not None else 1 << 62
        try:
            emitted = ask_for_tuples(self.spout.next_tuple, collector, self._clock, limit, self)
            self._raised_in_row = 0
        except Exception as error:
            return error
        return emitted

    def pause(self) -> None:
        """Called by ``emit`` inside a long ``next_tuple``: let the bolts, and other spouts, have their turn."""
        runner, collector = self._runner, self._collector
        if runner is None or getcurrent() is not runner:
            collector.pause_at = -1  # an emit of another thread, or after the end of the call
            return
        self.emits_in_call += self.turn
        hub = runner.parent
        assert hub is not None
        self.suspended = True
        hub.switch(True)  # GreenletExit comes out of here where the instance ends
        self.suspended = False
        collector.now = now = self._clock()
        collector.new_tree = self._stories.maker(now)

    def guard(self) -> None:
        """User code has threads now."""
        if hasattr(self, "_collector"):  # else it has not been opened yet
            self._collector.guarded = True

    def take_calls(self, most: int | None = None) -> None:
        """Do what users' threads have called, unless the spout may not emit now."""
        if len(self.mailbox) and self.may_emit:
            collector = self._collector
            before = collector.emitted
            collector.now = self._clock()
            super().take_calls(most)
            emitted = collector.emitted - before
            self._emitted_in_round += emitted
            if self._left is not None:
                self._left -= emitted

    # -- backpressure ----------------------------------------------------------------------------------------

    def begin_round(self, now: float, limit: int | None) -> None:
        """A round begins, in which it may emit ``limit`` tuples; a call that emits several may go beyond (B4)."""
        self.asked_again(now)
        self._left = limit
        self._hungry = self.limited = False

    def asked_again(self, now: float) -> None:
        """Until now it was not asked, if there was a reason for that."""
        if self._skipped is not None:
            reason, since = self._skipped
            counters = self.counters
            setattr(counters, reason, getattr(counters, reason) + (now - since) * 1000)
            self._skipped = None

    def stopped_by_marks(self) -> None:
        """So much waits in this worker that it is not asked."""
        if self.active and (self._rows is None or self._rows.waiting):
            self._hungry = True

    def end_asking(self, now: float) -> None:
        """It is not asked again in this round: note why, if that is not for want of tuples or time."""
        limit = self._max_pending
        if not self.active:
            self._skipped = ("skipped_inactive_ms", now)
        elif self._left is not None and self._left <= 0:
            self._hungry = self.limited = True
            self._skipped = ("skipped_backpressure_ms", now)
        elif limit is not None and self.account.pending >= limit:
            self._hungry = False  # its other brake holds it
            self._skipped = ("skipped_max_spout_ms", now)

    def load(self) -> SpoutLoad:
        """What it did since the last round's end."""
        emitted, self._emitted_in_round = self._emitted_in_round, 0
        rows = self._rows.waiting if self._rows is not None else 0
        account = self.account
        # Trees that have ended while next_tuple is suspended wait for ack or fail: they are not over yet (E26).
        trees = account.pending + len(account.ended) + len(self._decided)
        return SpoutLoad(emitted, self._hungry, self.limited, rows, trees)

    def _end_call(self) -> None:
        """Unwind a suspended ``next_tuple``: its instance ends."""
        runner, self._runner, suspended, self.suspended = self._runner, None, self.suspended, False
        if runner is not None and suspended:
            self._collector.pause_at = -1
            # GreenletExit lets the call's `finally` run; what these raise is no news any more. A greenlet can't
            # be unwound by another thread than its own: then it goes with its thread.
            with contextlib.suppress(Exception):
                runner.throw(GreenletExit)

    # -- verdicts --------------------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Trees have ended, and the spout may hear of them now."""
        ended = self._decided if self.waits_for_commit else self.account.ended
        return bool(ended) and not self.suspended

    def deliver(self) -> None:
        """Call ``ack`` or ``fail`` for every tree that has ended, and is decided."""
        account = self.account
        while self.has_news and self.fatal is None:
            if self.waits_for_commit:
                ended, self._decided = self._decided, []
            else:
                ended, account.ended = account.ended, []
            counters, collector, spout, hooks = self.counters, self._collector, self.spout, self.hooks
            collector.now = now = self._clock()
            told, waits = 0, self._waits
            before = len(waits)
            while told < len(ended):
                tree = ended[told]
                verdict = tree.verdict
                assert verdict is not None
                try:
                    if verdict is ACKED:
                        collector.verdict = verdict
                        told = tell_acks(ended, told, 1 if hooks else len(ended), spout.ack, now, waits)
                        for hook in hooks:
                            hook.spout_ack(
                                SpoutAckInfo(
                                    message_id_of(tree.message_id), self.id, (now - tree.emitted_at) * 1000
                                )
                            )
                    else:
                        told += 1
                        self._count_fail(verdict.outcome)
                        collector.verdict = self._stories.failed(tree, verdict, now)
                        spout.fail(tree.message_id)
                        for hook in hooks:
                            hook.spout_fail(
                                SpoutFailInfo(
                                    message_id_of(tree.message_id), self.id, (now - tree.emitted_at) * 1000
                                )
                            )
                except Exception as error:
                    self.raised("ack or fail", error)
                    break  # the rest were trees of an instance that is gone (B10)
            counters.acked += len(waits) - before
            if len(waits) > _MOST_WAITS:
                self._note_waits()
            collector.verdict = None

    def look(self) -> bool:
        """Each ack leaves how long its tree took, and fails are counted; see `Task.look`."""
        before, self._verdicts_seen = self._verdicts_seen, len(self._waits) + self.counters.failed
        return before != self._verdicts_seen

    def read_counters(self) -> TaskCounters:
        """The counters, up to date."""
        self._note_waits()
        return super().read_counters()

    def _note_waits(self) -> None:
        self.counters.latency.add_all(self._waits)
        self._waits.clear()

    def _gave_up(self, reason: str) -> None:
        self.counters.dead_letters += 1
        self.report_error(f"dead letter: {reason}")

    def _nothing_of(self, message_id: Hashable) -> None:
        """No tuple comes of a row: it is acked now, or with its batch where that is a transaction, as a tree without edges."""
        if self.waits_for_commit:
            tree = Tree(self.account, message_id, self._clock())
            self._ledger.begin(tree)
            self._ledger.drained(tree)
        else:
            self.spout.ack(message_id)

    def _count_fail(self, outcome: Outcome) -> None:
        counters = self.counters
        counters.failed += 1
        if outcome is Outcome.FAILED:
            counters.failed_by_bolt += 1
        elif outcome is Outcome.TIMED_OUT:
            counters.timed_out += 1
        elif outcome is Outcome.WORKER_LOST:
            counters.worker_lost += 1

    def _ack_inside_emit(self, message_id: Hashable) -> None:
        """Acking is off: the spout hears of the ack inside its emit (B8, E29)."""
        self.counters.acked += 1
        self.spout.ack(message_id)
        for hook in self.hooks:
            hook.spout_ack(SpoutAckInfo(message_id_of(message_id), self.id, 0.0))

    def activate_or_stop(self, active: bool) -> None:
        """`set_active`, where what it raises stops the topology."""
        try:
            self.set_active(active)
        except ComponentError as error:
            self.stop_topology(error)


def _ask_for_ever(task: ReferenceType[SpoutTask]) -> None:
    """What the greenlet of a spout's task runs: a turn each time it is switched to."""
    hub = getcurrent().parent
    assert hub is not None
    while (spout := task()) is not None:
        answer = spout._ask()
        del spout
        hub.switch(answer)
        del answer
