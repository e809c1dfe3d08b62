"""A topology that runs nothing, whose workers have reported what a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stormspark import Fields, TopologyBuilder
from stormspark.backpressure import BoltPressure, Pressure, SpoutPressure
from stormspark.driver.source_lag import Lags
from stormspark.driver.tally import Tally
from stormspark.metrics import DataPoint, Durations, TaskCounters, TopologyStatistics
from stormspark.operations.facts import WorkerPlace
from stormspark.plan import plan_topology
from stormspark.testing import FixedTupleSpout, TestWordCounter
from stormspark.worker.step import ErrorReport, WorkerReport

PRESSURE = Pressure(
    {"lines": SpoutPressure(500, "count", {"count": 1500.0}, max_pending=1000)},
    {"count": BoltPressure(7, 700, 1_000_000, 104_857_600, 2.5, above=False)},
    limit_changes=4,
    history=(),
)


class Reported:
    """The topology. `report` takes what its one worker has counted."""

    def __init__(self, conf: Mapping[str, object] | None = None, tasks: int = 2) -> None:
        builder = TopologyBuilder()
        builder.set_spout("lines", FixedTupleSpout([], Fields("line")), parallelism=1)
        builder.set_bolt("count", TestWordCounter(), parallelism=tasks).shuffle_grouping("lines")
        self.plan = plan_topology(builder.create_topology("words"), conf or {})
        self.storm_id = "words-1-1795861973"
        self.known_lags: Lags = {}
        self.tally = Tally(self.plan, "local", lambda: PRESSURE)
        (self.spout,) = self.plan.components["lines"].tasks
        self.bolts = self.plan.components["count"].tasks

    def report(
        self,
        counters: Mapping[int, TaskCounters],
        *,
        points: Sequence[DataPoint] = (),
        errors: Sequence[ErrorReport] = (),
    ) -> None:
        self.tally.add_batch(
            [WorkerReport(0, 0, 0, counters, tuple(errors), None, 3, data_points=tuple(points))], 0.2
        )
        self.tally.add_phases({"spark": 0.1})
        self.tally.end_batch()

    def by_task(self) -> dict[int, TaskCounters]:
        return self.tally.by_task()

    def statistics(self) -> TopologyStatistics:
        return self.tally.statistics()

    def durations(self) -> Durations:
        return self.tally.durations()

    def lags(self) -> Lags:
        return self.known_lags

    def worker_places(self) -> list[WorkerPlace]:
        return [WorkerPlace(0, "one", 17, 1_795_861_973.0)]
