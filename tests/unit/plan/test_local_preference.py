"""Which shuffles may stay in their worker while max spout pending holds their spouts (B4)."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.grouping import LocalWhileHeldGrouping, NoneGrouping, ShuffleGrouping
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.testing import TestWordCounter, TestWordSpout

LIMITED = {"topology.workers": 2, "topology.max.spout.pending": 10}


def plan(conf: dict[str, Any], also: dict[str, Any] | None = None) -> PhysicalPlan:
    """Plan words -> even, any, keyed, near; even -> far. ``also`` configures a second spout, which reaches ``far``, too."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), 2)
    builder.set_bolt("even", TestWordCounter(), 2).shuffle_grouping("words")
    builder.set_bolt("any", TestWordCounter(), 2).none_grouping("words")
    builder.set_bolt("keyed", TestWordCounter(), 2).fields_grouping("words", Fields("word"))
    builder.set_bolt("near", TestWordCounter(), 2).local_or_shuffle_grouping("words")
    builder.set_bolt("far", TestWordCounter(), 2).shuffle_grouping("even")
    if also is not None:
        spout = builder.set_spout("others", TestWordSpout(), 2)
        for key, value in also.items():
            spout.add_configuration(key, value)
        builder.set_bolt("both", TestWordCounter(), 2).shuffle_grouping("others").shuffle_grouping("words")
        builder.set_bolt("end", TestWordCounter(), 2).shuffle_grouping("both")
    return plan_topology(builder.create_topology("demo"), conf)


def staying(planned: PhysicalPlan) -> set[tuple[str, str]]:
    return {(e.source, e.target) for e in planned.edges if isinstance(e.grouping, LocalWhileHeldGrouping)}


def test_shuffles_and_none_groupings_may_and_no_other_does() -> None:
    planned = plan(LIMITED)
    assert staying(planned) == {("words", "even"), ("words", "any"), ("even", "far")}
    groupings = {edge.target: edge.grouping for edge in planned.edges}
    assert groupings["even"] == LocalWhileHeldGrouping(ShuffleGrouping(), ("words",))
    assert groupings["any"] == LocalWhileHeldGrouping(NoneGrouping(), ("words",))
    assert "shuffle, local while held" in groupings["far"].describe()


def test_such_an_edge_can_still_cross_workers() -> None:
    """It stays local only while the spout is held, so the plan has its exchange."""
    planned, without = plan(LIMITED), plan({"topology.workers": 2})
    assert [edge.crosses for edge in planned.edges] == [edge.crosses for edge in without.edges]
    assert planned.supersteps == without.supersteps


@pytest.mark.parametrize(
    "conf",
    [
        {"topology.max.spout.pending": None},
        {"topology.workers": 1},
        {"topology.acker.executors": 0},
        {"topology.disable.loadaware.messaging": True},
        {"topology.disable.loadaware.messaging": False},
        {"stormspark.backpressure.strategy": "drop"},
    ],
)
def test_nothing_changes_where_no_limit_holds_or_the_user_chose_otherwise(conf: dict[str, Any]) -> None:
    assert not staying(plan({**LIMITED, **conf}))


def test_an_edge_with_tuples_of_a_spout_without_a_limit_stays_as_it_is() -> None:
    """That spout can use all tasks at any time, so nothing may be taken from it."""
    planned = plan({"topology.workers": 2}, also={"topology.max.spout.pending": 10})
    assert staying(planned) == {("others", "both")}
    planned = plan(LIMITED, also={})
    assert {("both", "end"), ("others", "both")} < staying(planned)
