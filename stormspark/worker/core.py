"""The worker, which runs its tasks superstep by superstep.

In a superstep, the worker takes in the frames from other workers. In superstep 0 it also calls the spouts. In a later superstep
it calls only those spouts again that have waited for acks. The superstep ends when no task of the worker has work left, or at the
deadline. Tuples that still wait stay in their queues, in order, ahead of all later input. A superstep returns the frames for
other workers. The last superstep of a round returns the report to the driver instead. Tuples for other workers that still wait
after the last superstep leave in superstep 0 of the next round.

Both engines use the same class. Spark's engine runs it in a process beside a Spark executor, and the local engine runs it in
its own process. The class knows no Spark, no sockets and no processes. Its clock and its source of randomness are arguments.

The parts of a worker are objects of their own (`stormspark.worker.parts`). `Worker` decides in which order they act.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from random import Random
from threading import get_ident

from stormspark.acker import LedgerStatistics
from stormspark.api import SourceProgress
from stormspark.plan.physical import PhysicalPlan
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.host.task_logs import TaskLogs
from stormspark.worker.parts import make_parts
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.state.batch_state import StateAccess
from stormspark.worker.step import Step
from stormspark.worker.task import Task
from stormspark.worker.under_way import UnderWay

__all__ = ["Worker"]


class Worker:
    """One Storm worker. Call `open`, then `run` once for every superstep, then `close`, all on one thread.

    ``incarnation`` is the number of this incarnation of the worker. ``clock`` returns monotonic seconds, and ``epoch`` is the
    time in seconds since 1970 at which the clock stood at 0. ``logs`` sends the log and the prints of each task to a file of
    its own. ``logs`` is None in a process that belongs to the user. ``storm_id`` names this run of the topology (A14).
    ``state`` says where state is stored. If ``state`` is None, state is only in memory, and ends with the process. If
    ``side_by_side``, executors whose code may wait run on threads of their own (`stormspark.worker.executors`), and ``clock``
    has to be a real clock. ``shares_thread`` says that the topology's other workers run on the same thread. If
    ``reports_letters``, dead letters are in the reports, unless the user has named a folder for them; otherwise they go to logs.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        index: int,
        *,
        incarnation: int = 0,
        clock: Callable[[], float] = time.monotonic,
        epoch: float | None = None,
        random: Random | None = None,
        logs: TaskLogs | None = None,
        storm_id: str | None = None,
        state: StateAccess | None = None,
        side_by_side: bool = False,
        shares_thread: bool = False,
        reports_letters: bool = False,
    ) -> None:
        self.plan = plan
        self.index = index
        self.clock = clock
        parts = make_parts(
            plan,
            index,
            incarnation=incarnation,
            clock=clock,
            epoch=time.time() - clock() if epoch is None else epoch,
            random=random or Random(),
            logs=logs,
            storm_id=storm_id or f"{plan.topology}-1",
            state=state,
            side_by_side=side_by_side,
            shares_thread=shares_thread,
            reports_letters=reports_letters,
        )
        self.under_way = UnderWay(parts.call, parts.executors, parts.services)
        self.call, self.stories, self.ledger = parts.call, parts.stories, parts.ledger
        self.services, self.wiring, self.turns = parts.services, parts.wiring, parts.turns
        self.round_clock, self.transaction = parts.round_clock, parts.transaction
        self._executors, self._refusals, self.spare_time = parts.executors, parts.refusals, parts.spare_time
        self._waiting_trees, self._doors = parts.waiting_trees, parts.doors
        self._loads, self._arrivals, self._departures = parts.loads, parts.arrivals, parts.departures
        self._reporter = parts.reporter
        #: The parts, also those that are seldom used.
        self._parts = parts
        #: The batch, the attempt and the first superstep of the round that began last. Superstep 0 may come in several
        #: requests, and only the first of these requests begins the round.
        self._begun: tuple[int, ...] = (-1, -1, -1)
        self._first_round = False  # whether this round is the first round of an attempt at a batch

    @property
    def tasks(self) -> Mapping[int, Task]:
        """The tasks of this worker, by id."""
        return self.wiring.tasks

    # -- life ------------------------------------------------------------------------------------------------

    def open(self, active: bool = True) -> None:
        """Start the worker hooks, restore the state, and prepare the bolts.

        If ``active``, also open and activate the spouts. Otherwise spouts are opened when they are first activated (B2).

        Raises `ComponentError`.
        """
        try:
            self._open(active)
        except BaseException:
            self.abandon()  # a user's process goes on, so nothing of this worker may stay in it
            raise

    def _open(self, active: bool) -> None:
        call = self.call
        call.thread, call.opening = get_ident(), True
        call.enter_other("a worker hook")
        self.services.start(self.tasks.values())
        call.enter_other("the state table")
        self._parts.states.restore()
        for bolt in self.wiring.bolts:
            call.enter(bolt)
            bolt.start()
        self._executors.wait_for_starts(self._executors.bolts)
        self.services.wait_for_starts(self.wiring.bolts)
        self._parts.outside.bolts = [bolt for bolt in self.wiring.bolts if bolt.works_outside]
        if active:
            for spout in self.wiring.spouts:
                call.enter(spout)
                spout.start()
            self._executors.wait_for_starts(self._executors.spouts)
            self.services.wait_for_starts(self.wiring.spouts)
            self.set_active(True)
        call.enter(None)
        call.opening = False

    @contextmanager
    def one_task(self, task: int) -> Iterator[Task]:
        """Start the worker hooks and this task alone, for a replay, and stop them at the end. The state must be loaded already.

        Raises `ComponentError`.
        """
        self.call.thread = get_ident()
        self.services.start(self.tasks.values())
        one = self.tasks[task]
        self.call.opening = True
        one.start()
        self.services.wait_for_starts([one])
        self.call.opening = False
        try:
            yield one
        finally:
            one.stop()
            self.services.shut_down()

    def set_active(self, active: bool) -> None:
        """Activate or deactivate the spouts (B13)."""
        for spout in self.wiring.spouts:
            self.call.enter(spout)
            spout.activate_or_stop(active)
        self.call.enter(None)

    def hear_of_last_commit(self, committed: int) -> bytes | None:
        """Let the tasks hear of the last commit before `close`, and return a report; see `Reporter.after_last_commit`."""
        return self._reporter.after_last_commit(committed)

    def close(self) -> bytes | None:
        """End gracefully: deactivate and close spouts, clean up bolts, shut down worker hooks. See `Reporter.after_close`."""
        self.under_way.give_up_calls()
        tasks = [*self.wiring.spouts, *self.wiring.bolts]
        for task in tasks:
            task.begin_to_stop_on_loop()
        self._executors.finish()
        for task in tasks:
            if self._executors.is_cut_off:
                return None
            self.call.enter(task)
            task.stop()
        self.call.enter_other("a worker hook")
        self._executors.end()
        self.services.shut_down()
        self.call.enter(None)
        self.stories.close()
        return self._reporter.after_close()

    def limit_waiting(self) -> None:
        """Let batches wait only some seconds for calls of executors, because the topology stops. Any thread may call this."""
        self._executors.limit_waiting(works_off=not (self.plan.exactly_once or self.plan.sources))
        for task in self.tasks.values():
            task.is_ending = self._executors.works_off

    def cut_off(self) -> None:
        """Wait for no call of an executor or a coroutine any longer, because the topology is killed. Any thread may call this.

        Once a `close` that is under way has noticed that, it returns without further calls. `abandon` has to follow.
        """
        self._executors.cut_off()
        self.services.cut_off()

    @property
    def gave_up_batch(self) -> bool:
        """Whether a batch was taken back because the topology stopped and a call did not return in time."""
        return self._executors.gave_up_batch

    def abandon(self) -> None:
        """End without ``close`` or ``cleanup``, but stop all work outside of this process."""
        for task in self.tasks.values():
            self.call.enter(task)
            task.let_go()
        self.call.enter(None)
        self._executors.end()
        self.services.abandon()
        self.stories.close()

    def begin_attempt(self, reason: str, batch: int | None = None) -> None:
        """Begin another attempt at a batch, because a worker is gone or Spark failed. Tuples between workers are lost.

        Trees with edges outside of this worker fail with ``reason``. Tuples in the queues of this worker stay, and so do tuples
        that its bolts hold. The worker forgets the rows that sources brought for ``batch``, because they come again. If batches
        are transactions, nothing of the batch stays; see `roll_back`.
        """
        if self.plan.exactly_once:
            self.transaction.attempt_ended(reason)
            return
        self.ledger.abandon(reason)
        if batch is not None:
            for spout in self.wiring.spouts:
                spout.source.forget_batch(batch)

    def roll_back(self, batch: int, committed: int, reason: str) -> None:
        """Undo what ``batch`` has done in this worker, because the batch runs again. ``committed`` is the last committed
        batch.
        """
        self.transaction.roll_back(batch, committed, reason)

    def adopt(
        self,
        task: int,
        rows: Iterable[tuple[tuple[int, int, int] | None, bytes]],
        *,
        letters: int | None = None,
    ) -> None:
        """Emit rows of a source again; see `TakesRows.adopt_encoded`."""
        spout = self.tasks[task]
        assert isinstance(spout, SpoutTask), spout.name
        spout.adopt_encoded(rows, letters=letters)

    # -- a superstep -----------------------------------------------------------------------------------------

    def run(self, step: Step, frames: list[Frame]) -> list[Frame]:
        """Run one superstep, and return the frames for other workers. The last superstep returns one frame, with the report.

        ``frames`` are in the order of (sender, sequence).
        """
        now = self.clock()
        plan, turns, transaction, clock = self.plan, self.turns, self.transaction, self.round_clock
        self.call.thread = get_ident()
        position = plan.position(step.superstep)

        if self._executors.has_worked_off:
            for task in self.tasks.values():
                task.begins_no_call = task.is_ending

        # 1. A round may begin.
        clock.superstep_begins(now)
        self._parts.outside.begin_superstep(hands_out=position < plan.last_superstep)
        if position == 0 and step[:3] != self._begun:
            if plan.exactly_once:
                transaction.settle(step)
            self._begin_round(now, step)

        # 2. Trees time out, except those of tuples that merely wait.
        clock.running.advance(now)
        self._waiting_trees.spare()
        self.ledger.rotate(clock.running.seconds, self.stories.explain)
        # A round that ends the batch has no deadline, because a bolt must not hear of the end before it has executed all
        # tuples.
        turn_ends = now + clock.turn_seconds
        deadline = inf if step.orders.ending_round else turn_ends

        # 3. Frames of other workers.
        self._arrivals.refresh_loads(frames)
        self._doors.open(step, position, frames, first_round=self._first_round)
        for frame in frames:
            self._arrivals.take(frame, step.batch)
            turns.run_pass(deadline)  # now, while the frame's tuples are in the processor's caches

        # 4. Timers and spouts.
        if position == 0 and self.wiring.fatal is None and transaction.prepared is None:
            turns.fire_timers(now)
            until = deadline
            if turns.spouts_wait:
                until = min(deadline, self.clock() + clock.quantum.seconds - clock.left_to_fill)
            spouts = [one for one in self.wiring.spouts if step.orders.asks_spouts or one.must_go_on]
            began = self.clock()
            if plan.exactly_once:
                # Spouts with threads of their own may emit only now. Tuples that they emit at other times belong to later
                # batches.
                self._executors.let_emit(spouts, begin_turns=step.orders.asks_spouts)
            clock.quantum_used_up |= turns.ask_spouts(until, spouts)
            if plan.exactly_once:
                self._executors.let_emit((), begin_turns=False)
            clock.left_to_ask -= self.clock() - began
        elif position:
            self.spare_time.ask_again(deadline, asks_spouts=step.orders.asks_spouts)
        turns.takes_calls = not plan.exactly_once

        # 5. Execute all tuples that are left, until the deadline at the latest.
        if step.orders.ending_round and transaction.prepared is None:
            turns.finish_outside()
            transaction.end_batches(step.orders.ending_round, position)
        bounded = not turns.spouts_wait or plan.exactly_once
        turns.work(deadline, turn_ends if bounded else min(deadline, now + clock.share_of_superstep))
        if step.orders.ending_round:
            turns.finish_outside()
        self._refusals.flush()
        self.call.enter(None)
        self.stories.end_superstep()
        clock.worked += self.clock() - now

        # 6. Departures.
        if position == plan.last_superstep:
            clock.running.end_batch(self.clock())
            report = pickle.dumps(self._reporter.report(step), 5)
            frames = [Frame(self.index, FrameKind.REPORT, self.index, 0, 1, report)]
        else:
            if plan.exactly_once:
                transaction.warn_if_unsettled(step, position)
            frames = self._hand_out()
        clock.superstep_ends(self.clock())
        return frames

    def _begin_round(self, now: float, step: Step) -> None:
        spouts, states, orders = self.wiring.spouts, self._parts.states, step.orders
        # A spout that emits nothing keeps the low limit that it began with, so that limit does not count.
        limited = any(spout.allowance.used and spout.id in (orders.limits or ()) for spout in spouts)
        self.round_clock.round_begins(
            now,
            orders.target_secs,
            was_limited=any(spout.allowance.limited for spout in spouts),
            unlimited=orders.asks_spouts and not limited,
        )
        self._parts.local_choices.begin_round(orders.staying_local)
        self._parts.event_log.follow(orders.sampled)
        before, self._begun = self._begun, step[:3]
        self._first_round = before[:2] != step[:2]
        if self._first_round:
            if states.recording is not None:
                states.recording.begin(step.batch)
            if step.batch != before[0]:
                for spout in spouts:
                    spout.batch_begins(step.batch)
            self.transaction.begin_batch(step)
        self.transaction.begin_round()
        self.turns.timers_run = not orders.ending_round
        self._reporter.acker_log.begin_batch(step.batch)
        for spout in spouts:
            spout.begin_round(now, None if orders.limits is None else orders.limits.get(spout.id))
        self._parts.flushing.begin_round(step)

    def _hand_out(self) -> list[Frame]:
        """Return the frames for other workers. Loads come last, so that the receiver gets tuples to execute first."""
        self._departures.complete()
        for listener in self._loads.listeners:
            self._departures.add(listener, FrameKind.LOADS, 0, self._loads.payload(self.wiring.waiting_for))
        return self._departures.hand_out()

    # -- for the process that hosts it, for people and for tests ---------------------------------------------

    @property
    def was_idle(self) -> bool:
        """Whether nothing happened in this worker in the last round, and nothing waits."""
        return self._reporter.was_idle

    @property
    def backlog(self) -> int:
        """How many tuples, rows, calls and acks wait in this worker: in inboxes, in lanes, in frames for the next round."""
        return self._reporter.backlog

    def source_progress(self, batch: int) -> dict[str, SourceProgress]:
        """Return how far the tasks of source spouts have come; see `Reporter.source_progress`."""
        return self._reporter.source_progress(batch)

    def statistics(self) -> LedgerStatistics:
        """Return the sizes of this worker's ledger."""
        return self.ledger.statistics()

    def validate(self) -> None:
        """Check the invariants of the ledger, and the spouts' numbers of open trees, between two supersteps. Only for tests."""
        self.ledger.validate()
        for task in self.wiring.spouts:
            mine = sum(tree.account is task.account for tree in self.ledger.open_trees())
            assert mine == task.account.pending, f"{task.name}: {mine} trees, not {task.account.pending}"
