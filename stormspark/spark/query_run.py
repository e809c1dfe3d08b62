"""One run of the data query, the query that runs a topology.

A run begins at the checkpoint. Unless the query ends by itself, the supervisor stops it, either while the query's thread waits at
the gate (`gate`), or between two batches.

Two threads use a run. On the query's own thread, Spark calls `QueryRun.batch` for every micro-batch, and `batch` calls most other
methods. The supervisor's thread (`stormspark.spark.layout`) starts and stops the query. If a batch fails, the query's
thread only records what happened (`error`, `failure`) and goes to the gate. It never decides how the topology goes on. It also
lets no exception of a failed batch reach Spark.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from stormspark.checkpoint.barriers import LETTERS_BARRIER, reached
from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.checkpoint.dead_letters import Letter
from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.driver.batch_driver import BatchDriver, not_committed
from stormspark.driver.end_of_input import EndOfInput
from stormspark.driver.event_sampling import EventSampling
from stormspark.driver.failed_rows import FailedRows
from stormspark.driver.letter_lines import LettersOfBatches
from stormspark.driver.tally import Tally
from stormspark.driver.throttle import Throttle
from stormspark.driver.transaction import Transaction
from stormspark.errors import CheckpointError, FencedError, StormsparkError, UnsupportedEnvironmentError
from stormspark.plan.explain import superstep_names
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.checkpoint_folder import PlannedOffset, planned_offsets
from stormspark.spark.durable_acker import DurableAcker
from stormspark.spark.feedback import Feedback
from stormspark.spark.fence import Fence
from stormspark.spark.forwarder import Attempt, orders_property
from stormspark.spark.gate import Gate, GateOpenedError
from stormspark.spark.java_errors import in_full, without_frames
from stormspark.spark.observed import ObservedCounts
from stormspark.spark.pacing import Pacing
from stormspark.spark.phases import Phases
from stormspark.spark.prolonging import Prolonging
from stormspark.spark.query import data_query, round_description, round_query
from stormspark.spark.query_session import QuerySession
from stormspark.spark.range_source import AVAILABLE_NOW
from stormspark.spark.retrying import is_outside, is_outside_error
from stormspark.spark.sources import explain_failure, hint, open_sources
from stormspark.spark.trigger_limits import NewLimit, TriggerLimits
from stormspark.spark.versions import TELLS_STARTS, keep_ticking
from stormspark.worker.round_orders import RoundOrders
from stormspark.worker.step import WorkerReport, fatal_error, read_report

__all__ = ["QueryRun", "called_by_spark"]

_log = logging.getLogger(__name__)

#: If the topology has to end, a transaction that is not prepared after more rounds than this stays uncommitted.
_ROUNDS_TO_THE_END = 3
#: The driver logs a warning whenever a batch has taken this many more rounds.
_ROUNDS_UNTIL_WARNED = 20
#: How long the supervisor waits for the thread of a query that has ended by itself.
_END_SECS = 20
#: To find out what failed, the driver reads the names of at most this many Java classes: of an error, its causes, and their base
#: classes.
_CAUSES = 60


@dataclass
class QueryRun:
    """One run of the data query, with any number of batches.

    A planned restart of the query begins another run within the same attempt. Spark calls `batch` on the query's thread, and
    `BatchDriver` calls its methods on the same thread. The supervisor calls the rest.
    """

    #: The session of the query and of its sources, which is a clone of the user's.
    shared: QuerySession
    plan: PhysicalPlan
    attempt: Attempt
    tally: Tally
    throttle: Throttle
    limits: TriggerLimits
    stop_wanted: threading.Event
    wake: threading.Event
    #: An event that is set when there is work to do. It ends a pause between two batches.
    stirred: threading.Event
    acker: DurableAcker | None = None
    feedback: Feedback | None = None
    #: Whether the topology ends once it has processed the rows that its sources had at the start.
    available_now: bool = False
    #: The state table to which batches are committed, if batches are transactions.
    commits: BatchCommits | None = None
    #: The rows that failed in earlier attempts at the running batch.
    failed_rows: FailedRows = field(default_factory=lambda: FailedRows(0))
    #: The fence around the checkpoint, which is checked before Spark commits a batch.
    fence: Fence | None = None
    #: Takes the dead letters.
    letters: LettersOfBatches | None = None
    #: Decides when the input has ended, and which bolts flush then; None: the input has no end.
    end_of_input: EndOfInput | None = None
    #: Which share of what components emit is logged.
    sampling: EventSampling = field(default_factory=EventSampling)
    #: The number of tuples that bolts hold over the end of the last committed batch. A run after a planned restart begins with
    #: that of the run before, because the bolts keep their tuples.
    held: int = 0

    def __post_init__(self) -> None:
        self.session: SparkSession = self.shared.session
        self.gate = Gate(self.session)
        #: The batch that runs now, or ran last.
        self.batch_number = -1
        #: The DataFrame that Spark passed for the running batch. Collecting it runs the first round. None once that has begun.
        self._frames: DataFrame | None = None
        #: Whether Spark is known to have committed a batch of this run, because it has asked for another batch since.
        self.succeeded = False
        #: Why the topology has to stop, or None.
        self.error: BaseException | None = None
        #: Why the attempt failed, or None.
        self.failure: str | None = None
        #: Whether storage, a broker or a Spark executor failed, and not user code. If so, waiting may help.
        self.failed_outside = False
        self._running = False
        #: Whether the last round may not have completed its tuples. Then another round has to do that before the topology ends.
        #: There are two reasons: spouts emitted tuples after superstep 0, between its supersteps or in a later superstep. Or
        #: calls of bolts go on, or have done something in the round.
        self._went_on = False
        self._last_ended: float | None = None
        self.query: StreamingQuery | None = None
        #: Not set while `start` runs: the first batch may begin before `query` is known.
        self._started = threading.Event()
        self._started.set()
        #: Whether somebody else has stopped the query, as with ``spark.streams.active[0].stop()``.
        self.stopped_by_others = False
        self._supersteps = superstep_names(self.plan)
        self._counts = ObservedCounts(self.session)
        #: The new limits of sources, if any. Once the running batch is committed, the query has to be started again with them.
        #: That restart is no failure.
        self.new_limits: list[NewLimit] = []
        self._prolonging = Prolonging(self.plan, self.throttle, ())
        self._pacing = Pacing.of(self.plan, available_now=self.available_now)
        self._phases = Phases()
        self._one_more: DataFrame | None = None
        self._driver = BatchDriver(self.plan, self, self.failed_rows)
        #: Whether Spark would end the query with its first batch (`keep_ticking`).
        self._ticks_end = False
        #: The rows of sources that the running batch has given up.
        self._given_up: list[Letter] = []

    # -- the query's thread ----------------------------------------------------------------------------------

    def batch(self, frames: DataFrame, number: int) -> None:
        """Run one batch in one or more rounds.

        Spark computes the supersteps of a round when this thread collects the replies of its last superstep.
        """
        # Set this flag first. Then either this thread sees that the topology has to end, or `is_between_batches` sees this batch.
        self._running = True
        self._phases.begin(time.monotonic())
        self.stirred.clear()
        self.succeeded |= self.batch_number >= 0
        if (self.stop_wanted.is_set() and not self._went_on) or self.new_limits:
            self._to_the_gate()  # at this point, the previous batch is committed, and this one has not begun
        self.batch_number, self._frames = number, frames
        self._given_up = []
        reached("driver.batch_begins")
        if self._ticks_end:
            self._keep_ticking()
        if self.commits is None:
            reports = self._work_off()
        elif number <= self.commits.last:
            # An earlier attempt or driver committed this batch, but Spark has not recorded that. So there is nothing left to do.
            _log.info("batch %d of %s is already committed", number, self.plan.topology)
            self._running = False
            return
        else:
            reports = self._transact(self.commits)
        self._check_fence()
        if self.commits is None:
            with self._on_the_table():
                self._write_letters()
        if self.acker is not None:
            try:
                self.acker.write(reports, self.attempt.attempt)
            except FencedError as error:
                self.error = error
                self._to_the_gate()
            except Exception as error:
                self.failure = f"the durable acker's journal could not be written: {in_full(error)}"
                self.failed_outside = is_outside_error(error)
                self._to_the_gate()
        if self.feedback is not None:
            self.feedback.write(reports, self.throttle.limit_of)
        self._tell_listeners()
        end = self.end_of_input
        if end is not None:
            end.observe(reports, self._prolonging.came.total(), now=time.monotonic())
            if end.is_done:
                self.stop_wanted.set()
        self.tally.end_batch(flushes=end is not None and end.flushes > 0)
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

    def _keep_ticking(self) -> None:
        """Let the source of ticks go on after the first batch."""
        self._started.wait()
        if self.query is not None:
            try:
                keep_ticking(self.query)
            except LookupError as error:
                self.error = UnsupportedEnvironmentError(
                    f'trigger="available-now" does not work, because {error}'
                )
                self._to_the_gate()
            self._ticks_end = False

    def _tell_listeners(self) -> None:
        """Put the batch's numbers into Spark's progress of the batch."""
        self._started.wait()
        if self.query is not None:
            self._counts.put(self.query, self.tally.take_batch())

    def _check_fence(self) -> None:
        """Go to the gate if another driver has taken over the checkpoint, because Spark would commit the batch after this."""
        if self.fence is None:
            return
        try:
            self.fence.check()
        except FencedError as error:
            self.error = error
            self._to_the_gate()
        except (CheckpointError, OSError) as error:
            self.failure, self.failed_outside = f"the control file can't be read: {in_full(error)}", True
            self._to_the_gate()

    def _end_batch(self, *, idle: bool, at_rest: bool) -> None:
        """Record where the batch's time went. If nothing happens, wait a little before the next batch."""
        now = time.monotonic()
        self.tally.add_phases(self._phases.end(now, self.query))
        self._pause(now, idle=idle, at_rest=at_rest)

    def _pause(self, now: float, *, idle: bool, at_rest: bool) -> None:
        """Wait a little before the next batch or round, if nothing has happened."""
        pause = self._pacing.pause_after(now, idle=idle, at_rest=at_rest)
        ends = self.end_of_input is not None and self.end_of_input.is_near
        if pause and not ends and not (self.stop_wanted.is_set() or self.new_limits):
            self.stirred.wait(pause)
            paused = time.monotonic() - now
            self.tally.add_phases(self._phases.paused(paused))
            if self._last_ended is not None:
                self._last_ended += paused

    def _work_off(self) -> Sequence[WorkerReport]:
        """Run the rounds of a batch that is no transaction. Return the reports of the last round."""
        prolonging = self._prolonging
        # In a round that reports to the durable acker, the workers report every row that waits. Further rounds would close most
        # of these records again. So if further rounds are expected, the workers report to the acker only in the last one.
        reported = not (prolonging.expected and self.acker is not None)
        prolonging.begin()
        began = time.monotonic()
        reports = self._plain_round(0, report_to_acker=reported)
        number = 0
        while prolonging.wanted and not self._ends_here():
            number += 1
            reported = False
            # The waiting rows may be those of a deactivated spout, and rounds in which nothing happens would use all the CPU.
            self._pause(
                time.monotonic(),
                idle=all(report.idle for report in reports),
                at_rest=all(report.at_rest for report in reports),
            )
            self.stirred.clear()
            reports = self._plain_round(number, report_to_acker=False)
        while self._goes_on_for_held_spouts(began, reports):
            number += 1
            reports = self._plain_round(number, report_to_acker=False)
        if self.acker is not None and not reported:
            return self._plain_round(number + 1, report_to_acker=True)
        while self.stop_wanted.is_set() and self._went_on:
            # Complete the tuples that were emitted late, and the calls. After the round above, the next batch does that
            # (`is_between_batches`). The last round of a batch reports to the acker, because the journal has to get the rows that
            # are open when the batch ends, and it gets them from the reports of this round alone.
            number += 1
            reports = self._plain_round(number, report_to_acker=True)
        return reports

    def _goes_on_for_held_spouts(self, began: float, reports: Sequence[WorkerReport]) -> bool:
        """Whether the batch gets another round, because a spout has reached its max spout pending and waits for acks.

        Such a spout goes on after the end of a round, and a round costs less than a batch. If a batch reads no source, nothing
        else waits for its end. But the batch should not take longer than its target time, or delay a trigger or the topology's
        end. If nothing happens in a round, because bolts don't ack the trees yet, the batch ends, and a pause may follow.
        """
        settings = self.plan.settings
        return (
            bool(self.throttle.held)
            and not all(report.idle for report in reports)
            and not (self.plan.sources or settings.trigger_interval_ms or self.stop_wanted.is_set())
            and time.monotonic() - began < settings.batch_target_ms / 1000
        )

    def _plain_round(self, number: int, *, report_to_acker: bool) -> Sequence[WorkerReport]:
        """Run one round of a batch that is no transaction."""
        acker_time = self.acker.time_to_report() if self.acker is not None and report_to_acker else None
        # If the topology has to end, this round only completes the tuples that were emitted late, and spouts are not called.
        completes = self._went_on and self.stop_wanted.is_set()
        return self.run_round(
            replace(self.plain_orders(), round=number, acker_time=acker_time, asks_spouts=not completes)
        )

    def _transact(self, commits: BatchCommits) -> Sequence[WorkerReport]:
        """Make one attempt at a batch that is a transaction. Go to the gate if the batch has to run again."""
        self._prolonging.begin()
        reports = self._driver.attempt(self.batch_number, self.attempt.earlier.of(self.batch_number))
        transaction = self.transaction
        assert transaction is not None
        if transaction.aborts is not None:
            if self.stop_wanted.is_set():
                self._log_not_committed(transaction.aborts)
            self.failure, self.failed_outside = transaction.aborts, transaction.aborted_outside
            self._to_the_gate()
        self.held = transaction.held
        self.tally.add_commit(self.batch_number, transaction.rounds)
        commits.tidy()
        return reports

    @contextlib.contextmanager
    def _on_the_table(self) -> Iterator[None]:
        """Go to the gate if the state table or the dead letters can't be written to. If another driver has the table, the
        topology ends.
        """
        try:
            yield
        except FencedError as error:
            self.error = error
            self._to_the_gate()
        except CheckpointError as error:
            self.failure, self.failed_outside = str(error), True
            self._to_the_gate()

    def _ends_here(self) -> bool:
        """Whether to end a batch whose rows still wait, because the topology has to end."""
        if not self.stop_wanted.is_set():
            return False
        if self.acker is None and self._prolonging.stalled:
            # No spout takes the waiting rows, and there is no acker to keep them. So the batch stays uncommitted, and Spark reads
            # its rows again.
            self._to_the_gate()
        return self.acker is not None

    def _frames_of_round(self) -> DataFrame:
        if self._one_more is None:
            self._one_more = round_query(self.session, self.plan, self.attempt)
        return self._one_more.select("*")

    # -- for the batch driver, on the query's thread ---------------------------------------------------------

    @property
    def transaction(self) -> Transaction | None:
        """If batches are transactions, the attempt at the batch that runs now or ran last; otherwise None."""
        return self._driver.transaction

    def plain_orders(self) -> RoundOrders:
        """Return the orders for a round that begins now. They lack what depends on the round's position in its batch."""
        end = self.end_of_input
        return RoundOrders(
            input_ended=end is not None and end.has_ended,
            flushes=0 if end is None else end.flushes,
            limits=self.throttle.limits,
            target_secs=self.throttle.round_target,
            staying_local=self.throttle.staying_local,
            committed=-1 if self.commits is None else self.commits.last,
            sampled=self.sampling.sampled,
        )

    def announce(self, batch: int, announcement: Mapping[str, bytes]) -> None:
        """Store the announcement in the state table."""
        assert self.commits is not None
        with self._on_the_table():
            self.commits.announce(batch, announcement)

    def round_ended(self, transaction: Transaction) -> None:
        """Leave a batch uncommitted if it delays the end of the topology. Warn about a batch that takes many rounds."""
        # A worker itself aborts the batch if a call takes too long (`Executors.give_up_calls`).
        late = transaction.rounds > _ROUNDS_TO_THE_END and not transaction.calls
        if self.stop_wanted.is_set() and not transaction.prepared and late:
            self._log_not_committed(
                f"{transaction.left:,} tuples still wait after {transaction.rounds} rounds"
            )
            self._to_the_gate()  # the batch stays uncommitted, and runs again
        if transaction.rounds % _ROUNDS_UNTIL_WARNED == 0:
            _log.warning(
                "batch %d of %s is not committed after %d rounds, because %d tuples still wait: %s",
                self.batch_number,
                self.plan.topology,
                transaction.rounds,
                transaction.left,
                "look for calls that take long" if transaction.calls else "look for a loop without an end",
            )

    def _log_not_committed(self, reason: str) -> None:
        _log.warning("%s", not_committed(self.plan.topology, self.batch_number, reason))

    def commit(self, batch: int, files: Sequence[FileDescription | ChangedRows | None]) -> None:
        """Commit the batch to the state table. A driver that was frozen in the batch must not replace the letters of another
        driver that has taken over meanwhile.
        """
        assert self.commits is not None
        self._check_fence()
        with self._on_the_table():
            self._write_letters()
            self.commits.commit(batch, files)

    def _write_letters(self) -> None:
        """Write the dead letters of the batch that is about to be committed."""
        if self.letters is not None:
            self.letters.write(self.batch_number, self._given_up, transactions=self.plan.exactly_once)
            if self._given_up:
                reached(LETTERS_BARRIER)

    def run_round(self, orders: RoundOrders) -> Sequence[WorkerReport]:
        """Run one round. Go to the gate if it fails."""
        # The first round gets the rows that Spark read for the batch. Further rounds get only ticks.
        frames = self._frames_of_round() if self._frames is None else self._frames
        self._frames = None  # otherwise Spark could not clean up before the next batch begins
        began = time.monotonic()
        # This is the query's own thread, so the tasks of this round inherit the properties.
        context = self.session.sparkContext
        context.setLocalProperty(*orders_property(orders))
        context.setJobDescription(
            round_description(self.plan.topology, self.batch_number, orders.round, self._supersteps)
        )
        try:
            reports: list[WorkerReport] = [read_report(row.payload) for row in frames.collect()]
        except Exception as error:
            # Don't let Spark see this error. Spark would log it in full, and would match its long message against a regular
            # expression that overflows the stack.
            self.failure = in_full(error)
            self.failed_outside = is_outside(str(error))
            self._to_the_gate()
        if sorted(report.worker for report in reports) != list(range(self.plan.workers)):
            self.error = StormsparkError(
                f"batch {self.batch_number} ended with reports of workers {sorted(report.worker for report in reports)}, "
                f"expected one report of each of {self.plan.workers} workers"
            )
            self._to_the_gate()
        first = self._last_ended is None
        seconds = self._seconds_since(began)
        self._phases.add_round(
            time.monotonic() - began,
            max((report.worked for report in reports), default=0.0),
            max((report.filled for report in reports), default=0.0),
        )
        for report in reports:
            self._given_up += report.letters
        self.tally.add_batch(reports, seconds)
        self.throttle.observe(reports, seconds, first=first)
        self._went_on = self._calls_to_wait_for(reports) or (
            orders.asks_spouts and any(report.filled or report.emitted_late for report in reports)
        )
        self.error = fatal_error(reports)
        if self.error is not None:
            self._to_the_gate()
        self._prolonging.observe(reports)
        return reports

    def _calls_to_wait_for(self, reports: Sequence[WorkerReport]) -> bool:
        """Whether a further round would take in what calls of bolts do, or complete what they have done.

        A topology that has to end does not wait where a further round would read rows, be a transaction, or come after the
        trigger's interval.
        """
        if self.plan.exactly_once or self.plan.sources or self.plan.settings.trigger_interval_ms:
            return False
        return any(report.goes_on for report in reports)

    def _to_the_gate(self) -> None:
        self.gate.reached.set()
        self.wake.set()
        self.gate.wait()

    def _seconds_since(self, began: float) -> float:
        """Return the duration of a round that began at ``began``.

        The duration is counted from the end of the previous round, so that it includes what Spark does between two rounds. But
        with a trigger interval it is counted from the beginning of this round, because batches don't follow each other at once.
        """
        now = time.monotonic()
        last, self._last_ended = self._last_ended, now
        return now - (began if last is None or self.plan.settings.trigger_interval_ms else last)

    # -- the supervisor --------------------------------------------------------------------------------------

    def start(self, checkpoint: str) -> None:
        """Start the query from its checkpoint."""
        if self.feedback is not None:
            self.feedback.begin((source.id for source in self.plan.sources), self.throttle.limit_of)
        planned: Sequence[PlannedOffset | None] = ()
        if not TELLS_STARTS:
            planned = planned_offsets(self.session, checkpoint)
            self.session.conf.set(AVAILABLE_NOW, self.available_now)
        sources = open_sources(self.plan, self.session, self.limits, planned)
        self.limits.begin()
        native = [source.spout for source in sources if source.native]
        unkept = [source.spout for source in sources] if self.acker is None and self.commits is None else []
        self._prolonging = Prolonging(self.plan, self.throttle, native, unkept)
        frames = data_query(self.session, self.plan, self.attempt, sources, available_now=self.available_now)
        name = self.shared.free_name(self.plan.topology, self.attempt.generation)
        writer = frames.writeStream.queryName(name).foreachBatch(called_by_spark(self))
        writer = writer.option("checkpointLocation", checkpoint)
        if self.available_now and (TELLS_STARTS or native):
            writer = writer.trigger(availableNow=True)
            self._ticks_end = not TELLS_STARTS
        else:
            # `Trigger.AvailableNow` has no interval, so what stands for it has none.
            interval = 0 if self.available_now else int(self.plan.settings.trigger_interval_ms)
            writer = writer.trigger(processingTime=f"{interval} milliseconds")
        self._started.clear()
        try:
            self.query = self.shared.query = writer.start()
        finally:
            self._started.set()

    def is_between_batches(self) -> bool:
        """Whether the query stands between two batches, or before its first one.

        Between two batches, the last batch is committed, no tuple needs a further round, and no other batch has begun. Call this
        only if the query has to stop: then a batch that begins just now goes to the gate. So nothing can happen between this
        answer and the stop of the query.
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
        """Make the jobs of the running batch fail. The query's thread then comes to the gate."""
        if self.query is not None:
            self.session.sparkContext.cancelJobGroup(str(self.query.runId))

    def stop(self) -> None:
        """Stop the query. Its thread has to be at the gate or between two batches."""
        assert self.query is not None
        # At the gate, a query is active unless somebody stops it.
        self.stopped_by_others = not self.query.isActive
        self.gate.opened.set()
        self.query.stop()

    def note_end(self) -> None:
        """Record why the query ended by itself, for a reason outside of our code."""
        assert self.query is not None
        # If another driver in this session takes the checkpoint, Spark reports the query as ended, interrupts its batch, and
        # waits for its thread without limit. The interrupt fails the batch, so the thread comes to the gate. Let it pass.
        self.gate.opened.set()
        # Spark takes the query off its list at the end of the query's thread. Before that, no other query may have its name.
        with contextlib.suppress(Exception):
            self.query.awaitTermination(_END_SECS)
        error = self.query.exception()
        if error is None:
            self.stopped_by_others = True
            return
        failure = str(error)
        self.failure = without_frames(failure) + hint(failure)
        self.failed_outside = is_outside(f"{failure}\n{_classes_of(self.query)}")
        self.error = explain_failure(self.plan, self.session, failure)


def called_by_spark(run: QueryRun) -> Callable[[DataFrame, int], None]:
    """Return the function that Spark calls for each batch of a run. It does not keep the run in memory.

    Py4J keeps the function for as long as Java has the query, and the run has a reference to this query. No garbage collector
    sees a loop through both languages, so neither would ever be released. PySpark keeps the function's last error, too. So the
    function raises a new error, without the run in its traceback.
    """
    of_run = weakref.ref(run)

    def batch(frames: DataFrame, number: int) -> None:
        run = of_run()
        if run is not None:
            try:
                run.batch(frames, number)
            except GateOpenedError:
                pass
            else:
                return
        del run
        raise GateOpenedError

    return batch


def _classes_of(query: StreamingQuery) -> str:
    """Return the Java class names of the error that ended a query, outermost first. Spark's own message has no class names."""
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
