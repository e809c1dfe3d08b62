"""Asks Spark about an application's Spark executors: which are there, how many were requested, and whether some were taken away.

In this module, "executor" means a Spark executor.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from stormspark.cores import slots
from stormspark.plan.needs import (
    OVERHEAD,
    ExecutorNeeds,
    executor_needs,
    limits_memory,
    present_overhead,
    requested_executors,
    shortfalls,
)
from stormspark.plan.physical import PhysicalPlan

__all__ = ["Executor", "Executors"]

_log = logging.getLogger(__name__)

_DYNAMIC = "spark.dynamicAllocation"
#: What YARN, Kubernetes and Spark say of a container that was killed for its memory. 137 is SIGKILL, which is how the kernel does
#: it. "JVM OOM" is no such end: there the heap was too small.
_LACKED_MEMORY = re.compile(
    r"(?i:memory limits|physical memory|memoryOverhead|exit (?:code|status)(?: is|:)?\s*\(?137\b)"
    r"|(?<!JVM )\bOOM(?:Killed)?\b"
)


class Executor(NamedTuple):
    """A Spark executor that has registered with the driver. It runs up to ``slots`` tasks, and could run ``free`` more now."""

    id: str
    host: str
    slots: int
    free: int


class Executors:
    """The Spark executors of one application. ``spark`` is a session of this application, and not one of Spark Connect."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext
        conf = self._context.getConf()
        self._conf = {name: value for name, value in conf.getAll() if name.startswith("spark.")}
        self._master = self._context.master or ""
        #: The executors that were lost before the last call of `took_workers`, or before this object was made. They can't be the
        #: cause of a later failure.
        self._gone = self._lost()
        #: The executors of whose end `why_lost` has told, or that have ended before.
        self._told = set(self._gone)
        #: Whether executors are processes of their own.
        self.separate = re.match(r"local(\[|$)", self._master) is None
        #: Whether Spark requests executors when tasks wait, and gives them back when they are idle.
        self.dynamic = self._conf.get(f"{_DYNAMIC}.enabled") == "true"
        #: Whether the cluster starts executors of the requested number and size, with a default for each. YARN and Kubernetes do;
        #: they are also the ones that hold executors to the requested memory.
        self._as_requested = limits_memory(self._master)

    def active(self) -> list[Executor]:
        """Return the executors that have registered and were not lost since."""
        return [
            Executor(
                one.id(),
                str(one.hostPort()).rpartition(":")[0],
                int(one.maxTasks()),
                int(one.maxTasks()) - int(one.activeTasks()),
            )
            for one in self._summaries(active=True)
            if one.id() != "driver"
        ]

    def ever(self) -> dict[str, bool]:
        """Return, for each executor that has ever registered, whether it is still there.

        An executor that Spark has forgotten is left out.
        """
        return {
            one.id(): bool(one.isActive()) for one in self._summaries(active=False) if one.id() != "driver"
        }

    def took_workers(self, lost: Collection[int]) -> bool:
        """Return whether workers are ``lost``, and an executor was lost, killed or taken away since the last call.

        If so, the workers were most likely lost with the executor. If no worker is lost, a lost executor is no reason for a
        failure, because dynamic allocation may give back idle executors at any time. The first call counts the executors that
        were lost since this object was made.
        """
        gone = self._lost()
        new = not gone <= self._gone
        self._gone |= gone
        return new and bool(lost)

    def why_lost(self, plan: PhysicalPlan, lost: Collection[int]) -> str:
        """Return what Spark says of the executors with which workers may have been ``lost``, as further clauses of a sentence.

        It speaks of executors that were lost since the last call. If their containers had too little memory, it says which
        setting of Spark to raise, and to what. It is empty if Spark says nothing.
        """
        reasons = {
            one.id(): str(one.removeReason().get()).rstrip(".\n ")
            for one in self._summaries(active=False)
            if not one.isActive() and one.id() not in self._told and one.removeReason().isDefined()
        }
        self._told |= reasons.keys()
        if not lost or not reasons:
            return ""
        text = "".join(f"; Spark has lost executor {name}: {reason}" for name, reason in reasons.items())
        if any(_LACKED_MEMORY.search(reason) for reason in reasons.values()):
            needs = self._needs(plan)
            present = present_overhead(self._conf, self._master)
            # If this much was not enough, components take more than they declare.
            value = (
                f"more than {present}m" if present >= needs.overhead_mb else f"{needs.overhead_mb}m or more"
            )
            text += (
                f". Its container probably had too little memory: set {OVERHEAD} to {value} (the plan needs {needs.worker} for "
                f"each worker; now it is {self._conf.get(OVERHEAD, 'not set')})"
            )
        return text

    def _lost(self) -> set[str]:
        return {name for name, is_there in self.ever().items() if not is_there}

    def to_come(self) -> int | None:
        """Return how many executors the application has requested at its start; None if that is unknown.

        The number follows from the application's configuration and cluster manager.
        """
        if self.dynamic:
            wanted = [self._number(f"{_DYNAMIC}.{name}Executors") or 0 for name in ("min", "initial")]
            return max(*wanted, self._number("spark.executor.instances") or 0)
        return requested_executors(self._conf, self._master)

    def requested_slots(self) -> int | None:
        """Return how many tasks the requested executors will run at once; None if that is known only once they have registered.

        If a standalone cluster has fewer cores than an application requests, the application gets fewer. So on such a cluster the
        request tells nothing.
        """
        now = [one.slots for one in self.active()]
        requested = self.to_come()
        if not self.dynamic and (requested is None or not self._as_requested):
            return None
        cores = self._number("spark.executor.cores")
        if now:
            each = max(now)
        elif cores is not None or self._as_requested:
            each = slots(cores or 1, self._conf)  # one core is the default on such a cluster
        else:
            return None
        count = max(requested or 0, len(now), 1)
        if self.dynamic:
            count = min(count, max(self._number(f"{_DYNAMIC}.maxExecutors") or count, len(now)))
        return count * each

    def for_workers(self, workers: int) -> int:
        """Return the number of executors over which ``workers`` workers can be placed.

        With dynamic allocation, it is the number of executors that Spark provides for that many tasks.
        """
        now = self.active()
        if not self.dynamic:
            # It may take long until an executor without a free slot runs a task of ours.
            return max(1, min(sum(one.free > 0 for one in now), workers))
        cores = self._number("spark.executor.cores") or 1
        each = max((one.slots for one in now), default=slots(cores, self._conf))
        most = self._number(f"{_DYNAMIC}.maxExecutors") or workers
        return max(1, min(max(math.ceil(workers / max(each, 1)), len(now)), most, workers))

    def warn(self, plan: PhysicalPlan) -> None:
        """Warn at the start about settings of Spark that take workers away, or that leave them too little memory or cores."""
        name, workers = plan.topology, plan.workers
        for shortfall in self.shortfalls(plan):
            _log.warning("%s: %s", name, shortfall)
        timeout = self._conf.get(f"{_DYNAMIC}.cachedExecutorIdleTimeout")
        if self.dynamic and timeout is not None:
            _log.warning(
                "%s: dynamic allocation removes idle executors and their workers after %s (%s.cachedExecutorIdleTimeout); remove "
                "that setting to keep executors that have workers",
                name,
                timeout,
                _DYNAMIC,
            )
        most = self._number(f"{_DYNAMIC}.maxExecutors")
        if self.dynamic and most is not None and most < workers:
            _log.info(
                "%s: its %d workers share at most %d executors (%s.maxExecutors)",
                name,
                workers,
                most,
                _DYNAMIC,
            )

    def shortfalls(self, plan: PhysicalPlan) -> list[str]:
        """Return a sentence for each setting that is too small for the workers of an executor."""
        if not self.separate:
            return []
        return list(shortfalls(self._needs(plan), self._conf, self._master))

    def _needs(self, plan: PhysicalPlan) -> ExecutorNeeds:
        """Return what an executor needs if the workers are placed over as many executors as are there or will come."""
        executors = max(self.to_come() or 0, len(self.active()))
        if self.dynamic:
            executors = max(executors, self.for_workers(plan.workers))
        return executor_needs(plan, self._conf, executors or None)

    def _summaries(self, *, active: bool) -> list[Any]:
        found = self._context._jsc.sc().statusStore().executorList(active)
        return [found.apply(number) for number in range(found.size())]

    def _number(self, key: str) -> int | None:
        value = self._conf.get(key)
        return int(value) if value is not None and value.isdecimal() else None
