"""Where workers are started: evenly over the executors, in a Spark job of its own before the query runs.

A forwarder may run anywhere, but a worker stays where it was started. If forwarders started workers, each would live where
Spark happened to run its partition's first task: all of them on the executor that registered first. So before an attempt in which
workers are missing

    the driver waits for the executors that were asked for        (`stormspark.executors.wait.secs` at most)
    -> a job has one task for each executor; each offers its executor to nimbus, and waits
    -> when all executors have offered, nimbus deals the missing workers out (`Assignments.deal`)
    -> each task starts the workers of its executor, and ends

Spark deals the tasks of a job out in turn over executors with free slots, and tasks that wait keep theirs, so all executors are
reached; the job comes again where one of them was not ready for a task yet. What is not placed by that (an executor without a
free slot, a job that fails) is started by its first forwarder.

Dynamic allocation gives back executors on which no task runs, but not those with a cached block
(``spark.dynamicAllocation.cachedExecutorIdleTimeout`` is infinite by default). So the job's result is persisted: a block of some
bytes says that an executor is in use. Blocks of executors that got no worker, or have none any more, are removed.
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

__all__ = ["Placement"]

_log = logging.getLogger(__name__)

#: Where nothing says how many executors will come: none has come for so long.
_SETTLED_SECS = 2.0
_LOOK_SECS = 0.1
#: For so long tasks are sent again and again until they have reached all executors: one that has registered takes its first task
#: when it has started up, and others may have taken them all until then.
_REACH_SECS = 10.0
_LONGEST_PAUSE_SECS = 2.0


class Placement:
    """Places the workers of one topology. ``ended`` says whether to stop waiting."""

    def __init__(
        self,
        spark: SparkSession,
        executors: Executors,
        name: str,
        wait_secs: float,
        ended: Callable[[], bool],
    ) -> None:
        self._context, self._executors, self._name = spark.sparkContext, executors, name
        self._wait_secs, self._ended = wait_secs, ended
        #: Of each worker, the job that has placed it, and the partition whose block lies beside it.
        self._kept: dict[int, tuple[RDD[Any], int]] = {}
        #: The last job if it runs or has failed: it may have started workers all the same.
        self._unfinished: RDD[Any] | None = None
        #: Executors that were gone when workers were placed last; None before the first time.
        self._gone: set[str] | None = None
        self._group = f"stormspark-placement-{uuid.uuid4()}"

    def place(self, attempt: Attempt, nimbus: Nimbus) -> None:
        """Have the workers that nobody has started yet started; returns when their processes are up, not when they are ready."""
        missing = nimbus.missing()
        if not missing or not self._executors.separate:
            return
        began = time.monotonic()
        self._wait_for_executors(attempt.workers)
        if self._ended():
            return
        # Those with a free slot have a task soon, and offer when it has started Spark's Python, as a worker starts one.
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
            except Exception as error:  # forwarders start what is missing
                _log.info(
                    "%s: workers could not be placed, and start where they are first needed: %s",
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

    def cancel(self) -> None:
        """End the job that runs, if one does."""
        with contextlib.suppress(Exception):  # the JVM may be gone
            self._context.cancelJobGroup(self._group)

    def end(self) -> None:
        """Let Spark have the executors back."""
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
        context.setJobGroup(self._group, f"stormspark: workers of {self._name} start")
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
        """Remove the blocks beside which no worker lives now."""
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
        """Until as many have registered as were asked for, or as there are workers.

        What did not come is waited for once. Later only those are, in whose place Spark may start others: they were lost since.
        """
        wanted = self._executors.to_come()
        if wanted is not None and self._gone is not None:
            wanted = min(wanted, max(1, len(self._executors.ever().keys() - self._gone)))
        try:
            self._wait_for(wanted, workers)
        finally:
            self._gone = {name for name, is_there in self._executors.ever().items() if not is_there}

    def _wait_for(self, wanted: int | None, workers: int) -> None:
        began = changed = time.monotonic()
        count, said = len(self._executors.active()), False
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
                    "placed on what there is",
                    self._name,
                    count,
                    "an unknown number of" if wanted is None else wanted,
                    self._wait_secs,
                    workers,
                )
                return
            if not said and now - began > 1:
                said = True
                _log.info(
                    "%s waits for executors: %d of %s",
                    self._name,
                    count,
                    "unknown" if wanted is None else wanted,
                )
            time.sleep(_LOOK_SECS)


def _starts(attempt: Attempt) -> Callable[[Iterable[int]], Iterator[tuple[int, list[int]]]]:
    """A task of the job: offer this executor, start what is wanted here."""

    def run(rows: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
        context = TaskContext.get()
        assert context is not None
        starts = start_offered(attempt)
        if starts:
            with ThreadPoolExecutor(len(starts)) as pool:
                list(pool.map(lambda start: start[1](), starts))
            yield context.partitionId(), [worker for worker, _ in starts]

    return run
