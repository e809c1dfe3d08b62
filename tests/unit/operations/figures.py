"""What a topology that runs nothing tells the web page."""

from __future__ import annotations

from stormspark.backpressure import Pressure
from stormspark.checkpoint.state_components import StatePlace
from stormspark.driver.commit_log import Commits
from stormspark.metrics import LatencySummary, TaskCounters, TopologyStatistics, summarise
from stormspark.metrics.sums import Sums, sums_of
from stormspark.plan import PhysicalPlan
from stormspark.worker.busy import Busy
from stormspark.worker.stories.story import Story

__all__ = ["Figures"]


class Figures:
    """A base class for topologies with ``plan`` and ``counters``."""

    name: str
    plan: PhysicalPlan
    counters: dict[int, TaskCounters]
    batches = 0
    pressed: Pressure | None = None
    told_stories: tuple[Story, ...] = ()
    told_commits = Commits((), ())
    state_table: StatePlace | None = None

    def sums(self) -> Sums:
        counted = [(self.plan.tasks[task].component, one) for task, one in self.counters.items()]
        phases = {"workers": (0.2 * self.batches, self.batches)}
        components, edges = sums_of(tuple(self.plan.components), edge_keys(self.plan), counted)
        return Sums(tuple(self.plan.components), components, edges, self.batches, 0.25 * self.batches, phases)

    def pressure(self) -> Pressure | None:
        return self.pressed

    def statistics(self) -> TopologyStatistics:
        by_component: dict[str, list[TaskCounters]] = {name: [] for name in self.plan.components}
        for task, one in self.counters.items():
            by_component[self.plan.tasks[task].component].append(one)
        components = {
            name: summarise(one.kind, len(one.tasks), by_component[name], None)
            for name, one in self.plan.components.items()
        }
        return TopologyStatistics(
            self.name, "local", 60.0, self.batches, LatencySummary(), components, pressure=self.pressed
        )

    def commits(self) -> Commits:
        return self.told_commits

    def calls_under_way(self) -> list[Busy]:
        return []

    def stories(self, root: int | str | None = None) -> list[Story]:
        return list(self.told_stories)


def edge_keys(plan: PhysicalPlan) -> list[tuple[str, str, str]]:
    return [(edge.target, edge.source, edge.stream) for edge in plan.edges]
