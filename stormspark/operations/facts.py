"""What there is to say about a running topology at one moment: plan, state, totals of tasks over windows, workers, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from stormspark.driver.error_log import TaskError
from stormspark.metrics import TaskCounters
from stormspark.metrics.windows import ALL_TIME, COUNTED, WINDOWS, Windows, totals_of
from stormspark.operations.status import Status
from stormspark.plan.physical import PhysicalPlan

__all__ = ["Facts", "Totals", "Watched", "Watcher", "WorkerPlace"]

#: The seconds between two looks at the counters. A window of ten minutes has 20 buckets of 30 s.
_LOOK_SECS = 10.0


class WorkerPlace(NamedTuple):
    """Where a worker is. ``host`` and ``pid`` are empty and 0 while it starts; ``since`` is in seconds since 1970."""

    worker: int
    host: str
    pid: int
    since: float


class Watched(Protocol):
    """A running topology, as far as it is looked at here."""

    @property
    def plan(self) -> PhysicalPlan:
        """The physical plan that runs."""

    @property
    def storm_id(self) -> str:
        """The id of this run of the topology (A14)."""

    def by_task(self) -> dict[int, TaskCounters]:
        """Return the counters of each task."""

    def errors(self) -> Mapping[str, tuple[TaskError, ...]]:
        """Return the last errors of each component, the newest first."""

    def worker_places(self) -> Sequence[WorkerPlace]:
        """Return where the workers are, in order."""


class Totals(NamedTuple):
    """Totals of one or more tasks; see `stormspark.metrics.windows.COUNTED`."""

    emitted: int
    transferred: int
    executed: int
    acked: int
    failed: int
    calls: int
    call_seconds: float

    @property
    def mean_ms(self) -> float:
        """The mean latency in milliseconds; 0 if nothing was measured, as in Storm."""
        return self.call_seconds / self.calls * 1000 if self.calls else 0.0


@dataclass(frozen=True)
class Facts:
    """A snapshot. ``totals`` has a matrix for each window, a row for each task in the order of ``tasks``."""

    id: str
    plan: PhysicalPlan
    status: Status
    owner: str
    now: float
    uptime_secs: int
    tasks: tuple[int, ...]
    totals: Mapping[str, np.ndarray]
    workers: Sequence[WorkerPlace]
    errors: Mapping[str, tuple[TaskError, ...]]

    def of(self, window: str, tasks: Sequence[int]) -> Totals:
        """Return the totals of some tasks within a window."""
        rows = np.isin(np.array(self.tasks), np.array(tasks, dtype=np.int64))
        emitted, transferred, executed, acked, failed, calls, seconds = (
            self.totals[window][rows].sum(axis=0).tolist()
        )
        return Totals(
            int(emitted), int(transferred), int(executed), int(acked), int(failed), int(calls), seconds
        )

    def capacity(self, tasks: Sequence[int]) -> float:
        """Return the share of the last ten minutes that the busiest executor of some tasks was in execute (J16)."""
        seconds: dict[int, float] = {}
        for task in tasks:
            executor = self.plan.tasks[task].executor
            spent = self.totals["600"][self.tasks.index(task), COUNTED.index("call_seconds")]
            seconds[executor] = seconds.get(executor, 0.0) + float(spent)
        return max(seconds.values(), default=0.0) / max(1.0, min(float(self.uptime_secs), WINDOWS["600"]))


class Watcher:
    """Looks at a topology now and then, so that it can tell what happened within windows. `close` ends that.

    ``status`` returns the topology's state, ``wall_clock`` the seconds since 1970.
    """

    def __init__(
        self,
        running: Watched,
        status: Callable[[], Status],
        owner: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._running, self._status, self._owner = running, status, owner
        self._clock, self._wall_clock = clock, wall_clock
        self._plan = running.plan
        #: Guards the windows, and the plan whose tasks are their rows.
        self._lock = threading.Lock()
        self._windows = Windows()
        self._began = clock()
        self._closed = threading.Event()
        self.look()
        threading.Thread(target=self._look_on, name="windows of statistics", daemon=True).start()

    def _look_on(self) -> None:
        while not self._closed.wait(_LOOK_SECS):
            self.look()

    def look(self) -> None:
        """Remember the totals of now."""
        with self._lock:
            _, totals = self._read()
            self._windows.note(self._clock(), totals)

    def _read(self) -> tuple[tuple[int, ...], np.ndarray]:
        """Return the tasks, in order, and their totals. The tasks are others since the topology was rebalanced."""
        plan = None
        while plan is not self._running.plan:
            plan = self._running.plan
            counters = self._running.by_task()
        tasks = tuple(sorted(plan.tasks))
        if plan is not self._plan:
            before = [self._plan.tasks[task] for task in sorted(self._plan.tasks)]
            now_at = [tasks.index(plan.components[one.component].tasks[one.index]) for one in before]
            self._windows.move_rows(now_at, len(tasks))
            self._plan = plan
        return tasks, totals_of(counters, tasks)

    def facts(self) -> Facts:
        """Return all that is to be said now."""
        with self._lock:
            tasks, totals = self._read()
            plan, now = self._plan, self._clock()
            within = {name: self._windows.since(name, now, totals) for name in (*WINDOWS, ALL_TIME)}
        return Facts(
            self._running.storm_id,
            plan,
            self._status(),
            self._owner,
            self._wall_clock(),
            int(now - self._began),
            tasks,
            within,
            self._running.worker_places(),
            self._running.errors(),
        )

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
