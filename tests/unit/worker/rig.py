"""A topology's workers in this process, driven batch by batch on a clock that stands still."""

from __future__ import annotations

from random import Random
from typing import Any

from stormspark import TopologyBuilder
from stormspark.local import InProcessWorkers, SimulatedClock
from stormspark.plan import plan_topology
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.spout_task import SpoutTask
from tests.unit.worker.components import Script

#: Of the test that runs.
OPENED: list[Rig] = []


class Rig:
    """A topology's workers and their components, without an engine."""

    def __init__(self, builder: TopologyBuilder, workers: int, *, active: Any = True, **conf: Any) -> None:
        settings = {
            "topology.workers": workers,
            **{key.replace("_", "."): value for key, value in conf.items()},
        }
        plan = plan_topology(builder.create_topology("rig"), settings)
        self.clock = self.new_clock()
        self.cluster = InProcessWorkers(plan, self.clock, Random(5))
        OPENED.append(self)
        self.cluster.open(active)
        self.workers = self.cluster.workers
        self.errors: list[str] = []  # all that were told

    def new_clock(self) -> SimulatedClock:
        return SimulatedClock()

    def batches(self, n: int) -> None:
        for _ in range(n):
            reports = self.cluster.run_batch()
            self.errors.extend(error.text for report in reports for error in report.errors)
            for worker in self.workers:
                worker.validate()

    def advance(self, seconds: float, batches: int = 1) -> None:
        """Let time pass, then run batches."""
        self.clock.advance(seconds)
        self.batches(batches)

    def tasks(self, component: str) -> list[Any]:
        every = [t for worker in self.workers for t in worker.tasks.values() if t.component.id == component]
        return sorted(every, key=lambda task: task.id)

    def users(self, component: str) -> list[Any]:
        return [
            t.bolt if isinstance(t, BoltTask) else t.spout
            for t in self.tasks(component)
            if isinstance(t, BoltTask | SpoutTask)
        ]


def two(bolt: Any, rows: list[tuple[Any, ...]] | Script) -> TopologyBuilder:
    """Spout -> bolt; with two workers the bolt lives in the other one."""
    builder = TopologyBuilder()
    builder.set_spout("a", rows if isinstance(rows, Script) else Script(rows))
    builder.set_bolt("b", bolt).shuffle_grouping("a")
    return builder
