"""The task of a spout: it calls the spout for tuples, and passes on how their trees ended.

``next_tuple`` runs in a greenlet of its own. Storm requires that it returns soon and without blocking (B1), and a spout that
does so never notices the greenlet. But a spout may emit a whole file in a single call, or emit for ever. The task suspends
such a call inside ``emit`` when its time is up or too much waits, and resumes it at the next turn. So no call grows without
bounds (B4, E27), and the superstep ends. Acks and fails wait until the call has returned, as in Storm (B3).
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
from stormspark.worker.sources.rows import Row, comparable, message_id_of
from stormspark.worker.sources.source_rows import SourceRows
from stormspark.worker.stories.stories import SpoutStories
from stormspark.worker.task import Task
from stormspark.worker.tuples.collectors import SpoutCollector
from stormspark.worker.tuples.execution import ask_for_tuples
from stormspark.worker.tuples.verdicts import tell_acks

__all__ = ["SpoutTask"]

#: How many emits one call of ``next_tuple`` may make before the task looks at the clock and bolts get their turn.
_EMITS_A_TURN = 1024
#: How many latencies are gathered before they are counted, all at once.
_MOST_WAITS = 4096
#: How many failed rows are reported per attempt, at most.
_MOST_FAILED_ROWS = 1000


class SpoutTask(Task):
    """One task of a `Spout` or a `SourceSpout`. Max spout pending limits its open trees; without it there is no limit (B4)."""

    _first_call = "open"
    _collector_type = SpoutCollector

    def __init__(self, *args: Any, acking: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.account = SpoutAccount(self.id)
        self._stories = SpoutStories(self._host.stories, self)
        self.spout: Spout
        self.active = False
        self.opened = False
        #: Whether batches are transactions: then the spout gets its acks and fails only after the batch is committed.
        self.waits_for_commit = False
        #: Trees of batches that were committed or rolled back, whose verdicts the spout has not got yet.
        self._decided: list[Tree] = []
        #: Whether the spout was active at some time in the current batch. Then it emits the batch's rows, even if it no
        #: longer is.
        self._has_begun = False
        self._undecided = 0  # the number of the first attempt that was neither committed nor rolled back
        self._max_pending = self._settings.max_spout_pending or None
        self._acking = acking
        self._collector: SpoutCollector
        self._rows: SourceRows | None = None  # only of a source spout; the rows outlive its instances
        self._held = HeldRows(self.component.id, self.index)
        self._reliable = True
        self._runner: greenlet | None = None
        #: Whether ``next_tuple`` is suspended inside an emit.
        self.suspended = False
        self.emits_in_call = 0
        self.turn = _EMITS_A_TURN
        self.deadline = 0.0
        self.calls = 0
        #: How many tuples the spout may still emit in this round; None: no limit.
        self._left: int | None = None
        self._emitted_in_round = 0
        #: Seconds that acked trees took, not counted yet: to count many at once is cheaper.
        self._waits: list[float] = []
        self._verdicts_seen = 0  # how many verdicts were delivered, as of the last `look`
        #: Whether the spout would have emitted more in this round, whatever stopped it; and whether its limit stopped it.
        self._hungry = self.limited = False
        #: Ids of a source's rows whose trees failed since the last `take_failed_rows`.
        self.failed_rows: list[Hashable] = []
        #: Which counter takes the time in which ``next_tuple`` is not called, and since when; None while it is called (F6).
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
        """Deactivate and close the spout. Errors are reported, and stop nothing."""
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
        """Queue rows that Spark has read for this task. They wait until the spout emits them, even if it is not open yet."""
        if self._rows is None:
            self._rows_for(self._instance())
        assert self._rows is not None
        self._rows.take(batch, partition, payload)

    def add_rows(self, batch: int, partition: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Queue rows as `take_rows` does, but rows of the local engine, which are Python objects already."""
        if self._rows is None:
            self._rows_for(self._instance())
        assert self._rows is not None
        self._rows.add(batch, partition, rows)

    def adopt(self, rows: Iterable[tuple[Record | None, Row]]) -> None:
        """Emit rows again that an earlier life of this task left open."""
        if self._rows is None:
            self._rows_for(self._instance())
        assert self._rows is not None
        adopted = self._rows.adopt(rows)
        if adopted:
            self.logger.info("%s emits %d rows again that its earlier worker left open", self.name, adopted)

    def acker_changes(self, time: AckerTime, draw: Callable[[int], Sequence[int]]) -> list[Change]:
        """Return what the durable acker has to know of this task's rows; see `SourceRows.changes`.

        An unreliable spout reports nothing: a row that came back might have been emitted before (K2).
        """
        return self._rows.changes(time, draw) if self._rows is not None and self._reliable else []

    def progress(self, batch: int) -> SourceProgress | None:
        """Return how far the spout has come with its source; None for a spout without a source."""
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
        """Forget the rows of a batch, because the batch runs again and brings them again."""
        if self._rows is not None:
            self._rows.forget_batch(batch, trees_live_on=not self.waits_for_commit)

    @property
    def rows_waiting(self) -> int:
        """How many rows of a source wait to be emitted, or to be emitted again."""
        return 0 if self._rows is None else len(self._rows)

    @property
    def rows_left(self) -> int:
        """How many of `rows_waiting` have to be emitted before the batch can end.

        While the spout is inactive, rows of committed batches do not count: they wait until it is active again (B13).
        """
        if self._rows is None or self.active or self._has_begun:
            return self.rows_waiting
        return self._rows.waiting_but(self._held)

    @property
    def _row_spout(self) -> RowSpout | None:
        """The `RowSpout` around the source; None if the spout is not open, or has no source."""
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
        """Begin an attempt. The spout must repeat what an earlier attempt announced; it is opened for that even if inactive."""
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
        """Whether a spout with state is in the middle of a ``next_tuple``, and so its state is, too."""
        return self.suspended and self.state is not None

    @property
    def must_go_on(self) -> bool:
        """Whether the tuples that the spout has yet to emit belong to the current batch."""
        return self.component.source or self.must_finish

    @property
    def _owes(self) -> bool:
        """Whether the batch can't be committed before the spout has emitted more; it does so even if inactive (B13, C44)."""
        if not self.waits_for_commit:
            return False
        return self.must_finish or (self._has_begun and self.rows_waiting > 0)

    def _failed(self) -> Iterator[Tree]:
        """Iterate over the trees of this batch that have failed."""
        # Compares attempts, not times of emits: outside of `next_tuple` an emit has the time of some earlier call.
        return (
            tree
            for tree in self.account.ended
            if tree.verdict is not ACKED and tree.attempt >= self._undecided
        )

    @property
    def failed_tree(self) -> Tree | None:
        """A tree of this batch that has failed, if there is one."""
        return next(self._failed(), None)

    def note_failures(self) -> None:
        """Abort the batch if any of its trees has failed, and note which rows of a source those were."""
        for tree in self._failed():
            self.abort(f"message {tree.message_id!r} {tree.verdict}")
            if self._rows is not None and len(self.failed_rows) < _MOST_FAILED_ROWS:
                self.failed_rows.append(tree.message_id)
                self._rows.why[tree.message_id] = str(tree.verdict)

    def take_failed_rows(self) -> list[Hashable]:
        """Return ids of rows of a source whose trees failed in this attempt, at most `_MOST_FAILED_ROWS` of them."""
        rows, self.failed_rows = self.failed_rows, []
        return rows

    def skip(self, rows: Iterable[Hashable]) -> None:
        """Make these rows dead letters, because they have failed in too many attempts."""
        if self._rows is not None:
            self._rows.skipped = frozenset(map(comparable, rows))

    def next_batch(self) -> None:
        """Note that a new batch begins. If the spout is inactive now, the batch's rows wait until it is active (B13)."""
        self._has_begun = self.active

    def end_attempt(self) -> None:
        """End the attempt, because the worker prepares the batch: later emits, as in ``activate``, belong to the next batch."""
        self.account.attempt += 1
        if (spout := self._row_spout) is not None:
            try:
                spout.settle()
            except OSError as error:
                self.abort(f"its dead letters can't be written: {error}", outside=True)

    def restore_rows(self, found: Iterable[tuple[int, bytes, bytes]]) -> None:
        """Adopt the rows that were open when the last batch was committed, from the state table; see `HeldRows.load`."""
        self.adopt((None, row) for row in self._held.load(found))

    def held_rows(self) -> list[TaskChanges]:
        """Return the changes to the table's open rows that belong to the prepared batch; see `HeldRows`."""
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
        """Take over that the batch is committed: its verdicts are final, and its rows are done.

        The spout gets its acks and fails later, at the latest once its ``next_tuple`` has returned. An error in its ``ack`` or
        ``fail`` can't undo the commit.
        """
        account = self.account
        self._undecided = account.attempt
        # Tuples emitted after the worker prepared the batch belong to the next one, even if their trees have ended already.
        ended = [tree for tree in account.ended if tree.attempt < account.attempt]
        account.ended = [tree for tree in account.ended if tree.attempt >= account.attempt]
        self._decided += ended
        if self._rows is not None:
            self._rows.commit([tree.message_id for tree in ended if tree.verdict is ACKED])
            self._held.commit()

    def roll_back(self, batch: int, reason: str) -> None:
        """Fail everything that was emitted in the batch, acked or not, because the batch runs again. Earlier verdicts stay.

        A spout with state restarts after this, so it gets none of these verdicts.
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
        """Whether the spout may be called: it is active and below its limits.

        Max spout pending is checked before each ``next_tuple``, not inside (B4).
        """
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
        """Whether a suspended call may go on: verdicts wait until it returns, and they must not pile up for ever."""
        waiting = self.account.pending
        if not (
            self.waits_for_commit and self.must_finish
        ):  # otherwise the batch waits for its return, and the verdicts with it
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
            # Made here, because a greenlet belongs to the thread that makes it. It holds its task by a weak reference,
            # because the garbage collector can't look into a suspended greenlet.
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
        """Suspend a long ``next_tuple``, so that bolts and other spouts get their turn. Its ``emit`` calls this."""
        runner, collector = self._runner, self._collector
        if runner is None or getcurrent() is not runner:
            collector.pause_at = -1  # an emit in another thread, or after the end of the call
            return
        self.emits_in_call += self.turn
        hub = runner.parent
        assert hub is not None
        self.suspended = True
        hub.switch(True)  # raises GreenletExit if the instance ends meanwhile
        self.suspended = False
        collector.now = now = self._clock()
        collector.new_tree = self._stories.maker(now)

    def guard(self) -> None:
        """See `Task.guard`."""
        if hasattr(self, "_collector"):  # otherwise the spout has not been opened yet
            self._collector.guarded = True

    def take_calls(self, most: int | None = None) -> None:
        """Carry out calls that users' threads have made, unless the spout may not emit now."""
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
        """Begin a round, in which the spout may emit ``limit`` tuples. A call that emits several may exceed that (B4)."""
        self.asked_again(now)
        self._left = limit
        self._hungry = self.limited = False

    def asked_again(self, now: float) -> None:
        """Count the time since `end_asking`, in which ``next_tuple`` was not called, if a reason was noted."""
        if self._skipped is not None:
            reason, since = self._skipped
            counters = self.counters
            setattr(counters, reason, getattr(counters, reason) + (now - since) * 1000)
            self._skipped = None

    def stopped_by_marks(self) -> None:
        """Note that the water marks stop the spout: too much waits in this worker."""
        if self.active and (self._rows is None or self._rows.waiting):
            self._hungry = True

    def end_asking(self, now: float) -> None:
        """Note why the spout is not called again in this round, unless it only lacks tuples or time."""
        limit = self._max_pending
        if not self.active:
            self._skipped = ("skipped_inactive_ms", now)
        elif self._left is not None and self._left <= 0:
            self._hungry = self.limited = True
            self._skipped = ("skipped_backpressure_ms", now)
        elif limit is not None and self.account.pending >= limit:
            self._hungry = False  # max spout pending holds it back, not the limit of the round
            self._skipped = ("skipped_max_spout_ms", now)

    def load(self) -> SpoutLoad:
        """Return what the spout did since the end of the last round."""
        emitted, self._emitted_in_round = self._emitted_in_round, 0
        rows = self._rows.waiting if self._rows is not None else 0
        account = self.account
        # Trees that have ended while next_tuple is suspended still wait for ack or fail, so they count as open (E26).
        trees = account.pending + len(account.ended) + len(self._decided)
        return SpoutLoad(emitted, self._hungry, self.limited, rows, trees)

    def _end_call(self) -> None:
        """Unwind a suspended ``next_tuple``, because its instance ends."""
        runner, self._runner, suspended, self.suspended = self._runner, None, self.suspended, False
        if runner is not None and suspended:
            self._collector.pause_at = -1
            # GreenletExit runs the call's `finally` blocks; errors in them no longer matter. Only a greenlet's own thread can
            # unwind it; in another thread this fails, and the greenlet ends with its thread.
            with contextlib.suppress(Exception):
                runner.throw(GreenletExit)

    # -- verdicts --------------------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether there are verdicts that the spout can get now."""
        ended = self._decided if self.waits_for_commit else self.account.ended
        return bool(ended) and not self.suspended

    def deliver(self) -> None:
        """Call ``ack`` or ``fail`` for every tree that has ended; in a transaction, only after its batch is decided."""
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
                    break  # the remaining trees belonged to an instance that is gone (B10)
            counters.acked += len(waits) - before
            if len(waits) > _MOST_WAITS:
                self._note_waits()
            collector.verdict = None

    def look(self) -> bool:
        """See `Task.look`. Each ack appends a latency and each fail is counted, so the sum grows with every verdict."""
        before, self._verdicts_seen = self._verdicts_seen, len(self._waits) + self.counters.failed
        return before != self._verdicts_seen

    def read_counters(self) -> TaskCounters:
        """Return the counters, up to date."""
        self._note_waits()
        return super().read_counters()

    def _note_waits(self) -> None:
        self.counters.latency.add_all(self._waits)
        self._waits.clear()

    def _gave_up(self, reason: str) -> None:
        self.counters.dead_letters += 1
        self.report_error(f"dead letter: {reason}")

    def _nothing_of(self, message_id: Hashable) -> None:
        """Ack a row that became no tuple: at once, or in a transaction with its batch, as a tree without edges."""
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
        """Ack a message at once, inside its emit, because acking is off (B8, E29)."""
        self.counters.acked += 1
        self.spout.ack(message_id)
        for hook in self.hooks:
            hook.spout_ack(SpoutAckInfo(message_id_of(message_id), self.id, 0.0))

    def activate_or_stop(self, active: bool) -> None:
        """Call `set_active`; an error in it stops the topology."""
        try:
            self.set_active(active)
        except ComponentError as error:
            self.stop_topology(error)


def _ask_for_ever(task: ReferenceType[SpoutTask]) -> None:
    """Run one turn each time the greenlet is switched to. This is the main function of the greenlet of a spout's task."""
    hub = getcurrent().parent
    assert hub is not None
    while (spout := task()) is not None:
        answer = spout._ask()
        del spout
        hub.switch(answer)
        del answer
