"""A topology that the local engine runs."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from random import Random

from stormspark.driver.tally import Tally
from stormspark.driver.throttle import Throttle
from stormspark.errors import StormsparkError
from stormspark.local.clock import SimulatedClock
from stormspark.local.sources import LocalSources
from stormspark.local.supersteps import BatchTakenBackError, InProcessWorkers
from stormspark.metrics import Quiet, TopologyStatistics
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.host.garbage import GarbageBetweenBatches
from stormspark.worker.step import fatal_error
from stormspark.worker.stories.story import Story, merge_stories, stories_of

__all__ = ["CORES", "LocalTopology", "steps"]

_log = logging.getLogger(__name__)

#: How many cores this engine offers to workers. The number is one, because all workers run in one thread of this process.
CORES = 1

_IDLE_SLEEP = 0.001  # the pause while spouts emit nothing, as in Storm's wait strategy (B12)
_STEP = 0.25  # the seconds of simulated time between two batches
_LOOK_SECS = 0.25  # a thread looks this often for calls of user code that take long
_STUCK_SECS = 10.0  # `stop` warns about a call of user code that takes longer
_starts = itertools.count(1)  # gives each topology of this process a number (A14)


def _no_limit(spout: str) -> None:
    return None


def steps(seconds: float, step: float) -> Iterator[float]:
    """Yield steps that add up to ``seconds``. All have the length ``step``, except for the rest at the end.

    >>> list(steps(2.5, 1.0))
    [1.0, 1.0, 0.5]
    """
    while seconds > 1e-9:
        yield min(step, seconds)
        seconds -= step


class LocalTopology:
    """A topology that runs in a thread of its own on real time, or step by step on a `SimulatedClock`.

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
    ) -> None:
        self._sources = LocalSources(plan)
        self.plan = plan
        self.error: BaseException | None = None
        self._clock = clock
        self._throttle = Throttle(plan)
        self._tally = Tally(plan, "local", self._throttle.pressure)
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._graceful = True
        self._work_done = 0
        self._active = self._wanted_active = active
        storm_id = f"{plan.topology}-{next(_starts)}-{int(time.time())}"
        self.workers = InProcessWorkers(plan, clock, random, storm_id)
        try:
            self.workers.open(active)
        except BaseException:
            self.workers.abandon()
            self._sources.close()
            raise
        self._thread: threading.Thread | None = None
        if not isinstance(clock, SimulatedClock):
            self._thread = threading.Thread(target=self._run, name=f"topology {plan.topology}", daemon=True)
            self._thread.start()
            threading.Thread(target=self._watch, name=f"watch {plan.topology}", daemon=True).start()

    @property
    def name(self) -> str:
        """The topology's name."""
        return self.plan.topology

    @property
    def log_folder(self) -> str | None:
        """None, because tasks log to this process's own log."""
        return None

    @property
    def is_simulated(self) -> bool:
        """Whether a test drives the clock. Then batches run only while the test calls a method such as `advance_time`."""
        return self._thread is None

    def statistics(self) -> TopologyStatistics:
        """Return the counters and latencies of the topology so far."""
        return self._tally.statistics()

    def stories(self, root: int | str | None = None) -> list[Story]:
        """Return stories of trees that failed, and of some that did not, newest first.

        ``root`` selects stories: it is the root of a tree, the beginning of a root, or a message id. Each worker keeps the last
        thousand notes about trees that failed, and the last thousand about others.
        """
        stories = merge_stories(line for worker in self.workers.workers for line in worker.stories.lines())
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

    def stop(self) -> None:
        """End the topology at the next batch boundary, with ``close`` and ``cleanup``.

        A call on the worker's thread may take as long as it needs. If a call still runs on an executor's own thread, this method
        waits for it, ten seconds at most. If batches are transactions, and the last batch can't end without that call, the batch
        is taken back.
        """
        self._end(graceful=True)

    def kill(self) -> None:
        """End the topology without waiting, and without calling ``close`` or ``cleanup``.

        A thread can't be killed, so the topology's thread ends after its batch, or with the process.
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
            if quiet.reached(statistics):
                return
            if time.monotonic() > deadline:
                pending = statistics.total("pending")
                msg = f"topology {self.name!r} was not idle after {timeout:g} s: {pending} trees pending"
                for busy in filter(None, (worker.busy() for worker in self.workers.workers)):
                    msg += f"; it has been in the code of {busy.task} for {busy.seconds:.1f} s"
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
        self._raise_error()

    def _run(self) -> None:
        # The user's own objects live in this process, too, and must stay collectable. So they are not frozen.
        garbage = GarbageBetweenBatches(freeze=False)
        try:
            try:
                while not self._stopping.is_set():
                    if not self._batch():
                        time.sleep(_IDLE_SLEEP)
                    garbage.collect()
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
            garbage.end()
            self._finish()

    def _watch(self) -> None:
        """Call `Worker.look` of each worker regularly.

        Otherwise a worker could take a series of short calls for one call that never returns.
        """
        while not self._ended.wait(_LOOK_SECS):
            for worker in self.workers.workers:
                worker.look()

    def _close(self) -> None:
        """End the topology gracefully. First complete open trees, and tell the sources how far their tasks have come."""
        begun = time.monotonic()
        if reports := self.workers.complete():
            self._tally.add_batch(reports, time.monotonic() - begun)
        self._sources.observe((worker.source_progress(0) for worker in self.workers.workers), _no_limit)
        self.workers.close()

    def _finish(self) -> None:
        self.workers.abandon()  # this ends the tasks that were not closed gracefully
        self._tally.stop()
        self._sources.close()
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
        throttle = self._throttle
        if self._thread is not None:
            reports = self.workers.run_batch(throttle.limits, throttle.round_target, throttle.staying_local)
            self._sources.observe((report.sources for report in reports), throttle.limit_of)
        else:  # Limits and targets come from real seconds, so they are not applied to a simulated batch.
            reports = self.workers.run_batch()
            self._sources.observe((report.sources for report in reports), _no_limit)
        seconds = time.monotonic() - begun
        throttle.observe(reports, seconds)
        self._tally.add_batch(reports, seconds)
        self._work_done = sum(c.emitted + c.executed for report in reports for c in report.counters.values())
        self.error = fatal_error(reports)
        if self.error is not None:
            self._stopping.set()
        return self._work_done != before

    def _end(self, *, graceful: bool) -> None:
        self._graceful = graceful
        self._stopping.set()
        self.workers.limit_waiting(None if graceful else 0.0)
        if self._thread is not None:
            if graceful:
                self._join(self._thread)
        elif not self._ended.is_set():
            if graceful and self.error is None:
                self._close()
            self._finish()

    def _join(self, thread: threading.Thread) -> None:
        """Wait until the topology's thread has ended. Warn about user code that holds up its last batch."""
        while thread.is_alive():
            thread.join(_STUCK_SECS)
            for worker in self.workers.workers if thread.is_alive() else ():
                busy = worker.busy()
                if busy is not None and not busy.alone and busy.seconds > _STUCK_SECS:
                    _log.warning(
                        "topology %s waits for the code of %s, which has not returned for %.0f s, before it stops (B1)",
                        self.name,
                        busy.task,
                        busy.seconds,
                    )

    def _raise_error(self) -> None:
        if self.error is not None:
            raise self.error
