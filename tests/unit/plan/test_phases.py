"""Planning is a list of phases, each of which decides one thing (X41)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import pytest

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.config import Settings
from stormspark.errors import InvalidTopologyError
from stormspark.plan import PhysicalPlan, explain_text, plan_by_phases, plan_topology
from stormspark.plan.phases import PHASES
from stormspark.testing import TestWordCounter, TestWordSpout


def topology(conf: dict[str, Any] | None = None) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), 2)
    builder.set_bolt("near", TestWordCounter(), 2).local_or_shuffle_grouping("words")
    counter = builder.set_bolt("count", TestWordCounter(), 3).fields_grouping("words", Fields("word"))
    counter.add_configuration("topology.debug", True)
    return builder.create_topology("demo", conf)


def after(name: str, conf: dict[str, Any]) -> PhysicalPlan:
    return next(plan for phase, plan in plan_by_phases(topology(conf)) if phase.name == name)


def test_the_plan_is_what_the_last_phase_leaves() -> None:
    *_, (_, plan) = plan_by_phases(topology(), {"topology.workers": 2})
    assert plan == plan_topology(topology(), {"topology.workers": 2})


def test_each_phase_adds_what_it_decides() -> None:
    """The plan has one worker until tasks are packed, and nothing crosses until that is known."""
    conf = {"topology.workers": 2}
    assert not after("rules", conf).components
    assert list(after("components", conf).components) == ["words", "near", "count"]
    assert not after("load", conf).tasks
    tasks = after("tasks", conf)
    assert len(tasks.tasks) == 7 and {task.worker for task in tasks.tasks.values()} == {0}
    packed = after("packing", conf)
    assert packed.workers == 2 and {task.worker for task in packed.tasks.values()} == {0, 1}
    assert not any(edge.crosses for edge in packed.edges)
    assert [edge.target for edge in after("crossing", conf).edges if edge.crosses] == ["count"]
    assert (after("crossing", conf).supersteps, after("supersteps", conf).supersteps) == (0, 1)


@pytest.mark.parametrize("phase", [phase.name for phase in PHASES])
def test_a_plan_prints_after_every_phase(phase: str) -> None:
    """So it is whole as far as it goes."""
    assert explain_text(after(phase, {"topology.workers": 2})).startswith("topology demo: ")


def test_every_phase_says_in_one_line_what_it_decided() -> None:
    lines = {phase.name: phase.decision(plan) for phase, plan in plan_by_phases(topology())}
    assert list(lines) == [phase.name for phase in PHASES]
    assert all(line and "\n" not in line for line in lines.values())
    assert lines["components"] == "1 spout, 2 bolts, 2 subscriptions; settings of their own: count"
    assert lines["tasks"] == "7 tasks in 7 executors, ids 2-8"


def test_a_phase_that_refuses_ends_the_list() -> None:
    conf = {"stormspark.exactly.once": True, "topology.acker.executors": 0}
    planning = plan_by_phases(topology(conf))
    assert [phase.name for phase, _ in islice(planning, 2)] == ["rules", "components"]
    with pytest.raises(InvalidTopologyError, match=r"topology\.acker\.executors is 0"):
        next(planning)


def test_components_without_a_configuration_share_the_settings_of_the_topology() -> None:
    """A20, A21: so they are pickled once."""
    plan = plan_topology(topology({"topology.message.timeout.secs": 5}))
    assert plan.components["words"].settings is plan.components["near"].settings is plan.settings
    assert plan.components["count"].settings.debug and not plan.settings.debug
    assert plan.components["count"].settings.message_timeout_secs == 5


def test_each_configuration_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topology's, which is checked first, twice; that of a component alone, and on top of the topology's."""
    read: list[dict[str, Any]] = []
    original = Settings.read

    def noted(conf: Mapping[str, Any]) -> Settings:
        read.append(dict(conf))
        return original(conf)

    monkeypatch.setattr(Settings, "read", noted)
    plan_topology(topology({"topology.tasks": 4}))
    of_topology, own = {"topology.tasks": 4}, {"topology.debug": True}
    assert read == [of_topology, of_topology, of_topology | own, own]
