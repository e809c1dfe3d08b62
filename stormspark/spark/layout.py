"""A topology that is laid out on workers: one plan in one generation, from the start of its workers to their end.

    attempt 0: query starts -> batch 0, 1, 2 ... -> a worker is lost in batch 7 -> gate -> query stopped
    attempt 1: query starts from its checkpoint -> batch 7, 8 ... -> the layout is to end -> gate before batch 12
    -> query stopped -> workers closed

A topology that is rebalanced ends its layout and begins the next one, which goes on from the checkpoint.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import replace

import cloudpickle

from stormspark.driver.end_of_input import EndOfInput
from stormspark.driver.throttle import Throttle
from stormspark.errors import (
    CheckpointError,
    FencedError,
    InvalidTopologyError,
    StormsparkError,
    UnsupportedEnvironmentError,
    WorkerLostError,
)
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.forwarder import Attempt
from stormspark.spark.java_errors import in_full, in_one_line
from stormspark.spark.nimbus import Nimbus
from stormspark.spark.placement import Placement
from stormspark.spark.premises import Premises
from stormspark.spark.query_run import QueryRun
from stormspark.spark.recovery import Recovery
from stormspark.spark.retrying import Retries, is_outside_error
from stormspark.tuple_path import wants_sources
from stormspark.worker.host.messages import Adopt
from stormspark.worker.step import read_report

__all__ = ["CLOSE_SECS", "Layout"]

_log = logging.getLogger(__name__)

_LOOK_SECS = 1.0
#: How long ``close`` and ``cleanup`` may take when the workers end.
CLOSE_SECS = 60.0


class Layout:
    """One layout of a topology. Making it listens for workers; `run` starts them, and one query after another.

    The topology's supervisor makes and runs it. `end`, `kill`, and orders to spouts may come from any thread. Raises the errors
    of `Recovery`.
    """

    def __init__(self, premises: Premises, plan: PhysicalPlan, *, active: bool, is_first: bool) -> None:
        settings = plan.settings
        self.plan, self._premises, self._is_first = plan, premises, is_first
        self.generation = premises.fence.generation
        #: Set when the layout is to end, once the running batch is committed.
        self.over = threading.Event()
        self._has_ended = threading.Event()
        #: Why the topology has to end, or None.
        self.error: BaseException | None = None
        #: How many times the query was started again to change the limits of sources.
        self.planned_restarts = 0
        self.query_run: QueryRun | None = None
        self.recovery = Recovery(premises, plan, self.generation, self._adopt)
        self.throttle = Throttle(plan)
        self.end_of_input = EndOfInput(plan, available_now=premises.available_now)
        try:
            self.nimbus = Nimbus(
                cloudpickle.dumps(plan),
                plan.workers,
                folder=premises.scratch,
                address=premises.network.address,
                lease_secs=settings.worker_lease_secs,
                start_timeout_secs=settings.worker_start_timeout_secs,
                on_trouble=premises.wake.set,
                on_stir=premises.stirred.set,
                storm_id=premises.storm_id,
                active=active,
                stuck_secs=settings.stuck_warning_secs,
                stuck_timeout_secs=settings.stuck_timeout_secs,
                prepare_timeout_secs=settings.prepare_timeout_secs,
                state=self.recovery.state_access,
                state_of=self.recovery.state_of,
                certificate=premises.network.certificate,
                silence_secs=premises.network.silence_secs,
                shared=self.recovery.shared,
                working_folder=settings.working_dir and os.path.abspath(settings.working_dir),
                tasks_of=plan.names_of_tasks,
                is_first=is_first,
            )
        except BaseException:
            self.recovery.close()
            raise
        self.placement = Placement(
            premises.session,
            premises.executors,
            plan.topology,
            settings.executors_wait_secs,
            self.over.is_set,
            premises.preflight,
        )

    # -- for any thread --------------------------------------------------------------------------------------

    def activate(self, active: bool) -> None:
        """Activate or deactivate the spouts."""
        self.nimbus.activate(active)
        self._premises.stirred.set()

    def end(self) -> None:
        """End the layout once the running batch is committed. Tuples that bolts hold get one message timeout before."""
        self._wait_for_held()
        self.nimbus.limit_waiting()
        self._cut_short()

    def kill(self) -> None:
        """End the layout now, and its worker processes."""
        self.over.set()
        self.nimbus.kill_workers()
        self._cut_short()

    def _cut_short(self) -> None:
        """End the layout once the running batch is committed, without regard to tuples that bolts hold."""
        self.over.set()
        self._premises.wake.set()
        self.placement.cancel()

    def waits_for(self) -> str:
        """Return what the start of the workers waits for, in words; an empty string if they are up."""
        if self.recovery.reads_state:
            return "the state is read"
        return self.placement.waits_for() or self.nimbus.waits_for()

    def _adopt(self, worker: int, messages: list[Adopt]) -> None:
        self.nimbus.adopt(worker, messages)

    # -- for the supervisor ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run one query after another until the layout is over, or the topology can't go on. Then `error` says why."""
        try:
            self._run_attempts()
        except Exception as error:
            self.error = error
            raise
        finally:
            self._has_ended.set()

    def _run_attempts(self) -> None:
        attempt, reason, held = 0, "", 0
        settings, premises = self.plan.settings, self._premises
        retries = Retries(
            settings.max_attempts, settings.outage_timeout_secs, settings.restart_max_delay_secs
        )
        while True:
            run = self.query_run = QueryRun(
                premises.shared_session,
                self.plan,
                self._attempt(attempt, reason),
                premises.tally,
                self.throttle,
                premises.limits,
                self.over,
                premises.wake,
                premises.stirred,
                self.recovery.acker,
                premises.feedback,
                premises.available_now,
                self.recovery.commits,
                self.recovery.failed_rows,
                premises.fence,
                self.recovery.letters,
                end_of_input=self.end_of_input,
                sampling=premises.sampling,
                held=held,
            )
            try:
                premises.fence.check()
                self.recovery.recover()
                run.attempt = replace(run.attempt, earlier=self.recovery.earlier_attempts())
            except FencedError as error:
                self.error = error
                return
            except Exception as error:
                if attempt == 0 and not isinstance(error, CheckpointError | OSError):
                    raise
                run.failure = in_full(error)
                run.failed_outside = is_outside_error(error)
            else:
                try:
                    self.placement.place(run.attempt, self.nimbus)
                except UnsupportedEnvironmentError as error:
                    self.error = error
                    return
                # What a worker has told at its start, such as a folder that its host does not share, needs no query to be told.
                if self.nimbus.error is None:
                    self._start(run, first=self._is_first and attempt == 0 and not self.planned_restarts)
            self.error = self.nimbus.error or run.error
            if self.error is not None or self.over.is_set():
                return
            if run.stopped_by_others and self._ends_with_its_query():
                return
            planned = bool(run.new_limits) and run.failure is None and self.nimbus.broken is None
            if run.succeeded or planned:
                retries.succeeded()
            if planned:
                # The restart was planned, and no batch has begun. So the attempt continues, and workers notice nothing.
                self.planned_restarts += 1
                held = run.held
                for new in run.new_limits:
                    _log.info("%s starts its query again with a new limit: %s", self.plan.topology, new)
                continue
            reason, held = self.nimbus.broken or run.failure or "the query ended", 0
            outside = self.nimbus.broken_outside if self.nimbus.broken else run.failed_outside
            lost = self.nimbus.lost_workers()
            outside |= self._premises.executors.took_workers(lost)
            reason += self._premises.executors.why_lost(self.plan, lost)
            self.recovery.lost(lost)
            if self._premises.session.sparkContext._jsc.sc().isStopped():
                self.error = StormsparkError("the Spark session was stopped while the topology ran")
                return
            now = time.monotonic()
            msg = retries.failed(run.batch_number, reason, outside=outside, now=now)
            if msg is not None:
                self.error = WorkerLostError(msg) if self.nimbus.broken else StormsparkError(msg)
                return
            attempt += 1
            if self.plan.exactly_once:
                self._premises.tally.add_taken_back(reason, run.batch_number)
            text = retries.to_log(attempt, now)
            if text is not None:
                line = in_one_line(text)
                more = "" if line == text else f" (logs: {self._premises.log_folder})"
                _log.warning("%s: %s%s", self.plan.topology, line, more)
            if self.over.wait(retries.delay_secs):
                return
            if run.transaction is not None:
                self.recovery.failed_rows.add(retries.batch, run.transaction.failed_rows)
            self.nimbus.begin_attempt(attempt)
            self.throttle.begin()
            self.end_of_input.begin_attempt()

    def _start(self, run: QueryRun, *, first: bool) -> None:
        """Start a query and watch it until it ends.

        If the very first query can't start, none ever will, so the error ends the topology. If a later query can't start,
        the reason may be storage that can't be reached, and another attempt may help. But no attempt repairs a source that no
        longer fits its spout, such as a table whose column was renamed.
        """
        try:
            run.start(self._premises.folder.spark)
        except Exception as error:
            if first or isinstance(error, InvalidTopologyError):
                raise
            run.failure, run.failed_outside = in_full(error), True
        else:
            self._watch(run)

    def _watch(self, run: QueryRun) -> None:
        """Watch the query, and return once it has ended.

        A query ends at the gate, by itself, or because the supervisor stops it between two batches.
        """
        look_secs = min(_LOOK_SECS, self.plan.settings.worker_lease_secs / 6)
        while True:
            if self._premises.wake.wait(look_secs):
                self._premises.stirred.set()
            self._premises.wake.clear()
            self.nimbus.look_for_silence()
            if self.end_of_input.is_done:
                # Spouts that emit between batches do so until the workers are told. Before, `is_between_batches` is never true.
                self.begin_to_stop()
            if (
                self._premises.killed.is_set()
                or self.nimbus.error is not None
                or self.nimbus.broken is not None
            ):
                # Most forwarders find out by themselves that the attempt is over. Cancelling the jobs also ends forwarders that
                # wait, and tasks that have not begun.
                run.cancel()
            end_wanted = self.over.is_set() or bool(run.new_limits)
            if run.gate.reached.is_set() or (end_wanted and run.is_between_batches()):
                run.stop()
                return
            if not run.is_active():
                run.note_end()
                return

    def _wait_for_held(self) -> None:
        """Deactivate the spouts, and give tuples that bolts hold beyond their batch one message timeout to be acked (see `end`).

        Only tuples that a source can't bring again are waited for.
        """
        spouts = (one for one in self.plan.components.values() if one.kind == "spout")
        if not self._held or all(spout.source for spout in spouts):
            return
        secs = self.plan.settings.message_timeout_secs
        _log.info(
            "%s waits at most %g s for %d tuples that its bolts keep", self.plan.topology, secs, self._held
        )
        self.activate(False)
        until = time.monotonic() + secs
        while self._held and time.monotonic() < until and not self.over.is_set():
            if self._has_ended.wait(0.1):
                return
        if self._held:
            _log.warning(
                "%s stops while its bolts keep %d tuples of committed batches: tuples that do not come from a source are lost",
                self.plan.topology,
                self._held,
            )

    @property
    def _held(self) -> int:
        """The number of tuples that bolts still held when the last committed batch had ended."""
        run = self.query_run
        return 0 if run is None else run.held

    def _ends_with_its_query(self) -> bool:
        """Whether the topology has to end because somebody has stopped its query, as with ``spark.streams.active[0].stop()``."""
        if self._premises.session.sparkContext._jsc.sc().isStopped():
            return False
        try:
            # Spark itself stops a query if another driver in this process takes over the checkpoint.
            self._premises.fence.check()
        except FencedError as error:
            self.error = error
            return True
        except (CheckpointError, OSError):
            return False
        _log.warning(
            "%s ends, because its query was stopped in the Spark session. Batch %d is not committed, and a later start with the "
            "same checkpoint does it again. `stop` of the running topology ends it between two batches",
            self.plan.topology,
            self.query_run.batch_number if self.query_run is not None else 0,
        )
        self.begin_to_stop()
        self.over.set()
        return True

    def begin_to_stop(self) -> None:
        """Tell the statistics and the workers that the topology stops. Only the first call counts."""
        self._premises.tally.begin_to_stop()
        self.nimbus.limit_waiting()

    def end_workers(self) -> None:
        """Close the workers, and take in their last reports. Kill them if the topology has failed, or was killed."""
        if self._premises.killed.is_set() or self.error is not None:
            self.nimbus.kill_workers()
        elif not self.nimbus.close_workers(
            CLOSE_SECS, -1 if self.recovery.commits is None else self.recovery.commits.last
        ):
            _log.warning(
                "a worker of %s did not close within %g s and is killed", self.plan.topology, CLOSE_SECS
            )
            self._premises.tally.add_not_returned(self.nimbus.calls())
            self.nimbus.kill_workers()
        self._premises.tally.add_last_reports(map(read_report, self.nimbus.last_reports))
        self._premises.tally.add_not_returned(self.nimbus.not_returned)

    def _attempt(self, attempt: int, reason: str) -> Attempt:
        return Attempt(
            topology=self.plan.topology,
            generation=self.generation,
            attempt=attempt,
            reason=reason,
            workers=self.plan.workers,
            partitions=self.plan.partitions,
            supersteps=self.plan.last_superstep + 1,
            nimbus=self.nimbus.endpoint,
            key=self.nimbus.key,
            log_folder=self._premises.network.workers_log_folder(
                self.plan.settings.log_dir, self._premises.log_folder
            ),
            start_timeout_secs=self.plan.settings.worker_start_timeout_secs,
            ports=self._premises.network.worker_ports,
            silence_secs=self._premises.network.silence_secs,
            sources=wants_sources(),
        )

    def close(self) -> None:
        """Give back everything. The workers have ended."""
        self.recovery.close()
        self.nimbus.close()
        self.placement.end()
