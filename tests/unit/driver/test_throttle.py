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


def test_it_knows_which_spouts_max_pending_holds_and_which_limit_they_would_not_feel() -> None:
    """What rounds show of max spout pending reaches the orders for the next round, and people (B4)."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words")
    conf = {"topology.workers": 2, "topology.max.spout.pending": 100}
    plan = plan_topology(builder.create_topology("t"), conf)
    (spout,), (bolt,) = plan.components["words"].tasks, plan.components["count"].tasks
    throttle = Throttle(plan)
    loads: dict[int, TaskLoad] = {
        spout: SpoutLoad(100, False, False, held=True),
        bolt: BoltLoad(100, 0.001, 0, 0),
    }
    reports = [WorkerReport(0, 0, 0, {}, (), None, 0, loads=loads, worked=0.01)]
    throttle.observe(reports, 30.0, first=True)
    assert not throttle.held and not throttle.staying_local, "the first round includes the start of workers"
    throttle.observe(reports, 0.3)
    assert throttle.held == throttle.staying_local == {"words"}
    shown = throttle.pressure().spouts["words"]
    assert shown.max_pending == 100
    assert shown.unfelt_max_pending == pytest.approx(100_000 * throttle.round_target, rel=0.1)
