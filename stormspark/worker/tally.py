"""Adds the workers' reports up to the statistics of a topology; both engines use it."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from stormspark.metrics import Histogram, TaskCounters, TopologyStatistics, summarise
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.step import ErrorReport, WorkerReport

__all__ = ["Tally"]

_ERRORS_KEPT = 100


class Tally:
    """What a topology has done so far. Counters in a report are totals of one life of a worker: those of ended lives are kept."""

    def __init__(self, plan: PhysicalPlan, engine: str) -> None:
        self._plan = plan
        self._engine = engine
        self._reports: dict[tuple[int, int], WorkerReport] = {}
        self._batches = 0
        self._batch_times = Histogram()
        self._last_error: dict[str, str] = {}
        self.errors: deque[ErrorReport] = deque(maxlen=_ERRORS_KEPT)
        self.fatal: ErrorReport | None = None
        self.backlog = 0

    def add_batch(self, seconds: float, reports: list[WorkerReport]) -> None:
        """Note a batch that took ``seconds`` and what every worker said at its end."""
        self._batches += 1
        self._batch_times.add(seconds)
        self.backlog = sum(report.backlog for report in reports)
        for report in reports:
            self._reports[report.worker, report.incarnation] = report
            for error in report.errors:
                self.errors.append(error)
                self._last_error[error.component] = error.text
            self.fatal = self.fatal or report.fatal

    def statistics(self, seconds: float) -> TopologyStatistics:
        """Freeze all that is known; ``seconds`` is how long the topology has run."""
        newest = {worker: max(i for w, i in self._reports if w == worker) for worker, _ in self._reports}
        by_component: dict[str, list[TaskCounters]] = {name: [] for name in self._plan.components}
        for (worker, incarnation), report in list(self._reports.items()):
            for task, counters in report.counters.items():
                if incarnation != newest[worker]:
                    counters = replace(counters, pending=0, queued=0)  # gauges of a life that is over
                by_component[self._plan.tasks[task].component].append(counters)
        return TopologyStatistics(
            topology=self._plan.topology,
            engine=self._engine,
            seconds=seconds,
            batches=self._batches,
            batch_ms=self._batch_times.summary(),
            components={
                name: summarise(
                    component.kind, len(component.tasks), by_component[name], self._last_error.get(name)
                )
                for name, component in self._plan.components.items()
            },
        )
