"""A topology that runs on Spark. The topology starts its query, watches it, starts it again after a failure, and ends it.

Only one thread, the supervisor, starts and stops queries. Spark calls `QueryRun.batch` on the query's own thread for every
micro-batch. That thread runs the batch by collecting the workers' reports. When something is wrong or the topology has to end,
the thread goes to the gate, where it waits until the query is stopped (`gate`). So the query's thread only records what happened,
and the supervisor decides how the topology goes on.

    attempt 0: query starts -> batch 0, 1, 2 ... -> a worker is lost in batch 7 -> gate -> query stopped
    attempt 1: query starts from its checkpoint -> batch 7, 8 ... -> the topology is to end -> gate before batch 12
    -> query stopped -> workers closed
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import cloudpickle
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from stormspark.api import Topology
from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.checkpoint.drivers_state_table import DriversStateTable
from stormspark.checkpoint.shared_folder import SharedFolder
from stormspark.config import merged
from stormspark.cores import cores_of_master
from stormspark.driver.end_of_input import EndOfInput
from stormspark.driver.failed_rows import FailedRows
from stormspark.driver.letter_lines import LetterLines, LettersOfBatches
from stormspark.driver.start_steps import begin_step
from stormspark.driver.tally import Tally
from stormspark.driver.throttle import Throttle
from stormspark.engine import AVAILABLE_NOW, CONTINUOUS, TRIGGERS, AliveTopologies
from stormspark.errors import (
    CheckpointError,
    FencedError,
    InvalidTopologyError,
    StormsparkError,
    UnsupportedEnvironmentError,
    WorkerLostError,
)
from stormspark.launcher import spark_launcher
from stormspark.metrics import TopologyStatistics
from stormspark.operations.facts import WorkerPlace
from stormspark.operations.served import ServedTopology
from stormspark.operations.server import serve
from stormspark.plan import log_advice, plan_topology
from stormspark.plan.physical import PhysicalPlan
from stormspark.plan.workers import follows_cores
from stormspark.private_files import FolderClaim, check_trusted, claim_logs, drivers_log_folder
from stormspark.running import end
from stormspark.spark.checkpoint_folder import CheckpointFolder
from stormspark.spark.cores import session_cores
from stormspark.spark.delta_jars import conf_of_session
from stormspark.spark.drivers_python import bring_python
from stormspark.spark.durable_acker import OPEN_RECORDS_DDL, DurableAcker
from stormspark.spark.executors import Executors
from stormspark.spark.feedback import Feedback
from stormspark.spark.fence import Fence, check_checkpoint, submission_of
from stormspark.spark.forwarder import Attempt
from stormspark.spark.interrupts import spare_jobs
from stormspark.spark.java_errors import in_full, in_one_line, in_words
from stormspark.spark.jvm import log_no_interrupts
from stormspark.spark.left_queries import stop_left_queries
from stormspark.spark.letter_replays import LetterReplays
from stormspark.spark.network import Network
from stormspark.spark.nimbus import Nimbus
from stormspark.spark.placement import Placement
from stormspark.spark.preflight import Preflight
from stormspark.spark.query_run import QueryRun
from stormspark.spark.query_session import QuerySession, own_session
from stormspark.spark.retrying import Retries, is_outside_error
from stormspark.spark.scratch import scratch_folder
from stormspark.spark.session import (
    check_session,
    handler_kept,
    local_session,
    require_classic,
    say_where_the_jvm_logs,
    without_effect,
)
from stormspark.spark.slow_start import said_if_slow
from stormspark.spark.sources import require_known_end
from stormspark.spark.spark_state_table import SparkStateTable, is_for_spark
from stormspark.spark.state_hand_over import StateHandOver
from stormspark.spark.trigger_limits import TriggerLimits
from stormspark.spark.whereabouts import Whereabouts
from stormspark.tuple_path import wants_sources
from stormspark.worker.busy import Busy
from stormspark.worker.host.messages import Adopt
from stormspark.worker.round_orders import EarlierAttempts
from stormspark.worker.state.batch_state import StateAccess
from stormspark.worker.step import read_report
from stormspark.worker.stories.story import Story, read_stories, stories_of

__all__ = ["TRIGGERS", "SparkTopology", "running_topologies", "submit"]

_log = logging.getLogger(__name__)

_LOOK_SECS = 1.0
_CLOSE_SECS = 60.0
_alive = AliveTopologies()  # the topologies that `submit` has started


def submit(
    topology: Topology | PhysicalPlan,
    spark: SparkSession | None = None,
    *,
    checkpoint: str | Path | None = None,
    conf: Mapping[str, Any] | None = None,
    master: str | None = None,
    active: bool = True,
    trigger: str = CONTINUOUS,
    replace: bool = False,
) -> SparkTopology:
    """Run a topology on Spark. Return when it has begun, and leave it running.

        running = submit(build(), checkpoint="/data/checkpoints/orders")
        running.wait()

    The result can be used in a ``with`` statement, which stops the topology at the end of its block.

    - ``topology`` may also be a plan. Then its settings stay as they are, and ``conf`` only configures a local session.
    - ``spark`` is a classic session, and not one of Spark Connect. The default is the active session, or the one that
      ``spark-submit`` or Databricks gives this process, or else a local session that this function starts.
    - ``checkpoint`` is a folder, or a URL that Spark can write to. A topology that is submitted again with the same checkpoint
      continues where it stopped. Without a checkpoint, nothing is kept after the end of the topology.
    - ``conf`` overrides the topology's own configuration. If no configuration sets ``topology.workers``, the cores of the session
      decide how many workers there are (`stormspark.plan.workers`).
    - ``master``, and the ``spark.*`` entries of ``conf``, configure a local session that this function starts.
    - If ``active`` is false, the workers open no spout before `SparkTopology.activate` is called (B2, J4).
    - ``trigger`` is "continuous" or "available-now". With "available-now" the topology processes the rows that its sources have
      when it starts, and then ends.
    - If ``replace`` is true, and this process already runs a topology of the same name, that one is stopped first. So a cell of a
      notebook can be run twice.

    Raises `InvalidTopologyError` and `UnsupportedEnvironmentError`. Raises `TopologyAlreadyRunningError` if this process already
    runs a topology of the same name (A14), and `CheckpointError` if the folder belongs to another topology. A later failure ends
    the topology, and `SparkTopology.error` is its error.
    """
    if trigger not in TRIGGERS:
        msg = f"trigger must be one of {', '.join(TRIGGERS)}, got {trigger!r}"
        raise InvalidTopologyError(msg)
    # A session that somebody else has started stays, whatever happens: others may use it.
    started_here = spark is None and SparkContext._active_spark_context is None and spark_launcher() is None
    plan = topology if isinstance(topology, PhysicalPlan) else plan_topology(topology, conf)
    everything = merged(plan.conf, conf or {})
    if isinstance(topology, Topology) and started_here:
        plan = plan_topology(topology, conf, cores=cores_of_master(master, everything))
    if spark is None:
        spark = session_for(plan, everything, checkpoint, master)
    try:
        session = check_session(spark)
        spare_jobs(session.sparkContext, _job_groups)
        stop_left_queries(session)
        if isinstance(topology, Topology):
            if plan.cores is None and follows_cores(plan):
                cores = session_cores(session, plan.settings.executors_wait_secs)
                plan = plan_topology(topology, conf, cores=cores)
            log_advice(plan)
        if trigger == AVAILABLE_NOW:
            require_known_end(plan)
        return _alive.start(
            plan.topology,
            lambda: SparkTopology(plan, session, checkpoint, active, trigger),
            end if replace else None,
        )
    except BaseException:
        if started_here:
            spark.stop()
        raise


def session_for(
    plan: PhysicalPlan, conf: Mapping[str, Any], checkpoint: str | Path | None, master: str | None
) -> SparkSession:
    """Return the active session, or the one that somebody else has made, or else start a local one, with Delta if the topology
    needs it.
    """
    session = SparkSession.getActiveSession()
    if session is None and spark_launcher() is not None:
        # `spark-submit` and Databricks know master, jars and settings. Databricks has its session before it starts this program.
        log_no_interrupts()
        with handler_kept(), said_if_slow(plan.topology):
            session = SparkSession.builder.getOrCreate()
    if session is None:
        check_checkpoint(checkpoint, plan)
        conf = conf_of_session(plan, conf, checkpoint)
        on_cluster = not str(master or conf.get("spark.master", "local")).startswith("local")
        with said_if_slow(plan.topology) if on_cluster else contextlib.nullcontext():
            return local_session(plan.workers, conf, master=master, topology=plan.topology)
    require_classic(session)  # before anybody asks for its cores
    asked = {**conf} if master is None else {**conf, "spark.master": master}
    if lost := without_effect(session, asked):
        _log.warning(
            "%s: Spark runs already, so %s %s without effect: set this where the session is made",
            plan.topology,
            ", ".join(lost),
            "is" if len(lost) == 1 else "are",
        )
    return session


def _job_groups() -> list[str]:
    """Return the groups of the Spark jobs that run for topologies of this process."""
    return [group for one in running_topologies().values() for group in one.job_groups()]


def running_topologies() -> dict[str, SparkTopology]:
    """Return the topologies that `submit` has started in this process and that still run, by name."""
    return {name: one for name, one in _alive.running().items() if isinstance(one, SparkTopology)}


class SparkTopology(ServedTopology):
    """A running topology (`stormspark.engine.RunningTopology`). `submit` makes it."""

    def __init__(
        self,
        plan: PhysicalPlan,
        spark: SparkSession,
        checkpoint: str | Path | None,
        active: bool = True,
        trigger: str = CONTINUOUS,
    ) -> None:
        self._plan, self._settings = plan, plan.settings
        self._available_now = trigger == AVAILABLE_NOW
        self._session = own_session(spark)
        self._shared_session = QuerySession(spark)
        # This folder holds sockets, the workers' own folders, and the checkpoint if the user gave none. The driver removes the
        # folder at the end of the topology, or when the interpreter exits. If the driver is killed, the workers remove the
        # folder.
        self._scratch = scratch_folder()
        self._tidy_up = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        self._began = time.time()
        self._wake = threading.Event()
        self._stirred = threading.Event()  # set when the next batch should begin without a pause
        self._stop_wanted = threading.Event()
        self._killed = threading.Event()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._run: QueryRun | None = None
        self._nimbus: Nimbus
        self._claim: FolderClaim | None = None
        self._supervisor: threading.Thread | None = None
        self._acker: DurableAcker | None = None
        self._shared: SharedFolder | None = None
        self._hand_over: StateHandOver | None = None
        self._drivers_table = False
        self._reads_state = False
        self._kept = checkpoint is not None
        self._planned_restarts = 0
        # The workers that have not yet got the rows that their earlier incarnations left open.
        self._unrecovered = set(range(plan.workers))
        try:
            self._begin(spark, checkpoint, active)
        except BaseException:
            if self._supervisor is not None and self._supervisor.is_alive():
                self.kill()  # an interrupt came when everything had begun; the supervisor gives back what it has
            else:
                self._give_back()
            raise

    def _begin(self, spark: SparkSession, checkpoint: str | Path | None, active: bool) -> None:
        """Take the checkpoint, listen for workers, and start the supervisor."""
        plan, settings = self._plan, self._settings
        self._log_folder = str(drivers_log_folder(settings.log_dir, plan.topology))
        self._claim = claim_logs(self._log_folder, plan.topology)
        say_where_the_jvm_logs(self._log_folder)
        begin_step("the checkpoint folder is opened")
        self._folder = CheckpointFolder(self._session, str(checkpoint or self._scratch / "checkpoint"))
        if not settings.checkpoint_shared and (local := self._folder.local) is not None:
            check_trusted(local)
        self._network = Network.of(spark, settings)
        self._fence = Fence(self._folder.control_file(), plan, submission=submission_of(self._session))
        self._fence.keep_beating()
        self._generation = self._fence.generation
        begin_step("the state is read")
        self.storm_id = f"{plan.topology}-{self._generation}-{int(time.time())}"
        self._commits = self._batch_commits()
        begin_step("open rows and dead letters are read")
        self._acker = self._durable_acker()
        self._shared = self._shared_folder()
        self._letters, self._replays = self._dead_letters()
        self._failed_rows = FailedRows(settings.poison_attempts)
        self._throttle = Throttle(plan)
        self._end_of_input = EndOfInput(plan, available_now=self._available_now)
        self._limits = TriggerLimits(settings.batch_target_ms / 1000)
        self._tally = Tally(plan, "spark", self._throttle.pressure)
        self._tally.dead_letters_in = settings.dead_letter_dir or self._letters.place
        self._nimbus = Nimbus(
            cloudpickle.dumps(plan),
            plan.workers,
            folder=self._scratch,
            address=self._network.address,
            lease_secs=settings.worker_lease_secs,
            start_timeout_secs=settings.worker_start_timeout_secs,
            on_trouble=self._wake.set,
            on_stir=self._stirred.set,
            storm_id=self.storm_id,
            active=active,
            stuck_secs=settings.stuck_warning_secs,
            stuck_timeout_secs=settings.stuck_timeout_secs,
            prepare_timeout_secs=settings.prepare_timeout_secs,
            state=self._state_access,
            state_of=self._state_of,
            certificate=self._network.certificate,
            silence_secs=self._network.silence_secs,
            shared=self._shared,
            working_folder=settings.working_dir and os.path.abspath(settings.working_dir),
            tasks_of=plan.names_of_tasks,
        )
        self._feedback = Feedback(
            self._shared_session.session, self._scratch, f"{plan.topology} {self._folder}"
        )
        Whereabouts(plan.topology, str(self._folder), self._log_folder, self._generation, os.getpid()).write()
        self._executors = Executors(spark)
        self._executors.warn(plan)
        bring_python(self._session.sparkContext)
        self._preflight = Preflight(self._session.sparkContext, plan, self._stop_wanted.is_set)
        self._placement = Placement(
            self._session,
            self._executors,
            plan.topology,
            plan.settings.executors_wait_secs,
            self._stop_wanted.is_set,
            self._preflight,
        )
        self._supervisor = threading.Thread(
            target=self._supervise, name=f"topology-{plan.topology}", daemon=True
        )
        kept = str(self._folder) if self._kept else None
        self._server = serve(self, engine="spark", active=active, checkpoint=kept)
        self._supervisor.start()

    def _give_back(self) -> None:
        """Undo a start that failed. Only the new generation stays in the checkpoint."""
        self._close_server()
        if self._acker is not None:
            with contextlib.suppress(Exception):
                self._acker.stop()
        if hasattr(self, "_nimbus"):
            self._nimbus.close()
        if self._shared is not None:
            self._shared.close()
        if hasattr(self, "_fence"):
            self._fence.leave()
        if self._claim is not None:
            self._claim.close()
        self._tidy_up()

    # -- RunningTopology -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The topology's name."""
        return self._plan.topology

    @property
    def plan(self) -> PhysicalPlan:
        """The physical plan that runs."""
        return self._plan

    @property
    def generation(self) -> int:
        """How many drivers this checkpoint folder has seen before this one."""
        return self._generation

    @property
    def query(self) -> StreamingQuery | None:
        """Spark's own handle of the data query. Each restart makes a new one. Read from it, but end the query with `stop`."""
        return self._run.query if self._run is not None else None

    def job_groups(self) -> list[str]:
        """Return the groups of the Spark jobs that run for this topology, such as the ids of its queries' runs."""
        queries = (self.query, None if self._acker is None else self._acker.query)
        return [self._placement.group, *(str(query.runId) for query in queries if query is not None)]

    @property
    def acker(self) -> DurableAcker | None:
        """The durable acker, which keeps the source rows that stay open beyond their batch. None if the topology has none."""
        return self._acker

    def pending(self) -> DataFrame:
        """Return the source rows whose trees are open beyond their batch, as the durable acker knows them.

        The columns are root, created, value, component, task, batch, message_id and row. The data is some seconds old. A row
        whose tree ends within its batch never appears in the result.
        """
        if self._acker is None or (records := self._acker.pending()) is None:
            return self._session.createDataFrame([], OPEN_RECORDS_DDL)
        return records

    @property
    def log_folder(self) -> str:
        """The folder with the logs of tasks and workers on this host.

        On other hosts it is the same path if ``stormspark.log.dir`` is set. Otherwise it is the default folder of the worker's
        user on the worker's host.
        """
        return self._log_folder

    def links(self) -> dict[str, str]:
        """Return the addresses of the logs and, if it is on, of Spark's own page."""
        spark: dict[str, str] = {}
        with contextlib.suppress(Exception):  # the session may have been stopped
            if address := self._session.sparkContext.uiWebUrl:
                spark = {f"Spark's UI: {address}": address}
        return super().links() | spark

    @property
    def error(self) -> BaseException | None:
        """Why the topology stopped by itself, or None."""
        return self._error

    def statistics(self) -> TopologyStatistics:
        """Return the counters and latencies up to the last ended batch. They can be read after the end of the topology, too."""
        return self._tally.statistics()

    @property
    def planned_restarts(self) -> int:
        """How many times the query was started again to change `source_limits`."""
        return self._planned_restarts

    @property
    def source_limits(self) -> Mapping[str, int]:
        """How much each source spout may read per batch, in the unit of its `PerTrigger`."""
        return self._limits.units

    def worker_places(self) -> list[WorkerPlace]:
        """Return where the workers are, in order."""
        return self._nimbus.worker_places()

    def stories(self, root: int | str | None = None) -> list[Story]:
        """Return the stories that workers on this host wrote, newest first: of trees that failed, and of some that did not."""
        # The folder also holds the stories of earlier runs.
        stories = [story for story in read_stories(self._log_folder) if story.ended >= self._began]
        return stories if root is None else stories_of(stories, root)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the topology has ended, for at most ``timeout`` seconds. Return whether it has."""
        return self._ended.wait(timeout)

    def stop(self) -> None:
        """End the topology once the running batch is committed, and wait for that end.

        The workers deactivate and close their spouts, and clean up their bolts. If a call still runs on an executor's own thread,
        this method waits for it, ten seconds at most. If batches are transactions, and the running batch can't end without that
        call, the batch stays uncommitted.

        If batches are transactions, bolts may hold tuples over the end of a batch. Only a source spout can emit such a tuple
        again after a restart. So if the topology also has other spouts, this method first deactivates the spouts. Then it gives
        the held tuples one message timeout to be acked, as Storm does.
        """
        self._tally.begin_to_stop()
        self._wait_for_held()
        self._nimbus.limit_waiting()
        self._stop_wanted.set()
        self._wake.set()
        self._placement.cancel()
        self._ended.wait()

    def _wait_for_held(self) -> None:
        spouts = (one for one in self._plan.components.values() if one.kind == "spout")
        if not self._held() or all(spout.source for spout in spouts):
            return
        secs = self._settings.message_timeout_secs
        _log.info("%s waits at most %g s for %d tuples that its bolts keep", self.name, secs, self._held())
        self.deactivate()
        until = time.monotonic() + secs
        while self._held() and time.monotonic() < until and not self._stop_wanted.is_set():
            if self._ended.wait(0.1):
                return
        if self._held():
            _log.warning(
                "%s stops while its bolts keep %d tuples of committed batches: tuples that do not come from a source are lost",
                self.name,
                self._held(),
            )

    def _held(self) -> int:
        """Return the number of tuples that bolts still held when the last committed batch had ended."""
        run = self._run
        return 0 if run is None else run.held

    def waits_for(self) -> str:
        """Return what the topology waits for before its first batch ends, in words; an empty string if it is past that."""
        if self._tally.statistics().batches:
            return ""
        if self._reads_state:
            return "the state is read"
        return self._placement.waits_for() or self._nimbus.waits_for()

    @property
    def close_secs(self) -> float:
        """How long ``close`` and ``cleanup`` may take when the topology stops, in seconds."""
        return _CLOSE_SECS

    def calls_under_way(self) -> list[Busy]:
        """Return what an end of the topology would cut off, the most important first, as the workers' last heartbeats have it.

        While the topology stops, each worker sends a heartbeat every second. Of a worker with many calls, the last one stands
        for all that follow, too.
        """
        return self._nimbus.all_calls()

    def end_input(self) -> None:
        """End the input: once nothing comes for two batches, bolts flush what they hold, and the topology ends by itself.

        Rows that come meanwhile are still processed.
        """
        self._end_of_input.end()
        self._stirred.set()

    def kill(self) -> None:
        """End the topology at once, and wait for that end.

        The workers are killed and close nothing. The batch that was running will run again when the topology is restarted.
        """
        self._killed.set()
        self._stop_wanted.set()
        self._nimbus.kill_workers()
        self._wake.set()
        self._placement.cancel()
        self._ended.wait()

    def activate(self) -> None:
        """Let the spouts emit again."""
        self._nimbus.activate(True)
        self._stirred.set()

    def deactivate(self) -> None:
        """Stop the spouts from emitting. Bolts complete the tuples that are under way, and batches continue (B13)."""
        self._nimbus.activate(False)
        self._stirred.set()

    def _begin_to_stop(self) -> None:
        """Tell the statistics and the workers that the topology stops. Only the first call counts."""
        self._tally.begin_to_stop()
        self._nimbus.limit_waiting()

    # -- the supervisor --------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        try:
            self._run_attempts()
        except Exception as error:
            # If the JVM ends during a call, the call can raise any error. So test whether the JVM itself still answers.
            if _answers(self._session):
                if isinstance(error, StormsparkError):
                    # `error` of the topology has the rest.
                    _log.error("topology %s stops: %s", self.name, in_one_line(in_full(error)))
                else:
                    _log.exception("topology %s stops", self.name)
                self._error = StormsparkError(in_words(error)) if isinstance(error, Py4JError) else error
            else:
                self._error = StormsparkError("Spark's JVM has ended")
        finally:
            if self._end_of_input.is_done:
                self._begin_to_stop()
            with contextlib.suppress(Exception):
                self._end_workers()
            if self._acker is not None:
                with contextlib.suppress(Exception):
                    self._acker.stop()
            self._nimbus.close()
            self._placement.end()
            if self._shared is not None:
                self._shared.close()
            self._fence.leave()
            assert self._claim is not None
            self._claim.close()
            self._tidy_up()
            self._tally.stop()
            self._shared_session.tell_end(self._error)
            self._close_server()
            self._ended.set()

    def _run_attempts(self) -> None:
        """Run one query after another until the topology has to end or a batch has failed too often."""
        attempt, reason = 0, ""
        settings = self._settings
        retries = self._retries = Retries(
            settings.max_attempts, settings.outage_timeout_secs, settings.restart_max_delay_secs
        )
        while True:
            run = self._run = QueryRun(
                self._shared_session,
                self._plan,
                self._attempt(attempt, reason),
                self._tally,
                self._throttle,
                self._limits,
                self._stop_wanted,
                self._wake,
                self._stirred,
                self._acker,
                self._feedback,
                self._available_now,
                self._commits,
                self._failed_rows,
                self._fence,
                self._letters,
                end_of_input=self._end_of_input,
            )
            try:
                self._fence.check()
                self._recover()
            except FencedError as error:
                self._error = error
                return
            except Exception as error:
                if attempt == 0 and not isinstance(error, CheckpointError | OSError):
                    raise
                run.failure = in_full(error)
                run.failed_outside = is_outside_error(error)
            else:
                try:
                    self._placement.place(run.attempt, self._nimbus)
                except UnsupportedEnvironmentError as error:
                    self._error = error
                    return
                # What a worker has told at its start, such as a folder that its host does not share, needs no query to be told.
                if self._nimbus.error is None:
                    self._start(run, first=attempt == 0 and not self._planned_restarts)
            self._error = self._nimbus.error or run.error
            if self._error is not None or self._stop_wanted.is_set():
                return
            if run.stopped_by_others and self._ends_with_its_query():
                return
            planned = bool(run.new_limits) and run.failure is None and self._nimbus.broken is None
            if run.succeeded or planned:
                retries.succeeded()
            if planned:
                # The restart was planned, and no batch has begun. So the attempt continues, and workers notice nothing.
                self._planned_restarts += 1
                for new in run.new_limits:
                    _log.info("%s starts its query again with a new limit: %s", self.name, new)
                continue
            reason = self._nimbus.broken or run.failure or "the query ended"
            outside = self._nimbus.broken_outside if self._nimbus.broken else run.failed_outside
            lost = self._nimbus.lost_workers()
            outside |= self._executors.took_workers(lost)
            reason += self._executors.why_lost(self._plan, lost)
            self._unrecovered |= lost
            if self._session.sparkContext._jsc.sc().isStopped():
                self._error = StormsparkError("the Spark session was stopped while the topology ran")
                return
            now = time.monotonic()
            msg = retries.failed(run.batch_number, reason, outside=outside, now=now)
            if msg is not None:
                self._error = WorkerLostError(msg) if self._nimbus.broken else StormsparkError(msg)
                return
            attempt += 1
            if self._plan.exactly_once:
                self._tally.add_taken_back(reason)
            text = retries.to_log(attempt, now)
            if text is not None:
                line = in_one_line(text)
                more = "" if line == text else f" (logs: {self._log_folder})"
                _log.warning("%s: %s%s", self.name, line, more)
            if self._stop_wanted.wait(retries.delay_secs):
                return
            if run.transaction is not None:
                self._failed_rows.add(retries.batch, run.transaction.failed_rows)
            self._nimbus.begin_attempt(attempt)
            self._throttle.begin()
            self._end_of_input.begin_attempt()

    def _ends_with_its_query(self) -> bool:
        """Whether the topology has to end because somebody has stopped its query, as with ``spark.streams.active[0].stop()``."""
        if self._session.sparkContext._jsc.sc().isStopped():
            return False
        try:
            # Spark itself stops a query if another driver in this process takes over the checkpoint.
            self._fence.check()
        except FencedError as error:
            self._error = error
            return True
        except (CheckpointError, OSError):
            return False
        _log.warning(
            "%s ends, because its query was stopped in the Spark session. Batch %d is not committed, and a later start with the "
            "same checkpoint does it again. `stop` of the running topology ends it between two batches",
            self.name,
            self._run.batch_number if self._run is not None else 0,
        )
        self._begin_to_stop()
        self._stop_wanted.set()
        return True

    def _start(self, run: QueryRun, *, first: bool) -> None:
        """Start a query and watch it until it ends.

        If the very first query can't start, none ever will, so the error ends the topology. If a later query can't start,
        the reason may be storage that can't be reached, and another attempt may help. But no attempt repairs a source that no
        longer fits its spout, such as a table whose column was renamed.
        """
        try:
            run.start(self._folder.spark)
        except Exception as error:
            if first or isinstance(error, InvalidTopologyError):
                raise
            run.failure, run.failed_outside = in_full(error), True
        else:
            self._watch(run)

    def _recover(self) -> None:
        """Prepare the next attempt. No batch runs meanwhile."""
        self._reads_state = True
        try:
            self._give_new_workers_theirs()
        finally:
            self._reads_state = False

    def _give_new_workers_theirs(self) -> None:
        """Give each new worker its state, and the rows that its earlier incarnations left open."""
        if self._commits is not None:
            self._commits.reopen()
            assert self._run is not None
            self._run.attempt = replaced(self._run.attempt, earlier=self._earlier_attempts(self._commits))
        if self._hand_over is not None:
            self._hand_over.read(self._unrecovered)
        messages: dict[int, list[Adopt]] = {}
        if self._replays is not None:
            messages = self._replays.messages(self._unrecovered, self._last_committed())
        if self._acker is not None and self._unrecovered:
            first = self._folder.last_committed_batch() + 1
            for worker, left_open in self._acker.recover(self._unrecovered, first).items():
                rows = sum(len(message.rows) for message in left_open)
                _log.info("%d rows that were open in lost worker %d are emitted again", rows, worker)
                messages[worker] = [*messages.get(worker, ()), *left_open]
        for worker, adopted in messages.items():
            self._nimbus.adopt(worker, adopted)
        self._unrecovered.clear()

    def _last_committed(self) -> int:
        """Return the batch that was committed last; -1 if there is none."""
        return self._folder.last_committed_batch() if self._commits is None else self._commits.last

    def _dead_letters(self) -> tuple[LettersOfBatches, LetterReplays | None]:
        """Return what takes the dead letters, and the rows of earlier ones that somebody wants to be emitted again.

        The letters of a topology without a checkpoint go to a file, because a temporary folder goes with its driver.
        """
        if not self._kept:
            return LetterLines(self._log_folder), None
        try:
            table = self._folder.dead_letters()
        except OSError as error:
            msg = f"the checkpoint folder {self._folder} can't be used: {error}"
            raise CheckpointError(msg) from error
        batch = self._last_committed() + 1
        found = table.assign(batch, [source.id for source in self._plan.sources])
        return table, LetterReplays(self._plan, found) if found else None

    def _earlier_attempts(self, commits: BatchCommits) -> EarlierAttempts:
        """Return the facts that earlier attempts left for the next batch, which is the one after the last committed batch."""
        announced_batch, announced = commits.announced()
        batch = commits.last + 1
        return EarlierAttempts(
            batch, self._failed_rows.given_up(batch), announced if announced_batch == batch else {}
        )

    def _shared_folder(self) -> SharedFolder | None:
        """Return the folder in the checkpoint that workers have to see. None if the checkpoint is at a URL, or if only the driver
        writes to it.
        """
        plan = self._plan
        if self._folder.local is None:
            return None
        if self._acker is not None:
            # The workers themselves write nothing. But the Spark executors beside them write the acker query's state.
            otherwise = (
                "set stormspark.acker.durable to false; then rows that are open in a window or a join are lost with their "
                "worker"
            )
        elif plan.exactly_once and (
            self._settings.record_inputs
            or plan.sources  # for rows whose tuples bolts hold over the end of a batch
            or any(one.kind_of_state for one in plan.components.values())
        ):
            if self._drivers_table:
                return None
            otherwise = (
                "set stormspark.state.table to driver; then the driver writes the changes of all workers"
            )
        else:
            return None
        try:
            return SharedFolder(Path(str(self._folder), "stormspark"), otherwise)
        except OSError as error:
            msg = f"the checkpoint folder {self._folder} can't be used: {error}"
            raise CheckpointError(msg) from error

    def _durable_acker(self) -> DurableAcker | None:
        """Return the durable acker. None if the topology has no source spouts, or if the settings turn acking or the acker off.

        It is also None if batches are transactions, because then no tree outlives its batch.
        """
        wanted = self._settings.acking and self._settings.acker_durable and not self._plan.exactly_once
        if not self._plan.sources or not wanted:
            return None
        return DurableAcker(
            self._session,
            self._plan,
            self._folder,
            self._generation,
            self._adopt,
            self._scratch,
        )

    def _adopt(self, worker: int, messages: list[Adopt]) -> None:
        self._nimbus.adopt(worker, messages)

    def _batch_commits(self) -> BatchCommits | None:
        """If batches are transactions, open the state table for commits and return it. Opening it fences every earlier writer."""
        if not self._plan.exactly_once:
            return None
        table = self._table_of_spark() or self._table_of_driver()
        self._drivers_table = isinstance(table, DriversStateTable)
        if table is not None:
            self._hand_over = StateHandOver(self._plan, table, self._scratch)
        commits = BatchCommits(self._plan, self._folder.state_table, self._generation, table=table)
        commits.open(self._folder.last_committed_batch())
        return commits

    def _table_of_spark(self) -> SparkStateTable | None:
        """Return the state table if Spark has to write it; otherwise None."""
        settings = self._settings
        if not is_for_spark(settings.state_table, self._folder.state_table):
            return None
        if settings.record_inputs:
            msg = (
                f"stormspark.record.inputs makes workers write recordings beside the state table {self._folder.state_table}, "
                f"but Spark writes that table (stormspark.state.table). Remove stormspark.record.inputs, or give a checkpoint "
                f"folder that delta-rs can write to"
            )
            raise UnsupportedEnvironmentError(msg)
        return SparkStateTable(
            self._session,
            self._folder.state_table_for_spark,
            retain_txids=settings.state_retain_txids,
            retain_hours=settings.state_retain_hours,
        )

    def _table_of_driver(self) -> DriversStateTable | None:
        """Return the state table if the driver writes it, and workers hand their changes to the driver; otherwise None."""
        settings = self._settings
        # The user gave no checkpoint, so the folder is the driver's own. Workers on other hosts can't see it.
        alone = not self._kept and self._network.address is not None
        if settings.state_table != "driver" and (settings.state_table is not None or not alone):
            return None
        if settings.record_inputs:
            msg = (
                "stormspark.record.inputs makes workers write recordings beside the state table, but the driver writes that "
                "table (stormspark.state.table). Remove stormspark.record.inputs, or give a checkpoint folder that all hosts "
                "share"
            )
            raise UnsupportedEnvironmentError(msg)
        return DriversStateTable(
            self._folder.state_table,
            retain_txids=settings.state_retain_txids,
            retain_hours=settings.state_retain_hours,
        )

    def _state_of(self, worker: int) -> Iterable[bytes]:
        return () if self._hand_over is None else self._hand_over.parts(worker)

    def _state_access(self) -> StateAccess | None:
        commits = self._commits
        if commits is None:
            return None
        return StateAccess(
            commits.location, commits.generation, commits.last, commits.storage_options, commits.by_driver
        )

    def _watch(self, run: QueryRun) -> None:
        """Watch the query, and return once it has ended.

        A query ends at the gate, by itself, or because the supervisor stops it between two batches.
        """
        look_secs = min(_LOOK_SECS, self._settings.worker_lease_secs / 6)
        while True:
            if self._wake.wait(look_secs):
                self._stirred.set()
            self._wake.clear()
            self._nimbus.look_for_silence()
            if self._end_of_input.is_done:
                # Spouts that emit between batches do so until the workers are told. Before, `is_between_batches` is never true.
                self._begin_to_stop()
            if self._killed.is_set() or self._nimbus.error is not None or self._nimbus.broken is not None:
                # Most forwarders find out by themselves that the attempt is over. Cancelling the jobs also ends forwarders that
                # wait, and tasks that have not begun.
                run.cancel()
            end_wanted = self._stop_wanted.is_set() or bool(run.new_limits)
            if run.gate.reached.is_set() or (end_wanted and run.is_between_batches()):
                run.stop()
                return
            if not run.is_active():
                run.note_end()
                return

    def _end_workers(self) -> None:
        if self._killed.is_set() or self._error is not None:
            self._nimbus.kill_workers()
        elif not self._nimbus.close_workers(_CLOSE_SECS, -1 if self._commits is None else self._commits.last):
            _log.warning("a worker of %s did not close within %g s and is killed", self.name, _CLOSE_SECS)
            self._tally.add_not_returned(self._nimbus.calls())
            self._nimbus.kill_workers()
        self._tally.add_last_reports(map(read_report, self._nimbus.last_reports))
        self._tally.add_not_returned(self._nimbus.not_returned)

    def _attempt(self, attempt: int, reason: str) -> Attempt:
        return Attempt(
            topology=self.name,
            generation=self._generation,
            attempt=attempt,
            reason=reason,
            workers=self._plan.workers,
            partitions=self._plan.partitions,
            supersteps=self._plan.last_superstep + 1,
            nimbus=self._nimbus.endpoint,
            key=self._nimbus.key,
            log_folder=self._network.workers_log_folder(self._settings.log_dir, self._log_folder),
            start_timeout_secs=self._settings.worker_start_timeout_secs,
            ports=self._network.worker_ports,
            silence_secs=self._network.silence_secs,
            sources=wants_sources(),
        )


def _answers(session: SparkSession) -> bool:
    """Whether Spark's JVM still answers."""
    try:
        session.sparkContext._jvm.java.lang.System.nanoTime()  # type: ignore[union-attr]
    except Exception:
        return False
    return True
