"""One run of the data query: from its start at the checkpoint to its end at the gate.

It meets two threads: the query's own, which brings every micro-batch to `QueryRun.batch`, and the supervisor's, which
calls all the rest. The query's thread only notes what happened (`error`, `failure`) and goes to the gate; it
never decides, and it never lets an exception of a failed batch out to Spark.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from stormspark.checkpoint.barriers import reached
from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.driver.batch_driver import BatchDriver
from stormspark.driver.failed_rows import FailedRows
from stormspark.driver.tally import Tally
from stormspark.driver.throttle import Throttle
from stormspark.driver.transaction import Transaction
from stormspark.errors import CheckpointError, FencedError, StormsparkError
from stormspark.metrics import Quiet
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.durable_acker import DurableAcker
from stormspark.spark.feedback import Feedback
from stormspark.spark.forwarder import Attempt, orders_property
from stormspark.spark.gate import Gate
from stormspark.spark.pacing import Pacing
from stormspark.spark.phases import Phases
from stormspark.spark.prolonging import Prolonging
from stormspark.spark.query import data_query, round_query
from stormspark.spark.retrying import is_outside, is_outside_error
from stormspark.spark.sources import explain_failure, open_sources
from stormspark.spark.trigger_limits import NewLimit, TriggerLimits
from stormspark.worker.round_orders import RoundOrders
from stormspark.worker.step import WorkerReport, fatal_error, read_report

__all__ = ["QueryRun"]

_log = logging.getLogger(__name__)

#: A batch that is not worked off is left uncommitted so many rounds after the end was wanted, and told of after so many.
_ROUNDS_TO_THE_END = 3
_ROUNDS_UNTIL_WARNED = 20
#: The longest text of an error of Spark's that is passed on.
_ERROR_TEXT = 4000
#: So many classes, causes' and their bases', are looked at to tell what failed.
_CAUSES = 60


@dataclass
class QueryRun:
    """One run of the data query: one attempt, many batches. `batch` is called on the query's thread, the rest
    by the supervisor.
    """

    session: SparkSession
    plan: PhysicalPlan
    attempt: Attempt
    tally: Tally
    throttle: Throttle
    limits: TriggerLimits
    stop_wanted: threading.Event
    wake: threading.Event
    #: Somebody has something to do: a pause between two batches ends.
    stirred: threading.Event
    acker: DurableAcker | None = None
    feedback: Feedback | None = None
    #: Read what is there now, and end when it is worked off.
    available_now: bool = False
    #: Where batches are transactions: what makes them happen.
    commits: BatchCommits | None = None
    #: Of the batch that runs: what failed in earlier attempts at it.
    failed_rows: FailedRows = field(default_factory=lambda: FailedRows(0))

    def __post_init__(self) -> None:
        self.gate = Gate(self.session)
        #: The batch that runs, or ran last.
        self.batch_number = -1
        #: What Spark has read for the batch that runs; None from its first round on.
        self._frames: DataFrame | None = None
        #: Whether a batch of this run is committed, as far as is known: another one has been asked for after it.
        self.succeeded = False
        #: Why the topology has to stop.
        self.error: BaseException | None = None
        #: Why the attempt failed, in Spark's words; and whether it was not user code that failed, but storage, a broker, an
        #: executor: then it is worth waiting.
        self.failure: str | None = None
        self.failed_outside = False
        self._running = False
        #: Workers have gone on beside the last round, so that it has not completed all that was emitted: another one has to,
        #: before the end.
        self._went_on = False
        self._last_ended: float | None = None
        self._quiet = Quiet()
        self.query: StreamingQuery | None = None
        #: With which the query is to be started again, when the batch that runs is committed: no failure.
        self.new_limits: list[NewLimit] = []
        self._prolonging = Prolonging(self.plan, self.throttle, ())
        self._pacing = Pacing.of(self.plan, available_now=self.available_now)
        self._phases = Phases()
        self._one_more: DataFrame | None = None
        self._driver = BatchDriver(self.plan, self, self.failed_rows)
        #: Tuples that bolts keep over the end of the batch that was committed last.
        self.held = 0

    # -- the query's thread ----------------------------------------------------------------------------------

    def batch(self, frames: DataFrame, number: int) -> None:
        """Run one batch, a round or several: Spark computes the supersteps of one when the last one's replies are
        collected.
        """
        # First of all: then either we see that the end is wanted, or `is_between_batches` sees us.
        self._running = True
        self._phases.begin(time.monotonic())
        self.stirred.clear()
        self.succeeded |= self.batch_number >= 0
        if (self.stop_wanted.is_set() and not self._went_on) or self.new_limits:
            self._to_the_gate()  # the batch before is committed, this one has not begun: the boundary
        self.batch_number, self._frames = number, frames
        reached("driver.batch_begins")
        if self.commits is None:
            reports = self._work_off()
        elif number <= self.commits.last:
            # Committed, and then the driver died before Spark knew: all of it has happened.
            _log.info("batch %d of %s is committed already", number, self.plan.topology)
            self._running = False
            return
        else:
            reports = self._transact(self.commits)
        if self.acker is not None:
            try:
                self.acker.write(reports, self.attempt.attempt)
            except FencedError as error:
                self.error = error
                self._to_the_gate()
            except Exception as error:
                self.failure = f"the durable acker's journal could not be written: {type(error).__name__}: {_text(error)}"
                self.failed_outside = is_outside_error(error)
                self._to_the_gate()
        if self.feedback is not None:
            self.feedback.write(reports, self.throttle.limit_of)
        if self.available_now and self._is_worked_off():
            self.stop_wanted.set()
        self.new_limits = self.limits.observe(
            self._prolonging.bites(), first=number == 0, now=time.monotonic()
        )
        self._running = False
        if self.stop_wanted.is_set() or self.new_limits:
            self.wake.set()
        reached("driver.batch_ends")
        self._end_batch(
            idle=all(report.idle for report in reports), at_rest=all(report.at_rest for report in reports)
        )

    def _end_batch(self, *, idle: bool, at_rest: bool) -> None:
        """Note where its time went; where nothing happens, wait a little before the next one."""
        now = time.monotonic()
        self.tally.add_phases(self._phases.end(now, self.query))
        pause = self._pacing.pause_after(now, idle=idle, at_rest=at_rest)
        if pause and not (self.stop_wanted.is_set() or self.new_limits):
            self.stirred.wait(pause)
            paused = time.monotonic() - now
            self.tally.add_phases(self._phases.paused(paused))
            if self._last_ended is not None:
                self._last_ended += paused

    def _work_off(self) -> Sequence[WorkerReport]:
        """The rounds of a batch; returns the last one's reports."""
        prolonging = self._prolonging
        # What the durable acker hears at the end of a round is a record of every row that waits. Where more rounds come most
        # of these are closed again, so it hears of them once, at the end.
        told = not (prolonging.expected and self.acker is not None)
        prolonging.begin()
        reports = self._plain_round(0, tell_acker=told)
        number = 0
        while prolonging.wanted and not self._ends_here():
            number += 1
            told = False
            reports = self._plain_round(number, tell_acker=False)
        if self.acker is not None and not told:
            reports = self._plain_round(number + 1, tell_acker=True)
        elif self.stop_wanted.is_set() and self._went_on:
            # Never beside an acker: that one is there for rows of sources, and with those workers don't go on.
            reports = self._plain_round(number + 1, tell_acker=False)
        return reports

    def _plain_round(self, number: int, *, tell_acker: bool) -> Sequence[WorkerReport]:
        """A round of a batch that is no transaction."""
        acker_time = self.acker.time_to_tell() if self.acker is not None and tell_acker else None
        # What workers have begun beside the last round is completed, and nothing new is begun, when the topology ends.
        completes = self._went_on and self.stop_wanted.is_set()
        return self.run_round(
            replace(self.plain_orders(), round=number, acker_time=acker_time, asks_spouts=not completes)
        )

    def _transact(self, commits: BatchCommits) -> Sequence[WorkerReport]:
        """An attempt at a batch that is a transaction; to the gate where it has to run again."""
        self._prolonging.begin()
        reports = self._driver.attempt(self.batch_number, self.attempt.earlier.of(self.batch_number))
        transaction = self.transaction
        assert transaction is not None
        if transaction.aborts is not None:
            self.failure, self.failed_outside = transaction.aborts, transaction.aborted_outside
            self._to_the_gate()
        self.held = transaction.held
        commits.tidy()
        return reports

    @contextlib.contextmanager
    def _on_the_table(self) -> Iterator[None]:
        """To the gate where the state table can't be written to; the topology ends where it is another driver's."""
        try:
            yield
        except FencedError as error:
            self.error = error
            self._to_the_gate()
        except CheckpointError as error:
            self.failure, self.failed_outside = str(error), True
            self._to_the_gate()

    def _ends_here(self) -> bool:
        """Whether a batch that is not worked off ends all the same, because the topology does."""
        if not self.stop_wanted.is_set():
            return False
        if self.acker is None and self._prolonging.stalled:
            # It would never be, and nobody keeps its rows: it stays uncommitted, and is read again.
            self._to_the_gate()
        return self.acker is not None

    def _frames_of_round(self) -> DataFrame:
        if self._one_more is None:
            self._one_more = round_query(self.session, self.plan, self.attempt)
        return self._one_more.select("*")

    # -- for the batch driver, on the query's thread ---------------------------------------------------------

    @property
    def transaction(self) -> Transaction | None:
        """The attempt at the batch that runs, or ran last, where batches are transactions."""
        return self._driver.transaction

    def plain_orders(self) -> RoundOrders:
        """The orders for a round that begins now, as far as it is a round like any other."""
        return RoundOrders(
            limits=self.throttle.limits,
            target_secs=self.throttle.round_target,
            committed=-1 if self.commits is None else self.commits.last,
        )

    def announce(self, batch: int, announcement: Mapping[str, bytes]) -> None:
        """Keep it in the state table."""
        assert self.commits is not None
        with self._on_the_table():
            self.commits.announce(batch, announcement)

    def round_ended(self, transaction: Transaction) -> None:
        """Leave a batch uncommitted that holds up the end; warn of one that takes many rounds."""
        if self.stop_wanted.is_set() and not transaction.prepared and transaction.rounds > _ROUNDS_TO_THE_END:
            self._to_the_gate()  # it stays uncommitted, and runs again
        if transaction.rounds % _ROUNDS_UNTIL_WARNED == 0:
            _log.warning(
                "batch %d of %s can't be committed after %d rounds, since %d tuples still wait: a loop that does not end?",
                self.batch_number,
                self.plan.topology,
                transaction.rounds,
                transaction.left,
            )

    def commit(self, batch: int, files: Sequence[FileDescription | ChangedRows | None]) -> None:
        """Commit it to the state table."""
        assert self.commits is not None
        with self._on_the_table():
            self.commits.commit(batch, files)

    def run_round(self, orders: RoundOrders) -> Sequence[WorkerReport]:
        """Run one round; goes to the gate where that fails."""
        # Spark has read the rows of the batch for its first round; the others have ticks alone.
        frames = self._frames_of_round() if self._frames is None else self._frames
        self._frames = None  # or Spark could not clean up after the batch before the next one begins
        began = time.monotonic()
        # On the query's own thread: so the tasks of this round have them.
        self.session.sparkContext.setLocalProperty(*orders_property(orders))
        try:
            reports: list[WorkerReport] = [read_report(row.payload) for row in frames.collect()]
        except Exception as error:
            # Not passed on: Spark would log it in full, and chew on its text with a regular expression until
            # the stack ends.
            self.failure = _text(error)
            self.failed_outside = is_outside(str(error))
            self._to_the_gate()
        if sorted(report.worker for report in reports) != list(range(self.plan.workers)):
            self.error = StormsparkError(
                f"batch {self.batch_number} ended without a report of each of {self.plan.workers} workers"
            )
            self._to_the_gate()
        first = self._last_ended is None
        seconds = self._seconds_since(began)
        self._phases.add_round(
            time.monotonic() - began,
            max((report.worked for report in reports), default=0.0),
            max((report.filled for report in reports), default=0.0),
        )
        self.tally.add_batch(reports, seconds)
        self.throttle.observe(reports, seconds, first=first)
        self._went_on = orders.asks_spouts and any(report.filled for report in reports)
        self.error = fatal_error(reports)
        if self.error is not None:
            self._to_the_gate()
        self._prolonging.observe(reports)
        return reports

    def _is_worked_off(self) -> bool:
        """No row came, nothing is open or waits, and that for some batches: a source that has more hands some out in each."""
        if self._prolonging.came.total():
            self._quiet = Quiet()
        return self._quiet.reached(self.tally.statistics())

    def _to_the_gate(self) -> None:
        self.gate.reached.set()
        self.wake.set()
        self.gate.wait()

    def _seconds_since(self, began: float) -> float:
        """A round's time: from end to end where batches follow each other at once, so that Spark's share is
        in it.
        """
        now = time.monotonic()
        last, self._last_ended = self._last_ended, now
        return now - (began if last is None or self.plan.settings.trigger_interval_ms else last)

    # -- the supervisor --------------------------------------------------------------------------------------

    def start(self, checkpoint: str) -> None:
        """Start the query from its checkpoint."""
        if self.feedback is not None:
            self.feedback.begin((source.id for source in self.plan.sources), self.throttle.limit_of)
        sources = open_sources(self.plan, self.session, self.limits)
        self.limits.begin()
        native = [source.spout for source in sources if source.native]
        self._prolonging = Prolonging(self.plan, self.throttle, native)
        frames = data_query(self.session, self.plan, self.attempt, sources, available_now=self.available_now)
        writer = frames.writeStream.foreachBatch(self.batch).option("checkpointLocation", checkpoint)
        if self.available_now:
            writer = writer.trigger(availableNow=True)
        else:
            interval = int(self.plan.settings.trigger_interval_ms)
            writer = writer.trigger(processingTime=f"{interval} milliseconds")
        self.query = writer.start()

    def is_between_batches(self) -> bool:
        """Whether the last batch is committed, nothing of it is left to complete, and no other one has begun, or none ever has.

        One that begins just now goes to the gate, so nothing can happen between this answer and the stop.
        """
        if self._running or self._went_on:
            return False
        assert self.query is not None
        if self.batch_number < 0:
            return not self.query.status["isTriggerActive"]
        progress = self.query.lastProgress
        return progress is not None and progress["batchId"] >= self.batch_number

    def is_active(self) -> bool:
        """Whether the query still runs."""
        return self.query is not None and bool(self.query.isActive)

    def cancel(self) -> None:
        """Have the jobs of the batch that runs fail; the query's thread then comes to the gate."""
        if self.query is not None:
            self.session.sparkContext.cancelJobGroup(str(self.query.runId))

    def stop(self) -> None:
        """Stop the query; its thread is at the gate, or between two batches."""
        assert self.query is not None
        self.gate.opened.set()
        self.query.stop()

    def note_end(self) -> None:
        """The query ended by itself, outside of our code: remember why."""
        assert self.query is not None
        # Where another driver of this session has taken the checkpoint, Spark says that the query has ended, interrupts its
        # batch, and waits for its thread, without end; the batch fails by that, and the thread comes to the gate only now.
        self.gate.opened.set()
        failure = str(self.query.exception())
        self.failure = _text(failure)
        self.failed_outside = is_outside(f"{failure}\n{_classes_of(self.query)}")
        self.error = explain_failure(self.plan, self.session, failure)


def _classes_of(query: StreamingQuery) -> str:
    """The classes of what ended a query, outermost first: what Spark says of it has no names."""
    names: list[str] = []
    with contextlib.suppress(Exception):  # the JVM may be gone
        error: Any = query._jsq.exception().get()
        while error is not None and len(names) < _CAUSES:
            one = error.getClass()
            while one is not None:
                names.append(str(one.getName()))
                one = one.getSuperclass()
            error = error.getCause()
    return "\n".join(names)


def _text(error: object) -> str:
    text = str(error).strip()
    return text if len(text) <= _ERROR_TEXT else f"{text[:_ERROR_TEXT]} ..."
