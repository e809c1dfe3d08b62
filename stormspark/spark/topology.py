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
import threading
import time
import weakref
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from stormspark.api import Topology
from stormspark.checkpoint.commands import CommandBox
from stormspark.checkpoint.state_components import StatePlace
from stormspark.config import merged
from stormspark.cores import cores_of_master
from stormspark.driver.event_sampling import EventSampling
from stormspark.driver.source_lag import Lags
from stormspark.driver.start_steps import begin_step
from stormspark.driver.tally import Tally
from stormspark.engine import AVAILABLE_NOW, CONTINUOUS, TRIGGERS, AliveTopologies
from stormspark.errors import (
    FencedError,
    InvalidTopologyError,
    StatusError,
    StormsparkError,
)
from stormspark.launcher import spark_launcher
from stormspark.metrics import TopologyStatistics
from stormspark.operations.facts import WorkerPlace
from stormspark.operations.served import ServedTopology
from stormspark.operations.server import serve
from stormspark.plan import log_advice, plan_topology
from stormspark.plan.physical import PhysicalPlan
from stormspark.plan.rebalance import rebalanced
from stormspark.plan.workers import follows_cores
from stormspark.private_files import FolderClaim, check_trusted, claim_logs, drivers_log_folder
from stormspark.reporting.reporting import Reporting
from stormspark.running import end
from stormspark.spark.checkpoint_folder import CheckpointFolder
from stormspark.spark.commands import command_box
from stormspark.spark.cores import session_cores
from stormspark.spark.delta_jars import conf_of_session
from stormspark.spark.drivers_python import bring_python
from stormspark.spark.durable_acker import OPEN_RECORDS_DDL, DurableAcker
from stormspark.spark.executors import Executors
from stormspark.spark.feedback import Feedback
from stormspark.spark.fence import Fence, check_checkpoint, submission_of
from stormspark.spark.interrupts import spare_jobs
from stormspark.spark.java_errors import in_full, in_one_line, in_words
from stormspark.spark.jvm import log_no_interrupts
from stormspark.spark.layout import CLOSE_SECS, Layout
from stormspark.spark.layout_changes import Change, LayoutChanges, size_of
from stormspark.spark.left_queries import stop_left_queries
from stormspark.spark.network import Network
from stormspark.spark.preflight import Preflight
from stormspark.spark.premises import Premises
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
from stormspark.spark.source_lags import source_lags
from stormspark.spark.sources import require_known_end
from stormspark.spark.spark_state_table import is_for_spark
from stormspark.spark.trigger_limits import TriggerLimits
from stormspark.spark.whereabouts import Whereabouts
from stormspark.worker.busy import Busy
from stormspark.worker.stories.story import Story, read_stories, stories_of

__all__ = ["TRIGGERS", "SparkTopology", "running_topologies", "submit"]

_log = logging.getLogger(__name__)

