"""A running topology, as far as its metrics are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from stormspark.driver.source_lag import Lags
from stormspark.metrics import Durations, TaskCounters, TopologyStatistics
from stormspark.plan.physical import PhysicalPlan

__all__ = ["Measured", "Place", "tasks_of"]


class Place(Protocol):
    """Where a worker is; ``pid`` is 0 while it starts, and ``since`` is in seconds since 1970."""

    @property
    def worker(self) -> int:
        """The number of the worker."""

    @property
    def host(self) -> str:
        """Its host."""

    @property
    def pid(self) -> int:
        """Its process."""

    @property
    def since(self) -> float:
        """When it began."""


class Measured(Protocol):
    """A running topology of either engine. Each method may be called from any thread."""

    @property
    def plan(self) -> PhysicalPlan:
        """The physical plan that runs."""

    @property
    def storm_id(self) -> str:
        """The id of this run of the topology (A14)."""

    def by_task(self) -> Mapping[int, TaskCounters]:
        """Return the counters of each task that has reported."""

    def statistics(self) -> TopologyStatistics:
        """Return all statistics."""

    def durations(self) -> Durations:
        """Return how long batches and their parts took."""

    def lags(self) -> Lags:
        """Return how far the spouts that read Kafka are behind (K9). This may take some milliseconds."""

    def worker_places(self) -> Sequence[Place]:
        """Return where the workers are."""


def tasks_of(measured: Measured) -> tuple[PhysicalPlan, Mapping[int, TaskCounters]]:
    """Return the counters of the tasks that have reported, and the plan that these tasks are in. A rebalance changes both."""
    plan = None
    while plan is not measured.plan:
        plan = measured.plan
        by_task = measured.by_task()
    return plan, {task: counters for task, counters in by_task.items() if task in plan.tasks}
