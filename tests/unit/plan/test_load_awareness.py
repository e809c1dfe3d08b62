"""Who gets Storm's load-aware shuffle: those who say so (D6, D7, W17)."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import LoadAwareShuffleGrouping, LocalOrShuffleGrouping, ShuffleGrouping
from stormspark.plan import explain_text, plan_topology
from stormspark.testing import TestWordCounter, TestWordSpout

KEY = "topology.disable.loadaware.messaging"


def topology(conf: dict[str, Any] | None = None) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), 2)
    builder.set_bolt("shuffled", TestWordCounter(), 2).shuffle_grouping("words")
    builder.set_bolt("near", TestWordCounter(), 2).local_or_shuffle_grouping("words")
    builder.set_bolt("by_word", TestWordCounter(), 2).fields_grouping("words", Fields("word"))
    return builder.create_topology("demo", conf)


def groupings(conf: dict[str, Any], overrides: dict[str, Any] | None = None) -> dict[str, str]:
    plan = plan_topology(topology(conf), {"topology.workers": 2, **(overrides or {})})
    return {edge.target: edge.grouping.describe() for edge in plan.edges}


@pytest.mark.parametrize("conf", [{}, {KEY: True}, {KEY: None}])
def test_shuffle_is_plain_unless_the_configuration_says_otherwise(conf: dict[str, Any]) -> None:
    """W17, D5: also without the key, for which Storm's default is False."""
    assert groupings(conf) == {"shuffled": "shuffle", "near": "local_or_shuffle", "by_word": "fields(word)"}


def test_storms_default_set_explicitly_gives_storms_shuffle() -> None:
    """Only the explicit setting makes shuffle groupings follow loads, and the later setting wins (D6, D7)."""
    assert groupings({KEY: False}) == {
        "shuffled": "load_aware_shuffle",
        "near": "local_or_load_aware_shuffle",
        "by_word": "fields(word)",
    }
    assert groupings({KEY: True}, {KEY: False})["shuffled"] == "load_aware_shuffle"
    assert groupings({KEY: False}, {KEY: True})["shuffled"] == "shuffle"


def test_the_topology_as_written_is_left_alone() -> None:
    """Planning leaves the groupings of the user's topology unchanged (D6)."""
    written = topology({KEY: False})
    plan_topology(written)
    inputs = [one for component in written.components.values() for one in component.inputs.values()]
    assert inputs[:2] == [ShuffleGrouping(), LocalOrShuffleGrouping()]


def test_a_plan_shows_it_and_counts_with_its_crossings() -> None:
    """D6: a load-aware shuffle may leave the worker, a local-or-shuffle that follows load may not."""
    text = explain_text(plan_topology(topology({KEY: False}), {"topology.workers": 2}))
    assert "words -> shuffled: load_aware_shuffle, crosses workers" in text
    assert "words -> near: local_or_load_aware_shuffle, stays in its worker" in text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY, "false"),
        ("topology.localityaware.higher.bound", -0.1),
        ("topology.localityaware.lower.bound", "0.2"),
        ("topology.executor.receive.buffer.size", 0),
    ],
)
def test_settings_are_checked(key: str, value: Any) -> None:
    """A wrong value for a setting of load awareness is rejected with its name (D6, J5)."""
    with pytest.raises(InvalidTopologyError, match=key):
        plan_topology(topology({key: value}))


def test_a_builder_takes_them_by_name_too() -> None:
    """D6, D7: whatever the configuration says."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    one = builder.set_bolt("one", TestWordCounter()).load_aware_shuffle_grouping("words")
    one.local_first_grouping("words", stream="other")
    inputs = builder.create_topology("demo", {KEY: True}).components["one"].inputs
    assert [grouping.describe() for grouping in inputs.values()] == ["load_aware_shuffle", "local_first"]
    assert next(iter(inputs.values())) == LoadAwareShuffleGrouping()
