"""The controller, fed by workers' reports: what of it holds under which strategy."""

from __future__ import annotations

import pytest

from stormspark import TopologyBuilder
from stormspark.backpressure import BoltLoad, SpoutLoad, TaskLoad
from stormspark.driver.throttle import Throttle
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.testing import TestWordCounter, TestWordSpout
from stormspark.worker.step import WorkerReport


def planned(strategy: str) -> PhysicalPlan:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words")
    return plan_topology(builder.create_topology("t", {"stormspark.backpressure.strategy": strategy}))


@pytest.mark.parametrize("strategy", ["slow", "drop", "fail"])
def test_only_one_strategy_slows_spouts_down(strategy: str) -> None:
    """X51: under the others nobody is limited, nothing is said of limits, sources are read on; queues are shown."""
    plan = planned(strategy)
    (spout,), (bolt,) = plan.components["words"].tasks, plan.components["count"].tasks
    throttle = Throttle(plan)
    loads: dict[int, TaskLoad] = {
        spout: SpoutLoad(1000, True, strategy == "slow"),
        bolt: BoltLoad(1000, 10.0, 5000, 90_000),
    }
    for batch in range(3):
        throttle.observe([WorkerReport(0, 0, batch, {}, (), None, 0, loads=loads)], 10.0)
    pressure = throttle.pressure()
    assert pressure.bolts["count"].queued == 5000
    slows = strategy == "slow"
    assert bool(throttle.limits) is slows
    assert (throttle.limit_of("words") is not None) is slows is throttle.is_behind(["words"])
    assert (pressure.spouts["words"].limit is not None) is slows
    assert pressure.spouts["words"].throttled_by == ("count" if slows else None)
    assert bool(pressure.limit_changes) is bool(pressure.history) is slows