_LOOK_SECS = 0.05
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
        self._reporting = Reporting(plan)
        self._available_now = trigger == AVAILABLE_NOW
        self._session = own_session(spark)
        self._shared_session = QuerySession(spark)
        # This folder holds sockets, the workers' own folders, and the checkpoint if the user gave none. The driver removes the
        # folder at the end of the topology, or when the interpreter exits. If the driver is killed, the workers remove the
        # folder.
        self._scratch, remove = scratch_folder()
        self._tidy_up = weakref.finalize(self, remove)
        self._began = time.time()
        self._wake, self._stirred, self._killed = threading.Event(), threading.Event(), threading.Event()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._sampling = EventSampling()
        self._tally = Tally(plan, "spark")
        self._claim: FolderClaim | None = None
        self._supervisor: threading.Thread | None = None
        self._commands: CommandBox | None = None
        self._end_wanted = threading.Event()
        #: Guards what follows.
        self._changing = threading.Lock()
        self._layout: Layout | None = None
        self._changes = LayoutChanges(plan)
        self._active = active
        self._input_ended = False
        self._levels: Mapping[str, int] = {}
        self._earlier_restarts = 0
        try:
            self._begin(spark, plan, checkpoint)
        except BaseException:
            if self._supervisor is not None and self._supervisor.is_alive():
                self.kill()  # an interrupt came when everything had begun; the supervisor gives back what it has
            else:
                self._give_back()
            raise

    def _begin(self, spark: SparkSession, plan: PhysicalPlan, checkpoint: str | Path | None) -> None:
        """Take the checkpoint, listen for workers, and start the supervisor."""
        settings = plan.settings
        self._log_folder = str(drivers_log_folder(settings.log_dir, plan.topology))
        self._claim = claim_logs(self._log_folder, plan.topology)
        say_where_the_jvm_logs(self._log_folder)
        begin_step("the checkpoint folder is opened")
        folder = CheckpointFolder(self._session, str(checkpoint or self._scratch / "checkpoint"))
        if not settings.checkpoint_shared and (local := folder.local) is not None:
            check_trusted(local)
        network = Network.of(spark, settings)
        self._fence = Fence(folder.control_file(), plan, submission=submission_of(self._session))
        self._fence.keep_beating()
        self.storm_id = f"{plan.topology}-{self._fence.generation}-{int(time.time())}"
        executors = Executors(spark)
        self._premises = Premises(
            session=self._session,
            shared_session=self._shared_session,
            scratch=self._scratch,
            folder=folder,
            is_kept=checkpoint is not None,
            network=network,
            fence=self._fence,
            executors=executors,
            preflight=Preflight(self._session.sparkContext, plan, self._end_wanted.is_set),
            feedback=Feedback(self._shared_session.session, self._scratch, f"{plan.topology} {folder}"),
            limits=TriggerLimits(settings.batch_target_ms / 1000),
            tally=self._tally,
            sampling=self._sampling,
            storm_id=self.storm_id,
            log_folder=self._log_folder,
            available_now=self._available_now,
            wake=self._wake,
            stirred=self._stirred,
            killed=self._killed,
        )
        self._lay_out(Layout(self._premises, plan, active=self._active, is_first=True))
        Whereabouts(plan.topology, str(folder), self._log_folder, self.generation, os.getpid()).write()
        executors.warn(plan)
        bring_python(self._session.sparkContext)
        self._supervisor = threading.Thread(target=self._supervise, name=f"topology-{self.name}", daemon=True)
        kept = None if checkpoint is None else str(folder)
        self._server = serve(self, engine="spark", active=self._active, checkpoint=kept)
        if self._server is not None and kept is not None:
            self._commands = command_box(folder, self._fence.driver, self._server, self.storm_id)
        self._begin_reporting(self, self._log_folder)
        self._supervisor.start()

    def _lay_out(self, layout: Layout) -> None:
        """Make this the layout of the topology, before its workers start."""
        plan, self._layout = layout.plan, layout
        self._tally.lay_out(plan, layout.throttle.pressure)
        self._tally.dead_letters_in = plan.settings.dead_letter_dir or layout.recovery.letters.place

    def _give_back(self) -> None:
        """Undo a start that failed. Only the new generation stays in the checkpoint."""
        self._close_server()
        if self._layout is not None:
            self._layout.close()
        if hasattr(self, "_fence"):
            self._fence.leave()
        if self._claim is not None:
            self._claim.close()
        self._tidy_up()

    # -- RunningTopology -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The topology's name."""
        return self.plan.topology

    @property
    def plan(self) -> PhysicalPlan:
        """The physical plan that runs, or that was laid out last."""
        return self._tally.plan

    @property
    def generation(self) -> int:
        """How many layouts of the topology this checkpoint folder has seen before this one, in this driver and earlier ones."""
        return self._fence.generation

    @property
    def query(self) -> StreamingQuery | None:
        """Spark's own handle of the data query. Each restart makes a new one. Read from it, but end the query with `stop`."""
        run = self._now.query_run
        return None if run is None else run.query

    @property
    def _now(self) -> Layout:
        assert self._layout is not None
        return self._layout

    def job_groups(self) -> list[str]:
        """Return the groups of the Spark jobs that run for this topology, such as the ids of its queries' runs."""
        queries = (self.query, None if self.acker is None else self.acker.query)
        return [self._now.placement.group, *(str(query.runId) for query in queries if query is not None)]

    @property
    def acker(self) -> DurableAcker | None:
        """The durable acker, which keeps the source rows that stay open beyond their batch. None if the topology has none."""
        return self._now.recovery.acker

    def pending(self) -> DataFrame:
        """Return the source rows whose trees are open beyond their batch, as the durable acker knows them.

        The columns are root, created, value, component, task, batch, message_id and row. The data is some seconds old. A row
        whose tree ends within its batch never appears in the result.
        """
        if self.acker is None or (records := self.acker.pending()) is None:
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
        return self._earlier_restarts + self._now.planned_restarts

    @property
    def source_limits(self) -> Mapping[str, int]:
        """How much each source spout may read per batch, in the unit of its `PerTrigger`."""
        return self._premises.limits.units

    @property
    def state_table(self) -> StatePlace | None:
        """Where the table is to which batches commit the state; None if batches are no transactions."""
        commits = None if self._layout is None else self._layout.recovery.commits
        if commits is None:
            return None
        return StatePlace(commits.location, is_for_spark(self.plan.settings.state_table, commits.location))

    def lags(self) -> Lags:
        """Return how far the spouts that read Kafka are behind, as of the last batch."""
        return source_lags(self.plan, self.query)

    def worker_places(self) -> list[WorkerPlace]:
        """Return where the workers are, in order."""
        return self._now.nimbus.worker_places()

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
        with self._changing:
            self._end_wanted.set()
            layout = self._now
        layout.end()
        self._ended.wait()

    def waits_for(self) -> str:
        """Return what the topology waits for before its first batch ends, in words; an empty string if it is past that."""
        if self._tally.has_reports:
            return ""
        return self._now.waits_for()

    @property
    def close_secs(self) -> float:
        """How long ``close`` and ``cleanup`` may take when the topology stops, in seconds."""
        return CLOSE_SECS

    def calls_under_way(self) -> list[Busy]:
        """Return what an end of the topology would cut off, the most important first, as the workers' last heartbeats have it.

        While the topology stops, each worker sends a heartbeat every second. Of a worker with many calls, the last one stands
        for all that follow, too.
        """
        return self._now.nimbus.all_calls()

    def end_input(self) -> None:
        """End the input: once nothing comes for two batches, bolts flush what they hold, and the topology ends by itself.

        Rows that come meanwhile are still processed.
        """
        with self._changing:
            self._input_ended = True
            self._now.end_of_input.end()
        self._stirred.set()

    def kill(self) -> None:
        """End the topology at once, and wait for that end.

        The workers are killed and close nothing. The batch that was running will run again when the topology is restarted.
        """
        self._killed.set()
        with self._changing:
            self._end_wanted.set()
            layout = self._layout
        if layout is not None:
            layout.kill()
        self._ended.wait()

    def activate(self) -> None:
        """Let the spouts emit again."""
        self._set_active(True)

    def deactivate(self) -> None:
        """Stop the spouts from emitting. Bolts complete the tuples that are under way, and batches continue (B13)."""
        self._set_active(False)

    def _set_active(self, active: bool) -> None:
        with self._changing:
            self._active = active
            self._now.activate(active)

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Give loggers these levels, in this process and in all workers, and take back those of a former call (J22)."""
        super().set_log_levels(levels)
        with self._changing:
            self._levels = levels
            layout = self._layout
        if layout is not None:
            layout.nimbus.set_log_levels(levels)

    def restart(self, workers: Collection[int]) -> None:
        """Let these workers start anew, in new processes (J6). Their trees fail, and their tasks with state go on with it."""
        self._now.nimbus.restart_workers(workers)

    def rebalance(self, *, workers: int | None = None, executors: Mapping[str, int] | None = None) -> None:
        """Lay the topology out anew, with other numbers of workers, and of executors by component (J3). See `lay_out`.

        Raises `InvalidTopologyError` for numbers that can't be, and `StatusError` if the topology ends.
        """
        self.lay_out(self.rebalanced(workers=workers, executors=executors))

    def rebalanced(
        self, *, workers: int | None = None, executors: Mapping[str, int] | None = None
    ) -> PhysicalPlan:
        """Return the plan with other numbers of workers and executors. Raises `InvalidTopologyError`."""
        return rebalanced(self.plan, workers=workers, executors=executors)

    def lay_out(self, plan: PhysicalPlan) -> None:
        """End the workers at the next batch boundary, and go on with those of another plan of this topology.

        Return when these are up, or the topology has ended. If they can't start, the topology goes back to the plan that it had.
        Raises `StatusError`, which says why, once it runs by that again. Also raises `StatusError` if the topology ends, or is
        being laid out anew already.

        What is kept of a topology at its end is kept here: the state of an exactly-once topology, the rows of sources, and those
        that are open. The memory of other bolts is lost, as in Storm (J3).
        """
        with self._changing:
            if self._end_wanted.is_set() or self._changes.next is not None or self._ended.is_set():
                what = "ends" if self._changes.next is None else "is being laid out anew already"
                msg = f"topology {self.name!r} {what}, so it can't be rebalanced now"
                raise StatusError(msg)
            change = self._changes.ask(plan)
            layout = self._now
        layout.end()
        while (self._changes.next is not None or self.waits_for()) and not self._ended.wait(_LOOK_SECS):
            pass
        if change.refusal is not None and not self._ended.is_set():
            raise change.refusal

    # -- the supervisor --------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        try:
            self._run_layouts()
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
            if self._commands is not None:
                self._commands.close()
            self._fence.leave()
            assert self._claim is not None
            self._claim.close()
            self._tidy_up()
            self._tally.stop()
            self._shared_session.tell_end(self._error)
            self._close_server()
            self._ended.set()

    def _run_layouts(self) -> None:
        """Run one layout after another until the topology has to end."""
        while True:
            layout = self._now
            raised: Exception | None = None
            try:
                layout.run()
            except Exception as failure:
                raised = failure
            finally:
                if layout.end_of_input.is_done:
                    layout.begin_to_stop()
                with contextlib.suppress(Exception):
                    layout.end_workers()
                layout.close()
            if layout.nimbus.has_begun:
                with self._changing:
                    self._changes.begun()
            error = raised or layout.error
            if error is not None and not self._take_back(self._changes.present, error):
                self._error = error
                if raised is not None:
                    raise raised
                return
            if layout.end_of_input.is_done or not self._lay_out_anew(layout):
                return

    def _take_back(self, change: Change, error: BaseException) -> bool:
        """Go back to the layout before, if that of ``change`` could not start. Return whether there is a way back.

        Raises `StormsparkError` if this change was itself the way back.
        """
        ends = self._end_wanted.is_set() or self._killed.is_set()
        if ends or isinstance(error, FencedError) or not _has_session(self._session):
            return False
        with self._changing:
            if not self._changes.take_back(change, error):
                return False
            back = self._changes.next
        assert back is not None
        _log.warning(
            "%s could not start with %s, and goes back to %s: %s",
            self.name,
            size_of(change.plan),
            size_of(back.plan),
            in_one_line(in_full(error)),
        )
        return True

    def _lay_out_anew(self, before: Layout) -> bool:
        """Make the next layout, if somebody wants one. Return whether there is one to run.

        If the driver itself can't make it, such as for lack of file descriptors, the topology goes back to the one before.
        The checkpoint is needed for it, so this waits for storage that can't be reached, as a batch would. Raises the errors of
        `Layout`, and `FencedError` if another driver has taken the checkpoint.
        """
        change, settings = self._changes.next, before.plan.settings
        if change is None:
            return False
        plan = change.plan
        retries = Retries(
            settings.max_attempts, settings.outage_timeout_secs, settings.restart_max_delay_secs
        )
        while not self._end_wanted.is_set():
            try:
                self._fence.begin_generation(plan)
                layout = Layout(self._premises, plan, active=self._active, is_first=False)
            except FencedError:
                raise
            except Exception as error:
                text = in_full(error)
                given_up = retries.failed(-1, text, outside=is_outside_error(error), now=time.monotonic())
                if given_up is not None:
                    msg = f"{self.name} could not be laid out anew: {given_up}"
                    # The layout before would need the same storage.
                    may_help = bool(change.takes_back) or not is_outside_error(error)
                    if may_help and self._take_back(change, StormsparkError(msg)):
                        return self._lay_out_anew(before)
                    raise StormsparkError(msg) from error
                _log.warning("%s is not laid out anew yet: %s", self.name, in_one_line(text))
                self._end_wanted.wait(retries.delay_secs)
                continue
            with self._changing:
                if self._end_wanted.is_set():
                    layout.close()
                    return False
                self._lay_out(layout)
                self._changes.laid_out()
                self._earlier_restarts += before.planned_restarts
                layout.nimbus.activate(self._active)
                layout.nimbus.set_log_levels(self._levels)
                if self._input_ended:
                    layout.end_of_input.end()
            return True
        return False


def _has_session(session: SparkSession) -> bool:
    """Whether Spark's JVM still answers, and the session was not stopped."""
    try:
        return not session.sparkContext._jsc.sc().isStopped()
    except Exception:
        return False


def _answers(session: SparkSession) -> bool:
    """Whether Spark's JVM still answers."""
    try:
        session.sparkContext._jvm.java.lang.System.nanoTime()  # type: ignore[union-attr]
    except Exception:
        return False
    return True
