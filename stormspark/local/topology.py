"""A topology that the local engine runs."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from random import Random

from stormspark.driver.end_of_input import EndOfInput
from stormspark.driver.event_sampling import EventSampling
from stormspark.driver.letter_lines import LetterLines
from stormspark.driver.slow_calls import LAST_BATCH_SECS, SlowCalls
from stormspark.driver.source_lag import Lags
from stormspark.driver.tally import Tally
from stormspark.driver.throttle import Throttle
from stormspark.errors import StatusError, StormsparkError
from stormspark.local.clock import SimulatedClock
from stormspark.local.sources import LocalSources
from stormspark.local.supersteps import BatchTakenBackError, InProcessWorkers
from stormspark.metrics import Quiet, TopologyStatistics
from stormspark.operations.facts import WorkerPlace
from stormspark.operations.served import ServedTopology
from stormspark.operations.server import serve
from stormspark.plan.physical import PhysicalPlan
from stormspark.private_files import claim_logs, drivers_log_folder
from stormspark.reporting.reporting import Reporting
from stormspark.worker.busy import Busy
from stormspark.worker.executors.thread import STOP_SECS
from stormspark.worker.host.garbage import GarbageBetweenBatches
from stormspark.worker.host.lifeline import this_process
from stormspark.worker.host.task_logs import TaskLogs
from stormspark.worker.step import fatal_error
from stormspark.worker.stories.story import Story, merge_stories, read_stories, stories_of

__all__ = ["CORES", "LocalTopology", "steps"]

_log = logging.getLogger(__name__)

#: How many cores this engine offers to workers. The number is one, because all workers run in one thread of this process.
CORES = 1

_IDLE_SLEEP = 0.001  # the pause while spouts emit nothing, as in Storm's wait strategy (B12)
_LAST_SLEEP = 0.02  # the longest pause while a stop waits for calls
_STEP = 0.25  # the seconds of simulated time between two batches
_LOOK_SECS = 0.25  # a thread looks this often for calls of user code that take long
_STUCK_SECS = 10.0  # `stop` warns about a call of user code that takes longer
_MARGIN_SECS = 0.5  # executors and coroutines are given up after `STOP_SECS`, so the calls of the worker's thread are after that
_starts = itertools.count(1)  # gives each topology of this process a number (A14)


def _no_limit(spout: str) -> None:
    return None


def _logs_of(plan: PhysicalPlan, *, use_default: bool) -> TaskLogs | None:
    """Make the log files of tasks in the folder that the user has named. If there is none, make them in the default folder if
    ``use_default``; otherwise return None.

    Raises `UnsupportedEnvironmentError` for a folder that is not safe, or can't be made.
    """
    settings = plan.settings
    if not (settings.log_dir or use_default):
        return None
    folder = drivers_log_folder(settings.log_dir, plan.topology)
    return TaskLogs(folder, 0, settings.log_level, settings.log_max_bytes, settings.log_backup_count)


def steps(seconds: float, step: float) -> Iterator[float]:
    """Yield steps that add up to ``seconds``. All have the length ``step``, except for the rest at the end.

    >>> list(steps(2.5, 1.0))
    [1.0, 1.0, 0.5]
    """
    while seconds > 1e-9:
        yield min(step, seconds)
        seconds -= step


class LocalTopology(ServedTopology):
    """A topology that runs in a thread of its own on real time, or step by step on a `SimulatedClock`.

    If ``show`` is given, this process exists for the topology, which takes over its logging, stdout and stderr until it ends; see
    `TaskLogs.take_over`.

    With ``available_now`` the topology processes the rows that its sources have when it starts, and then ends.

    Making the object raises `ComponentError` if a component can't be opened or prepared, and `InvalidTopologyError` if a spout's
    source can't be read without Spark.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        clock: Callable[[], float] = time.monotonic,
        random: Random | None = None,
        *,
        active: bool = True,
        show: Callable[[str | None, logging.LogRecord], None] | None = None,
        available_now: bool = False,
    ) -> None:
        self._reporting = Reporting(plan)
        self._logs = _logs_of(plan, use_default=show is not None)
        self._claim = None if self._logs is None else claim_logs(self._logs.directory, plan.topology)
        self._sources = LocalSources(plan, available_now=available_now)
        self._end_of_input = EndOfInput(plan, available_now=available_now)
        self.plan = plan
        self.error: BaseException | None = None
        self._clock = clock
        self._throttle = Throttle(plan)
        self._sampling = EventSampling()
        self._tally = Tally(plan, "local", self._throttle.pressure)
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._graceful = True
        self._work_done = 0
        self._active = self._wanted_active = active
        self.storm_id = f"{plan.topology}-{next(_starts)}-{int(time.time())}"
        self._began = 0.0 if isinstance(clock, SimulatedClock) else time.time()
        letters = None if self._logs is None else LetterLines(self._logs.directory)
        self._tally.dead_letters_in = plan.settings.dead_letter_dir or (
            None if letters is None else letters.place
        )
        self.workers = InProcessWorkers(
            plan, clock, random, self.storm_id, self._logs, self._tally.add_taken_back, letters
        )
        self._garbage: GarbageBetweenBatches | None = None
        #: Whether the tasks get their last calls now, such as ``cleanup``.
        self._is_closing = False
        self._finishing = threading.Lock()
        # The watch begins before the tasks are opened, because that may take long, too.
        if not isinstance(clock, SimulatedClock):
            threading.Thread(target=self._watch, name=f"watch {plan.topology}", daemon=True).start()
        if self._logs is not None and show is not None:
            self._logs.take_over(show)
        elif self._logs is not None:
            self._logs.join()
        self._thread: threading.Thread | None = None
        try:
            self.workers.open(active)
            if not isinstance(clock, SimulatedClock):
                name = f"topology {plan.topology}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            if show is not None:
                # A command may come before the thread starts. If it ends the topology, the thread finds that out.
                self._server = serve(self, engine="local", active=active, checkpoint=None)
            self._begin_reporting(self, self.log_folder, clock if isinstance(clock, SimulatedClock) else None)
        except BaseException:
            self._finish()
            raise
        if self._thread is not None:
            self._thread.start()

    @property
    def name(self) -> str:
        """The topology's name."""
        return self.plan.topology

    @property
    def log_folder(self) -> str | None:
        """The folder with the logs of tasks; None if tasks log to this process's own log alone."""
        return None if self._logs is None else str(self._logs.directory)

    @property
    def is_simulated(self) -> bool:
        """Whether a test drives the clock. Then batches run only while the test calls a method such as `advance_time`."""
        return self._thread is None

    def statistics(self) -> TopologyStatistics:
        """Return the counters and latencies of the topology so far."""
        return self._tally.statistics()

    def lags(self) -> Lags:
        """Return how far the spouts that read Kafka are behind."""
        return self._sources.lags()

    def worker_places(self) -> list[WorkerPlace]:
        """Return where the workers are, in order."""
        me, since = this_process(), self._began
        return [WorkerPlace(worker, me.host, me.pid, since) for worker in range(self.plan.workers)]

    def stories(self, root: int | str | None = None) -> list[Story]:
        """Return stories of trees that failed, and of some that did not, newest first.

        ``root`` selects stories: it is the root of a tree, the beginning of a root, or a message id. Each worker keeps the last
        thousand notes about trees that failed, and the last thousand about others. If ``stormspark.log.dir`` is set, the stories
        are in files there instead.
        """
        if self._logs is None:
            stories = merge_stories(
                line for worker in self.workers.workers for line in worker.stories.lines()
            )
        else:
            stories = [story for story in read_stories(self._logs.directory) if story.ended >= self._began]
        return stories if root is None else stories_of(stories, root)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the topology has ended, for at most ``timeout`` seconds. Return whether it has."""
        return self._ended.wait(timeout)

    def activate(self) -> None:
        """Let spouts emit again (B13)."""
        self._wanted_active = True

    def deactivate(self) -> None:
        """Stop the spouts from emitting. Acks and fails continue (B13)."""
        self._wanted_active = False

    def rebalanced(
        self, *, workers: int | None = None, executors: Mapping[str, int] | None = None
    ) -> PhysicalPlan:
        """Raise `StatusError`: one thread runs all workers, and their tasks' state is in this process alone."""
        msg = (
            f"topology {self.name!r} runs on the local engine, in which one thread runs all workers: only topologies on Spark "
            f"can be rebalanced"
        )
        raise StatusError(msg)

    def lay_out(self, plan: PhysicalPlan) -> None:
        """Raise `StatusError`, as `rebalanced` does."""
        self.rebalanced()

    def waits_for(self) -> str:
        """Return what the first batch waits for. It waits for nothing, because ``submit`` opens the tasks."""
        return ""

    def end_input(self) -> None:
        """End the input: once nothing comes for two batches, bolts flush what they hold, and the topology ends by itself."""
        self._end_of_input.end()

    @property
    def close_secs(self) -> float:
        """How many seconds ``close`` and ``cleanup`` of a task may take when the topology stops, before they are given up."""
        return STOP_SECS

    def calls_under_way(self) -> list[Busy]:
        """Return what an end of the topology would cut off now, the most important first."""
        calls = [busy for worker in self.workers.workers for busy in worker.under_way.all()]
        return sorted(calls, key=lambda busy: busy.importance)

    def _calls(self) -> list[Busy]:
        """Return the calls that somebody may have to be warned of."""
        return [busy for worker in self.workers.workers for busy in worker.under_way.calls()]

    def stop(self) -> None:
        """End the topology at the next batch boundary, with ``close`` and ``cleanup``.

        If a call still runs on an executor's own thread or on the event loop, this method waits for it, ten seconds at most. If
        batches are transactions, and the last batch can't end without that call, the batch is taken back. In the last batch, a
        call on the worker's thread has 60 seconds. If it does not return by then, a warning names it, and the topology ends
        without it.

        Then the tasks get their last calls. If one has not returned after ten seconds, a warning names it, and this method
        returns without it. If that call is on the worker's thread, the tasks behind it get no last calls. On a simulated clock,
        nobody else could give up such a call, so this method waits for it.
        """
        self._end(graceful=True)

    def kill(self) -> None:
        """End the topology without waiting, and without calling ``close`` or ``cleanup``.

        A thread can't be killed, so the topology's thread ends after the call that it is in, or with the process. It waits for
        no call of another thread any more.
        """
        self._end(graceful=False)

    def run_until_idle(self, timeout: float = 60.0) -> None:
        """Wait until nothing is emitted, queued or pending. Raises the topology's error, or TimeoutError after ``timeout`` real
        seconds.

        On a simulated clock this runs batches in the caller's thread, and no simulated time passes.
        """
        deadline = time.monotonic() + timeout
        quiet = Quiet()
        while True:
            if self._thread is None:
                self._batch()
            else:
                time.sleep(_IDLE_SLEEP * 5)
            self._raise_error()
            statistics = self.statistics()
            if quiet.reached(statistics) or self._ended.is_set():
                return
            if time.monotonic() > deadline:
                pending = statistics.total("pending")
                msg = f"topology {self.name!r} was not idle after {timeout:g} s: {pending} trees pending"
                for busy in filter(None, (worker.under_way.busy() for worker in self.workers.workers)):
                    msg += f"; it has been in {busy.code} for {busy.seconds:.1f} s"
                raise TimeoutError(msg)

    def advance_time(self, seconds: float) -> None:
        """Let simulated time pass in small steps, with a batch after each. Raises the topology's error."""
        for step in steps(seconds, self.time_step):
            self.simulated_clock.advance(step)
            self.run_batch()

    @property
    def time_step(self) -> float:
        """By how many seconds simulated time advances before a batch. A longer step could look like an outage (W2)."""
        return min(_STEP, self.plan.settings.clock_gap_ms / 1000 or _STEP)

    @property
    def simulated_clock(self) -> SimulatedClock:
        """Return the clock that a test drives. Raises TypeError if time is real."""
        if not isinstance(self._clock, SimulatedClock):
            msg = f"topology {self.name!r} runs on real time; create the cluster with LocalCluster(simulated_time=True)"
            raise TypeError(msg)
        return self._clock

    def run_batch(self) -> None:
        """Run one batch on the simulated clock, unless the topology has ended. Raises the topology's error."""
        assert self.is_simulated
        if not self._ended.is_set():
            self._batch()
            if self._end_of_input.is_done:
                self._end(graceful=True)
        self._raise_error()

    def _run(self) -> None:
        # The user's own objects live in this process, too, and must stay collectable. So they are not frozen.
        garbage = self._garbage = GarbageBetweenBatches(freeze=False)
        if self._logs is not None:
            self._logs.follow()
        try:
            try:
                while not (self._stopping.is_set() or self._end_of_input.is_done):
                    if not self._batch():
                        time.sleep(_IDLE_SLEEP)
                    garbage.collect()
                if self._end_of_input.is_done:
                    self._begin_to_stop()
            except BatchTakenBackError as taken_back:
                _log.warning("%s", taken_back)
            if self._graceful and self.error is None:
                self._close()
        except Exception as error:
            self.error = error
        except (
            BaseException
        ) as error:  # also `KeyboardInterrupt`: in this thread, only user code can raise it
            msg = f"topology {self.name!r} has ended, because its code raised {type(error).__name__}: {error}"
            self.error = StormsparkError(msg)
            self.error.__cause__ = error
        finally:
            self._finish()

    def _watch(self) -> None:
        """Call `UnderWay.look` of each worker regularly, and warn about calls that take long.

        Without `UnderWay.look`, a worker could take a series of short calls for one call that never returns.
        """
        secs = self.plan.settings.stuck_warning_secs
        watched = [
            (worker, SlowCalls(worker.index, secs, limits_starts=False)) for worker in self.workers.workers
        ]
        while not self._ended.wait(_LOOK_SECS):
            for worker, slow_calls in watched:
                worker.under_way.look()
                if not self._is_closing:  # else `_give_up` and the tasks themselves warn about the last calls
                    slow_calls.look_at(worker.under_way.calls(secs), stops=self._stopping.is_set())

    def _close(self) -> None:
        """End the topology gracefully. First complete open trees, and tell the sources how far their tasks have come."""
        begun = time.monotonic()
        ended, pause = -1, _IDLE_SLEEP
        while (reports := self.workers.complete()) and self._graceful:
            now = time.monotonic()
            self._tally.add_batch(reports, now - begun)
            begun = now
            self.error = fatal_error(reports)
            if self.is_simulated or self.error is not None:
                break
            ended_before = ended
            ended = sum(counters.ended() for report in reports for counters in report.counters.values())
            pause = min(2 * pause, _LAST_SLEEP) if ended == ended_before else _IDLE_SLEEP
            time.sleep(pause)  # a round does not wait for a call of a spout
        self._sources.observe((worker.source_progress(0) for worker in self.workers.workers), _no_limit)
        self._is_closing = True
        self._tally.add_last_reports(self.workers.hear_of_last_commit())
        self._tally.add_last_reports(self.workers.close())

    def _finish(self) -> None:
        with self._finishing:
            if self._ended.is_set():
                return  # `_give_up` was faster
            for worker in self.workers.workers:
                self._tally.add_not_returned(worker.services.not_returned.values())
            self.workers.abandon()  # this ends the tasks that were not closed gracefully
            if self._garbage is not None:
                self._garbage.end()
            self._tally.stop()
            self._sources.close()
            if self._logs is not None:
                self._logs.leave()
            if self._claim is not None:
                self._claim.close()
            self._close_server()
            self._ended.set()

    def _batch(self) -> bool:
        """Run one batch. Return whether anything was emitted or executed."""
        if self._wanted_active != self._active:
            self._active = self._wanted_active
            self.workers.set_active(self._active)
        before = self._work_done
        begun = time.monotonic()
        if self._active:
            self._sources.feed(self.workers)
        throttle, end = self._throttle, self._end_of_input
        if self._thread is not None:
            reports = self.workers.run_batch(
                throttle.limits,
                throttle.round_target,
                throttle.staying_local,
                input_ended=end.has_ended,
                flushes=end.flushes,
                sampled=self._sampling.sampled,
            )
            self._sources.observe((report.sources for report in reports), throttle.limit_of)
        else:  # Limits and targets come from real seconds, so they are not applied to a simulated batch.
            reports = self.workers.run_batch(
                input_ended=end.has_ended, flushes=end.flushes, sampled=self._sampling.sampled
            )
            self._sources.observe((report.sources for report in reports), _no_limit)
        seconds = time.monotonic() - begun
        throttle.observe(reports, seconds)
        self._tally.add_batch(reports, seconds)
        self._work_done = sum(c.emitted + c.executed for report in reports for c in report.counters.values())
        came = sum(progress.came for report in reports for progress in report.sources.values())
        end.observe(reports, came, now=self._clock(), sources_done=self._sources.are_done)
        self._tally.end_batch(flushes=end.flushes > 0)
        if (commit := self.workers.last_commit) is not None:
            self._tally.add_commit(*commit)
        if self.is_simulated:
            self._reporting.step()
        self.error = fatal_error(reports)
        if self.error is not None:
            self._stopping.set()
        return self._work_done != before

    def _end(self, *, graceful: bool) -> None:
        self._graceful &= graceful  # once the topology is killed, no later stop brings its last calls back
        if graceful:
            self._begin_to_stop()
        else:
            self._tally.begin_to_stop()
            self._stopping.set()
            self.workers.cut_off()
        if self._thread is not None:
            if graceful:
                self._join(self._thread)
        elif not self._ended.is_set():
            if graceful and self.error is None:
                self._close()
            self._finish()

    def _begin_to_stop(self) -> None:
        self._tally.begin_to_stop()
        self._stopping.set()
        self.workers.limit_waiting()

    def _join(self, thread: threading.Thread) -> None:
        """Wait until the topology's thread has ended. Warn about user code that holds up its last batch, and give up a last call
        that does not return.
        """
        warning_at = _STUCK_SECS
        begun = time.monotonic()
        while thread.is_alive() and not self._ended.is_set():
            thread.join(_LOOK_SECS)
            mine = (worker.call.busy() for worker in self.workers.workers)
            late = any(call.seconds > STOP_SECS + _MARGIN_SECS for call in filter(None, mine))
            if not self._is_closing:
                late = time.monotonic() - begun > LAST_BATCH_SECS and self._is_stuck()
            if late:
                self._give_up()
            elif not self._is_closing and time.monotonic() - begun > warning_at:
                warning_at *= 2
                self._warn_of_last_batch()

    def _is_stuck(self) -> bool:
        """Whether a call on the worker's thread has not returned since `stop`."""
        return any(
            busy.seconds > LAST_BATCH_SECS and not busy.alone and not busy.opens for busy in self._calls()
        )

    def _warn_of_last_batch(self) -> None:
        for busy in self._calls():
            if not (busy.alone or busy.starts_again) and busy.seconds > _STUCK_SECS:
                _log.warning(
                    "topology %s waits for %s, which has not returned for %.0f s, before it stops",  # B1
                    self.name,
                    busy.code,
                    busy.seconds,
                )

    def _give_up(self) -> None:
        """End the topology although a last call on its thread has not returned. It does not get to the tasks behind that call."""
        for busy in self._calls():
            if busy.seconds > STOP_SECS and not busy.alone:
                self._tally.add_not_returned([busy])
                _log.warning(
                    "%s has not returned for %.0f s, and topology %s stops without it; it is on the worker's thread, so the "
                    "tasks behind it get no close or cleanup",  # C1
                    busy.code,
                    busy.seconds,
                    self.name,
                )
        self.workers.cut_off()
        self._finish()

    def _raise_error(self) -> None:
        if self.error is not None:
            raise self.error
