"""The tally of a topology: the driver's sum over the reports of all incarnations of all workers. Both engines use it.

Counters in a report are totals since the worker's process began. So only the latest report of each (worker, incarnation) is
needed, and a report that comes twice does no harm. The last totals of a dead incarnation stay in the sum. Only the pending
trees, queued tuples and calls of a dead incarnation are left out, because they no longer exist.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from stormspark.backpressure import Pressure
from stormspark.metrics import DataPoint, Histogram, TaskCounters, TopologyStatistics, summarise
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.step import WorkerReport

__all__ = ["Tally"]


class Tally:
    """The tally of one topology, which is thread-safe. The topology's running time begins when the tally is made, and ends with
    `stop`.
    """

    def __init__(
        self, plan: PhysicalPlan, engine: str, pressure: Callable[[], Pressure] | None = None
    ) -> None:
        self._plan, self._engine, self._pressure = plan, engine, pressure
        self._lock = threading.Lock()
        #: By worker: the counters of its current incarnation.
        self._counters: dict[int, Mapping[int, TaskCounters]] = {}
        #: By task: the counters of all earlier incarnations together.
        self._past: dict[int, TaskCounters] = {}
        self._living: dict[int, int] = {}
        self._backlogs: dict[int, int] = {}
        self._last_error: dict[str, str] = {}
        self._last_failure: dict[str, str] = {}
        self._metrics: dict[str, dict[str, dict[int, DataPoint]]] = {}  # component, name, task
        self._batch_times = Histogram()
        self._phases: dict[str, Histogram] = {}
        self._began = time.monotonic()
        self._ended: float | None = None

    def add_batch(self, reports: Iterable[WorkerReport], seconds: float) -> None:
        """Add the reports of a batch, or of one of its rounds, and the ``seconds`` that it took."""
        with self._lock:
            self._batch_times.add(seconds)
            for report in reports:
                if self._living.get(report.worker, report.incarnation) != report.incarnation:
                    for task, counted in self._counters[report.worker].items():
                        ended = replace(counted, pending=0, queued=0, queued_bytes=0, calls_under_way=0)
                        self._past.setdefault(task, TaskCounters()).merge(ended)
                self._counters[report.worker] = report.counters
                self._living[report.worker] = report.incarnation
                self._backlogs[report.worker] = report.backlog
                for error in report.errors:
                    self._last_error[error.component] = error.text
                for failure in report.failures:
                    self._last_failure[failure.component] = failure.text
                for point in report.data_points:
                    named = self._metrics.setdefault(point.component, {}).setdefault(point.name, {})
                    named[point.task] = point

    def add_phases(self, seconds: Mapping[str, float]) -> None:
        """Add how many seconds each part of a batch took."""
        with self._lock:
            for phase, took in seconds.items():
                self._phases.setdefault(phase, Histogram()).add(took)

    def stop(self) -> None:
        """Stop counting the topology's running time, because it has ended."""
        with self._lock:
            self._ended = self._ended or time.monotonic()

    def statistics(self) -> TopologyStatistics:
        """Return a frozen snapshot of all statistics."""
        with self._lock:
            by_component: dict[str, list[TaskCounters]] = {name: [] for name in self._plan.components}
            for counters in (self._past, *self._counters.values()):
                for task, counted in counters.items():
                    by_component[self._plan.tasks[task].component].append(counted)
            return TopologyStatistics(
                topology=self._plan.topology,
                engine=self._engine,
                seconds=(self._ended or time.monotonic()) - self._began,
                batches=self._batch_times.count,
                batch_ms=self._batch_times.summary(),
                backlog=sum(self._backlogs.values()),
                pressure=self._pressure() if self._pressure is not None else None,
                phases={phase: times.summary() for phase, times in self._phases.items()},
                components={
                    name: summarise(
                        plan.kind,
                        len(plan.tasks),
                        by_component[name],
                        self._last_error.get(name),
                        {metric: dict(points) for metric, points in self._metrics.get(name, {}).items()},
                        self._last_failure.get(name),
                        plan.calls_at_once,
                    )
                    for name, plan in self._plan.components.items()
                },
            )
