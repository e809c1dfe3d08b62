"""Runs all workers of a topology in one process, batch by batch.

The workers, the frames and the supersteps are those of the Spark engine. A loop takes the place of Spark's exchange.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from stormspark.backpressure import Limits
from stormspark.checkpoint.dead_letters import Letter
from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.driver.batch_driver import BatchDriver, not_committed
from stormspark.driver.failed_rows import FailedRows
from stormspark.driver.letter_lines import LettersOfBatches
from stormspark.driver.transaction import Transaction, TransactionState
from stormspark.errors import CheckpointError, ComponentError
from stormspark.local.clock import SimulatedClock
from stormspark.pickling import use_unfinished_imports
from stormspark.plan.physical import PhysicalPlan
from stormspark.wire.frames import Frame
from stormspark.worker.core import Worker
from stormspark.worker.host.task_logs import TaskLogs
from stormspark.worker.round_orders import NO_EARLIER_ATTEMPTS, PLAIN_ORDERS, RoundOrders
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.step import Step, WorkerReport, read_report

__all__ = ["BatchTakenBackError", "InProcessWorkers"]

_log = logging.getLogger(__name__)


class BatchTakenBackError(Exception):
    """Raised if the topology stops and its last batch is not committed, because a call has not returned in time, or because the
    topology is killed.
    """


class InProcessWorkers:
    """All workers of a topology, in this process. Each call of `run_batch` runs one batch.

    If an attempt at a batch is taken back, and the batch runs again, ``taken_back`` is called with the reason and the number of
    the batch. ``letters`` takes the dead letters; if it is None, they go to logs.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        clock: Callable[[], float],
        random: Random | None = None,
        storm_id: str | None = None,
        logs: TaskLogs | None = None,
        taken_back: Callable[[str, int], object] | None = None,
        letters: LettersOfBatches | None = None,
    ) -> None:
        use_unfinished_imports()
        self.plan = plan
        self.random = random or Random()
        self.workers = [
            Worker(
                plan,
                index,
                clock=clock,
                # Simulated time begins in 1970, as in Storm's own test kit.
                epoch=0.0 if isinstance(clock, SimulatedClock) else None,
                random=Random(self.random.getrandbits(64)),
                storm_id=storm_id,
                logs=logs,
                # On a simulated clock everything happens in one thread, and in the same order each time.
                side_by_side=not isinstance(clock, SimulatedClock),
                shares_thread=plan.workers > 1,
                reports_letters=letters is not None,
            )
            for index in range(plan.workers)
        ]
        self._taken_back = taken_back
        #: `_given_up`: the rows of sources that the running attempt at a batch has given up.
        self._letters = letters
        self._given_up: list[Letter] = []
        self._unwritten: list[Letter] = []
        #: Whether no batch runs again any more, because the topology is killed.
        self._is_cut_off = False
        self._batch = 0
        self._attempt = 0
        self._committed, self._failures = -1, 0
        #: The facts for the next attempt at the running batch: the rows that were given up, and the announcements.
        self._earlier = NO_EARLIER_ATTEMPTS
        self._plain_orders = PLAIN_ORDERS
        #: Whether the last round may not have completed its trees; see `complete`.
        self._is_incomplete = False
        #: If batches are transactions, the source rows of the next or the running batch, as (task, partition, rows). The spouts
        #: get them again if the batch has to run again.
        self._rows: list[tuple[int, int, Sequence[tuple[Any, ...]]]] = []
        self._failed_rows = FailedRows(plan.settings.poison_attempts)
        self._driver = BatchDriver(plan, self, self._failed_rows)

    def open(self, active: bool = True) -> None:
        """Prepare every bolt, and open the spouts if ``active``. Raises `ComponentError` if one of them raises."""
        for worker in self.workers:
            worker.open(active)

    def run_batch(
        self,
        limits: Limits | None = None,
        target: float | None = None,
        staying_local: frozenset[str] = frozenset(),
        *,
        input_ended: bool = False,
        flushes: int = 0,
        sampled: Mapping[str, float] | None = None,
    ) -> Sequence[WorkerReport]:
        """Run one batch. Return the reports that the workers make at its end. ``input_ended``, ``flushes`` and ``sampled`` are
        orders.

        Spouts may emit up to ``limits``, and the batch should take ``target`` seconds. Tuples of the spouts ``staying_local``
        stay in their workers, where the grouping allows it. If the batch is a transaction and fails, it runs again until it is
        committed. Raises `ComponentError` if the batch has failed ``stormspark.max.attempts`` times. Raises
        `BatchTakenBackError` if the topology stops meanwhile and a call does not return in time (`limit_waiting`), or if the
        topology is killed (`cut_off`).
        """
        self._plain_orders = RoundOrders(
            limits=limits,
            target_secs=target,
            committed=self._committed,
            staying_local=staying_local,
            input_ended=input_ended,
            flushes=flushes,
            sampled=sampled or {},
        )
        if not self.plan.exactly_once:
            reports: Sequence[WorkerReport] = self.run_round(self._plain_orders)
            self._write_letters()
        else:
            while not (reports := self._transact()):
                pass
        self._batch += 1
        return reports

    def complete(self) -> Sequence[WorkerReport]:
        """If the last batch may not have completed its trees, run one more, in which no spout is called.

        There are two reasons for that: spouts emitted after superstep 0, or calls of bolts go on, or have done something in the
        last batch. The additional batch completes such trees, so that none of them is open when the topology ends. Return its
        reports; none if there was nothing to complete.
        """
        if not self._is_incomplete or self.plan.exactly_once:
            return ()
        reports = self.run_round(replace(self._plain_orders, asks_spouts=False, flushes=0))
        self._write_letters()
        self._batch += 1
        return reports

    def _transact(self) -> Sequence[WorkerReport]:
        """Make one attempt at a batch. Return no reports if the batch has to run again."""
        self._given_up.clear()
        reports = self._driver.attempt(self._batch, self._earlier.of(self._batch))
        transaction = self._driver.transaction
        assert transaction is not None
        if transaction.aborts is None:
            return reports
        if self._is_cut_off or any(worker.gave_up_batch for worker in self.workers):
            raise BatchTakenBackError(not_committed(self.plan.topology, self._batch, transaction.aborts))
        self._failed_rows.add(self._batch, transaction.failed_rows)
        self._earlier = replace(
            self._earlier.of(self._batch),
            batch=self._batch,
            given_up=self._failed_rows.given_up(self._batch),
        )
        self._failures += 1
        if self._failures >= self.plan.settings.max_attempts:
            msg = f"batch {self._batch} failed {self._failures} times (stormspark.max.attempts): {transaction.aborts}"
            raise ComponentError(msg)
        self._attempt += 1
        if self._taken_back is not None:
            self._taken_back(f"batch {self._batch}: {transaction.aborts}", self._batch)
        for worker in self.workers:
            worker.roll_back(self._batch, self._committed, transaction.aborts)
        for task, partition, rows in self._rows:
            self._spout(task).add_rows(self._batch, partition, rows)
        return []

    @property
    def last_commit(self) -> tuple[int, int] | None:
        """The number and the rounds of the last batch, if it was a transaction and is committed; otherwise None."""
        transaction = self._driver.transaction
        if transaction is None or transaction.state is not TransactionState.COMMITTED:
            return None
        return self._committed, transaction.rounds

    # -- for the batch driver --------------------------------------------------------------------------------

    def plain_orders(self) -> RoundOrders:
        """Return the orders that hold for each round of the running batch."""
        return self._plain_orders

    def announce(self, batch: int, announcement: Mapping[str, bytes]) -> None:
        """Store the tasks' announcement for the batch. The next attempt at the batch has to make the same announcement."""
        self._earlier = replace(self._earlier.of(batch), batch=batch, announced=announcement)

    def round_ended(self, transaction: Transaction) -> None:
        """Do nothing: a batch of the local engine may have any number of rounds."""

    def commit(self, batch: int, files: Sequence[FileDescription | ChangedRows | None]) -> None:
        """Make the batch the last committed one. The workers hear of it with the orders of the next batch."""
        self._write_letters()
        self._committed, self._failures = batch, 0
        self._earlier = NO_EARLIER_ATTEMPTS
        self._rows.clear()

    def _write_letters(self) -> None:
        if self._letters is None or not (self._given_up or self._unwritten):
            return
        self._unwritten += self._given_up
        self._given_up.clear()
        try:
            self._letters.write(self._batch, self._unwritten, transactions=self.plan.exactly_once)
        except CheckpointError as error:  # the disk may be full only for a while
            _log.warning("%s; the next batch tries again", error)
        else:
            self._unwritten.clear()

    def run_round(self, orders: RoundOrders) -> list[WorkerReport]:
        """Run every superstep once, over all workers. Return the report of each worker."""
        first = (self.plan.last_superstep + 1) * orders.round
        inbound: list[list[Frame]] = [[] for _ in self.workers]
        for superstep in range(self.plan.last_superstep + 1):
            step = Step(self._batch, self._attempt, first + superstep, orders)
            replies = [worker.run(step, inbound[worker.index]) for worker in self.workers]
            inbound = [
                sorted(
                    (frame for reply in replies for frame in reply if frame.target == index),
                    key=lambda frame: (frame.sender, frame.sequence),
                )
                for index in range(len(self.workers))
            ]
        reports = [read_report(frame.payload) for frames in inbound for frame in frames]
        emitted_late = orders.asks_spouts and any(report.emitted_late for report in reports)
        for report in reports:
            self._given_up += report.letters
        self._is_incomplete = emitted_late or any(report.goes_on for report in reports)
        return reports

    def add_rows(self, task: int, partition: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Give rows of a source to a task of its spout. The next batch begins with them."""
        if self.plan.exactly_once:
            self._rows.append((task, partition, rows))
        self._spout(task).add_rows(self._batch, partition, rows)

    def _spout(self, task: int) -> SpoutTask:
        spout = self.workers[self.plan.tasks[task].worker].tasks[task]
        assert isinstance(spout, SpoutTask), spout.name
        return spout

    def set_active(self, active: bool) -> None:
        """Activate or deactivate all spouts."""
        for worker in self.workers:
            worker.set_active(active)

    def limit_waiting(self) -> None:
        """Let batches wait only some seconds for executors' calls, because the topology stops. Any thread may call this."""
        for worker in self.workers:
            worker.limit_waiting()

    def cut_off(self) -> None:
        """Wait for no call of an executor or a coroutine any longer, because the topology is killed. Any thread may call this."""
        self._is_cut_off = True
        for worker in self.workers:
            worker.cut_off()

    def abandon(self) -> None:
        """End every worker without ``close`` or ``cleanup``."""
        for worker in self.workers:
            worker.abandon()

    def hear_of_last_commit(self) -> list[WorkerReport]:
        """If batches are transactions, let the tasks hear of the last commit, and return the reports of that. Otherwise return
        none.
        """
        reports = [worker.hear_of_last_commit(self._committed) for worker in self.workers]
        return [read_report(report) for report in reports if report is not None]

    def close(self) -> list[WorkerReport]:
        """End every task gracefully. Tasks that have not heard of the last commit hear of it first.

        Return the reports of workers in which a last call has raised an error.
        """
        for worker in self.workers:
            worker.transaction.hear_of_commit(self._committed)
        reports = [worker.close() for worker in self.workers]
        return [read_report(report) for report in reports if report is not None]
