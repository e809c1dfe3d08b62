"""The reporter of a worker, which makes the report to the driver at the end of a round."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from random import Random

from stormspark.acker import Ledger
from stormspark.acker.records import AckerTime
from stormspark.api import SourceProgress
from stormspark.backpressure import TaskLoad
from stormspark.checkpoint.dead_letters import Letter
from stormspark.extras import pyarrow as pa
from stormspark.metrics import TaskCounters
from stormspark.worker.departures import Departures
from stormspark.worker.executors.executors import Executors
from stormspark.worker.outside import OutsideWork
from stormspark.worker.random_ids import record_ids
from stormspark.worker.round_clock import RoundClock
from stormspark.worker.services import TaskServices
from stormspark.worker.sources.acker_log import AckerLog, change_table
from stormspark.worker.step import Step, WorkerReport, merge_progress
from stormspark.worker.transactions import WorkerTransaction
from stormspark.worker.turns import Turns
from stormspark.worker.wiring import Wiring

__all__ = ["Reporter"]


class Reporter:
    """The reporter of one worker in one incarnation. ``transaction`` is None unless batches are transactions."""

    def __init__(
        self,
        worker: int,
        incarnation: int,
        services: TaskServices,
        wiring: Wiring,
        turns: Turns,
        departures: Departures,
        outside: OutsideWork,
        executors: Executors,
        ledger: Ledger,
        round_clock: RoundClock,
        transaction: WorkerTransaction | None,
        random: Random,
    ) -> None:
        self._worker, self._incarnation, self._random = worker, incarnation, random
        self._services = services
        self._wiring, self._tasks, self._spouts = wiring, wiring.tasks, wiring.spouts
        self._departures, self._executors = departures, executors
        self._turns, self._outside, self._ledger, self._round = turns, outside, ledger, round_clock
        self._transaction = transaction
        #: The changes of open rows that the durable acker has to learn.
        self.acker_log = AckerLog()
        self._work_done = -1
        #: What had ended, before this round, in bolts on threads and outside of the worker; see `TaskCounters.ended`.
        self._ended_in_calls = 0
        #: Whether the topology was told to stop before the last report.
        self._told_to_stop = False
        #: Whether nothing happened in this worker in the last round, and nothing waits.
        self.was_idle = False

    def report(self, step: Step) -> WorkerReport:
        """Make the report at the end of a round. If the batch is a transaction, and no worker has anything left of it, first
        prepare the batch.
        """
        orders = step.orders
        loads: dict[int, TaskLoad] = {}
        for spout in self._spouts:
            loads[spout.id] = held = spout.load()
            spout.counters.pending, spout.counters.queued = held.open_trees, spout.rows_waiting
        for bolt in self._wiring.bolts:
            loads[bolt.id] = waits = bolt.load()
            bolt.counters.queued = waits.queued - waits.in_calls
            bolt.counters.queued_bytes = waits.queued_bytes - waits.in_calls_bytes
        transaction = None if self._transaction is None else self._transaction.report(step)
        if orders.acker_time is not None:
            self.acker_log.add(self._changes(orders.acker_time), step.attempt, orders.acker_time.tried)
        report = self._of_tasks(step.batch)
        before, self._work_done = self._work_done, sum(map(TaskCounters.work_done, report.counters.values()))
        self.was_idle = not report.backlog and self._work_done == before
        no_tree_open = next(self._ledger.open_trees(), None) is None
        report = replace(
            report,
            backlog=report.backlog + self._executors.spouts_to_come + self._spouts_down,
            idle=self.was_idle,
            at_rest=self.was_idle and not self._outside.bolts and not self._executors.tasks and no_tree_open,
            loads=loads,
            worked=self._round.worked,
            filled=self._round.filled,
            emitted_late=self._round.emitted_late,
            goes_on=self._goes_on(report.counters),
            sources=self.source_progress(step.batch),
            acker=self.acker_log.unconfirmed if orders.acker_time is not None else (),
            transaction=transaction,
            blocked_loop=self._services.longest_blocks(),
            letters=self._letters(step, whole=transaction is None or transaction.prepared),
            spouts_done=self._spouts_done(),
            held=self._held() if orders.input_ended else {},
        )
        self._round.filled = 0.0
        return report

    def _letters(self, step: Step, *, whole: bool) -> tuple[Letter, ...]:
        """Return the rows that were given up; only a part of many, unless ``whole``."""
        logs = [spout.source.letters for spout in self._spouts]
        return tuple(
            letter
            for log in logs
            if log is not None
            for letter in log.take(step.batch, step.attempt, whole=whole)
        )

    def _spouts_done(self) -> dict[str, bool | None]:
        """See `WorkerReport.spouts_done`."""
        said: dict[str, set[bool | None]] = {}
        for spout in self._spouts:
            said.setdefault(spout.component.id, set()).add(spout.says_that_it_is_done())
        return {
            name: False if False in all_of else None if None in all_of else True
            for name, all_of in said.items()
        }

    def _held(self) -> dict[str, int]:
        held: Counter[str] = Counter()
        for bolt in self._wiring.bolts:
            held[bolt.component.id] += len(bolt.held())
        return dict(+held)

    def _goes_on(self, counters: Mapping[int, TaskCounters]) -> bool:
        """See `WorkerReport.goes_on`."""
        bolts = (*self._executors.bolts, *self._outside.bolts)
        before = self._ended_in_calls
        self._ended_in_calls = sum(counters[bolt.id].ended() for bolt in bolts)
        if self._ended_in_calls != before and self._executors.works_off:
            self._executors.wait_for_last_calls()
        if self._executors.is_late():
            return False
        told_before, self._told_to_stop = self._told_to_stop, self._executors.is_told_to_stop
        if not told_before and any(spout.emits_at_any_time for spout in self._spouts):
            return True  # also between this report and the stop: a whole round has to follow it
        if (
            self._ended_in_calls != before
            or self._executors.at_work
            or self._outside.calls_under_way
            or self._executors.spouts_go_on
        ):
            return True
        # Later only calls under way get more time. Tuples in a loop on the worker's thread would use it up, too.
        return not self._executors.has_worked_off and bool(
            self._executors.left
            or any(bolt.ready for bolt in self._wiring.bolts if bolt.fatal is None)
            or self._departures.waiting
            or any(spout.has_begun_to_emit for spout in self._spouts)
        )

    def after_last_commit(self, committed: int) -> bytes | None:
        """Let the tasks hear that batch ``committed`` was committed last, because the topology stops. Return a pickled report
        that has what they hear.

        Return None if batches are not transactions.
        """
        if self._transaction is None:
            return None
        self._transaction.hear_of_commit(committed)
        for spout in self._spouts:
            spout.counters.pending = spout.load().open_trees
        return pickle.dumps(self._of_tasks(committed), 5)

    def after_close(self) -> bytes | None:
        """Return a pickled report if a last call of a task, such as ``cleanup``, has raised an error. Otherwise return None."""
        raised = any(task.counters.unwritten for task in self._tasks.values())
        return pickle.dumps(self._of_tasks(-1), 5) if raised else None

    def _of_tasks(self, batch: int) -> WorkerReport:
        """Return a report of what the tasks have counted, said and left."""
        tasks = self._tasks.values()
        return WorkerReport(
            worker=self._worker,
            incarnation=self._incarnation,
            batch=batch,
            counters={task.id: task.read_counters() for task in tasks},
            errors=tuple(error for task in tasks for error in task.reports.take_errors()),
            failures=tuple(failure for task in tasks for failure in task.reports.take_failures()),
            fatal=self._wiring.fatal,
            backlog=self.backlog,
            data_points=tuple(point for task in tasks for point in task.metrics.take()),
        )

    @property
    def backlog(self) -> int:
        """How many tuples, rows, calls and acks wait in this worker: in inboxes, in lanes, in frames for the next round."""
        rows = sum(spout.rows_waiting + spout.rows_to_come for spout in self._spouts)
        calls = sum(len(task.mailbox) for task in self._tasks.values())
        waiting = self._turns.waiting + self._executors.noted_by_spouts
        lives = sum(spout.calls_of_life for spout in self._spouts)
        return waiting + rows + calls + lives + self._ledger.statistics().outgoing

    @property
    def _spouts_down(self) -> int:
        """How many spouts will be asked for tuples once they have started again. While there is one, the topology is not idle."""
        return sum(spout.is_down and spout.life.is_active for spout in self._spouts)

    def source_progress(self, batch: int) -> dict[str, SourceProgress]:
        """Return how far the tasks of source spouts have come.

        Low marks (see `SourceProgress`) are looked up only in batches whose number is a multiple of
        `SourceSpout.low_marks_every`.
        """
        return merge_progress(
            {spout.component.id: progress}
            for spout in self._spouts
            if (progress := spout.progress(batch)) is not None
        )

    def _changes(self, time: AckerTime) -> Iterator[pa.Table]:
        for spout in self._spouts:
            if changes := spout.source.acker_changes(time, partial(record_ids, self._random)):
                yield change_table(spout.component.id, spout.id, changes)
