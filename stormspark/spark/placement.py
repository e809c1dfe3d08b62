"""Placement: starts workers, spread evenly over the Spark executors, in a Spark job of its own before the query runs.

In this module, "executor" means a Spark executor. A forwarder may run anywhere, but a worker stays where it was started. If
forwarders started the workers, each worker would live where Spark happened to run its partition's first task. Often all workers
would live on the executor that registered first. So the driver does the following before an attempt in which workers are missing:

    the driver waits for the requested executors        (`stormspark.executors.wait.secs` at most)
    -> before the first attempt it looks at them        (`preflight`; it also does so if they are no processes of their own)
    -> a job has one task per executor; each task offers its executor to nimbus, and waits
    -> when all executors have offered, or after a limited wait, nimbus deals the missing workers out (`Assignments.deal`)
    -> each task starts the workers of its executor, and ends

Spark gives the tasks of a job to executors with free slots, one executor after the other. Tasks that wait keep their slots, so
the job reaches all executors. If an executor was not ready for a task yet, the driver runs the job again, except with dynamic
allocation. Even so, a worker may get no place, because its executor has no free slot or the job fails. Then the worker's first
forwarder starts it.

Dynamic allocation gives back executors on which no task runs, but not those with a cached block
(``spark.dynamicAllocation.cachedExecutorIdleTimeout`` is infinite by default). So the driver caches the job's result, and each
executor holds a block of a few bytes. The driver removes the blocks of executors that have no worker.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark import RDD, StorageLevel, TaskContext
from pyspark.sql import SparkSession

from stormspark.spark.executors import Executors
from stormspark.spark.forwarder import Attempt, start_offered
from stormspark.spark.nimbus import Nimbus
from stormspark.spark.preflight import Preflight

__all__ = ["Placement"]

_log = logging.getLogger(__name__)

#: If nobody knows how many executors will come, the driver waits until no new one has come for this long.
_SETTLED_SECS = 2.0
_LOOK_SECS = 0.1
#: Without dynamic allocation, the driver repeats the job until a task has run on each executor, but for no longer than this. A
#: new executor takes its first task only when it has started up. By then, other executors may have taken all tasks.
_REACH_SECS = 10.0
_LONGEST_PAUSE_SECS = 2.0


class Placement:
    """Places the workers of one topology. ``ended`` returns whether to stop waiting. The ``preflight`` comes first."""

    def __init__(
        self,
        spark: SparkSession,
        executors: Executors,
        name: str,
        wait_secs: float,
        ended: Callable[[], bool],
        preflight: Preflight | None = None,
    ) -> None:
        self._context, self._executors, self._name = spark.sparkContext, executors, name
        self._wait_secs, self._ended = wait_secs, ended
        #: For each worker: the result of the job that has placed it, and the partition of that result that is cached on its
        #: executor.
        self._kept: dict[int, tuple[RDD[Any], int]] = {}
        #: The result of the last job, if the job still runs or has failed. Even a failed job may have started workers.
        self._unfinished: RDD[Any] | None = None
        #: The executors that were already gone at the last placement; None before the first placement.
        self._gone: set[str] | None = None
        #: The group of the Spark jobs that look at executors and start workers.
        self.group = f"stormspark-placement-{uuid.uuid4()}"
        #: Whether executors are waited for or looked at; and how many are waited for, or None if that is unknown.
        self._waits = False
        self._awaited: int | None = None
        self._preflight = preflight
        if preflight is not None:
            preflight.group = self.group

    def place(self, attempt: Attempt, nimbus: Nimbus) -> None:
        """Start the missing workers, unless Spark has no executors that are processes of their own. First look at the executors.

        Return when the workers' processes have started, which is before they are ready. Raises `UnsupportedEnvironmentError`.
        """
        missing = nimbus.missing()
        if not self._executors.separate:
            if self._preflight is not None:
                self._preflight.run(attempt, 1)
            return
        if not missing:
            return
        began = time.monotonic()
        self._waits = True
        try:
            self._wait_for_executors(attempt.workers)
            if self._ended():
                return
            if self._preflight is not None:
                self._preflight.run(attempt, max(1, len(self._executors.active())))
        finally:
            self._waits = False
        # An executor with a free slot gets a task soon. The task makes its offer once Spark's Python process has started, which
        # takes as long as the start of a worker.
        patience = self._wait_secs if self._executors.dynamic else attempt.start_timeout_secs
        reaches_until = time.monotonic() + (0 if self._executors.dynamic else _REACH_SECS)
        again, pause = True, _LOOK_SECS
        while again:
            again = time.monotonic() < reaches_until
            expected = self._executors.for_workers(attempt.workers)
            tasks = max(expected, len(self._executors.active()), missing if self._executors.dynamic else 1)
            nimbus.gather(expected, tasks, patience, again=again)
            try:
                self._run(attempt, tasks)
            except Exception as error:  # forwarders start the missing workers
                if self._preflight is not None and not self._ended():
                    self._preflight.raise_hopeless(error)
                _log.info(
                    "%s: workers could not be placed, so each starts where it is first needed: %s",
                    self._name,
                    error,
                )
                break
            finally:
                nimbus.gathered()
            if not nimbus.missing() or self._ended() or nimbus.broken is not None:
                break
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECS)
        _log.info(
            "%s: %d workers placed in %.1f s: %s",
            self._name,
            missing,
            time.monotonic() - began,
            nimbus.places(),
        )

    def waits_for(self) -> str:
        """Return what a topology waits for while its executors come and are looked at, in words; otherwise an empty string.

        The preflight's job waits for ever if there is no executor, so the missing ones are named first.
        """
        looks = "" if self._preflight is None else self._preflight.waits_for
        if not self._waits:
            return looks
        try:
            up = len(self._executors.active())
        except Exception:  # the JVM may be gone
            return looks
        if up and (looks or self._awaited is None):
            return looks
        missing = (
            "no Spark executor is up"
            if self._awaited is None
            else f"{up} of {self._awaited} Spark executors are up"
        )
        those = "more" if up else "they"
        return (
            f"{missing}: {those} may still start, or the cluster has no room for them (another application?)"
        )

    def cancel(self) -> None:
        """Cancel the jobs that run."""
        with contextlib.suppress(Exception):  # the JVM may be gone
            self._context.cancelJobGroup(self.group)

    def end(self) -> None:
        """Remove all blocks, so that Spark may give the executors back."""
        kept, self._kept = self._kept, {}
        jobs = {
            id(job): job for job in (*(job for job, _ in kept.values()), self._unfinished) if job is not None
        }
        for job in jobs.values():
            with contextlib.suppress(Exception):  # the JVM may be gone
                job.unpersist()

    def _run(self, attempt: Attempt, tasks: int) -> None:
        context: Any = self._context
        before = dict(self._kept)
        context.setJobGroup(self.group, f"stormspark: workers of {self._name} start")
        try:
            started = context.parallelize(range(tasks), tasks).mapPartitions(_starts(attempt))
            started.persist(StorageLevel.MEMORY_AND_DISK)
            unfinished, self._unfinished = self._unfinished, started
            if unfinished is not None:
                unfinished.unpersist()
            placed: dict[int, list[int]] = dict(started.collect())
            self._unfinished = None
        finally:
            for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
                context.setLocalProperty(name, None)
        for partition, workers in placed.items():
            self._kept.update((worker, (started, partition)) for worker in workers)
        self._let_go([*before.values(), *((started, partition) for partition in range(tasks))])

    def _let_go(self, blocks: Iterable[tuple[RDD[Any], int]]) -> None:
        """Remove the blocks on executors that have no worker now."""
        context: Any = self._context
        master = context._jsc.sc().env().blockManager().master()
        used = {(id(job), partition) for job, partition in self._kept.values()}
        in_use = {job for job, _ in used}
        for unused in {id(job): job for job, _ in blocks if id(job) not in in_use}.values():
            unused.unpersist()
        for job, partition in blocks:
            if id(job) in in_use and (id(job), partition) not in used:
                master.removeBlock(context._jvm.org.apache.spark.storage.RDDBlockId(job.id(), partition))

    def _wait_for_executors(self, workers: int) -> None:
        """Wait until all requested executors have registered, or as many as there are workers.

        The driver waits only once for executors that never come. Later it waits only for replacements of executors that were lost
        since the last placement.
        """
        wanted = self._executors.to_come()
        if wanted is not None and self._gone is not None:
            wanted = min(wanted, max(1, len(self._executors.ever().keys() - self._gone)))
        self._awaited = None if wanted is None else min(wanted, workers)
        try:
            self._wait_for(wanted, workers)
        finally:
            self._gone = {name for name, is_there in self._executors.ever().items() if not is_there}

    def _wait_for(self, wanted: int | None, workers: int) -> None:
        began = changed = time.monotonic()
        count, logged = len(self._executors.active()), False
        while not self._ended():
            now, before = time.monotonic(), count
            count = len(self._executors.active())
            changed = now if count != before else changed
            settled = wanted is None and count > 0 and now - changed >= _SETTLED_SECS
            if count >= workers or settled or (wanted is not None and count >= wanted):
                return
            if now - began >= self._wait_secs:
                _log.warning(
                    "%s: %d of %s executors have registered after %g s (stormspark.executors.wait.secs); its %d workers are "
                    "placed on those",
                    self._name,
                    count,
                    "an unknown number of" if wanted is None else wanted,
                    self._wait_secs,
                    workers,
                )
                return
            if not logged and now - began > 1:
                logged = True
                _log.info(
                    "%s waits for executors: %d of %s have registered",
                    self._name,
                    count,
                    "unknown" if wanted is None else wanted,
                )
            time.sleep(_LOOK_SECS)


def _starts(attempt: Attempt) -> Callable[[Iterable[int]], Iterator[tuple[int, list[int]]]]:
    """Make the function of the job's tasks. A task offers its executor to nimbus, and starts the workers that nimbus returns."""

    def run(rows: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
        context = TaskContext.get()
        assert context is not None
        starts = start_offered(attempt)
        if starts:
            with ThreadPoolExecutor(len(starts)) as pool:
                list(pool.map(lambda start: start[1](), starts))
            yield context.partitionId(), [worker for worker, _ in starts]

    return run
