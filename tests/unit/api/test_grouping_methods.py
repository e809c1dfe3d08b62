"""A bolt's subscriptions by each grouping that a builder knows (A6, D5-D13)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import CustomStreamGrouping, Fields, GlobalStreamId, TopologyBuilder
from stormspark.api import BoltDeclarer
from stormspark.errors import InvalidTopologyError, SerializationError
from stormspark.grouping import (
    AllGrouping,
    CustomGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LoadAwareShuffleGrouping,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from stormspark.plan import plan_topology
from stormspark.testing import TestWordCounter, TestWordSpout


class ToAll(CustomStreamGrouping):
    def __init__(self, extra: Any = None) -> None:
        self.extra = extra

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        return self.tasks


METHODS: dict[str, tuple[tuple[Any, ...], Grouping]] = {
    "shuffle_grouping": ((), ShuffleGrouping()),
    "fields_grouping": ((Fields("word", "n"),), FieldsGrouping(["word", "n"])),
    "global_grouping": ((), GlobalGrouping()),
    "all_grouping": ((), AllGrouping()),
    "none_grouping": ((), NoneGrouping()),
    "direct_grouping": ((), DirectGrouping()),
    "local_or_shuffle_grouping": ((), LocalOrShuffleGrouping()),
    "local_first_grouping": ((), LocalFirstGrouping()),
    "load_aware_shuffle_grouping": ((), LoadAwareShuffleGrouping()),
    "partial_key_grouping": ((Fields("word", "n"),), PartialKeyGrouping(["word", "n"])),
    "custom_grouping": ((ToAll(),), CustomGrouping(ToAll())),
}


def bolt(builder: TopologyBuilder) -> BoltDeclarer:
    return builder.set_bolt("count", TestWordCounter())


@pytest.mark.parametrize("method", METHODS)
def test_a_method_subscribes_to_the_default_stream_or_another_one(method: str) -> None:
    """Each grouping method subscribes to the default stream or to a named one (A6, D5-D13)."""
    arguments, grouping = METHODS[method]
    builder = TopologyBuilder()
    declarer = bolt(builder)
    assert getattr(declarer, method)("words", *arguments) is declarer
    getattr(declarer, method)("words", *arguments, stream="other")
    assert builder.create_topology("t").components["count"].inputs == {
        GlobalStreamId("words"): grouping,
        GlobalStreamId("words", "other"): grouping,
    }


def test_every_grouping_method_is_known_here() -> None:
    """The table of this file has every grouping method of a bolt's declarer (A6)."""
    there = {name for name in vars(BoltDeclarer) if name.endswith("_grouping")}
    assert there == set(METHODS)


def test_the_fields_of_a_partial_key_are_checked_when_the_topology_is_planned() -> None:
    """Planning rejects a partial key with an unknown field, and suggests the nearest one (D12, J5)."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    bolt(builder).partial_key_grouping("words", Fields("wrod"))
    with pytest.raises(
        InvalidTopologyError, match=r"bolt 'count' groups .* by partial_key\(wrod\).* did you mean 'word'"
    ):
        plan_topology(builder.create_topology("t"))


def test_a_field_may_be_named_by_a_string() -> None:
    """A partial key grouping takes the name of a field in place of `Fields` (D12)."""
    builder = TopologyBuilder()
    bolt(builder).partial_key_grouping("words", "word")  # type: ignore[arg-type]
    (grouping,) = builder.create_topology("t").components["count"].inputs.values()
    assert grouping == PartialKeyGrouping("word")


def test_a_grouping_of_ours_is_a_custom_grouping_as_well() -> None:
    """D12, D13: as in Storm, where one writes customGrouping(id, new PartialKeyGrouping(fields))."""
    builder = TopologyBuilder()
    bolt(builder).custom_grouping("words", PartialKeyGrouping("word"))
    (grouping,) = builder.create_topology("t").components["count"].inputs.values()
    assert grouping == PartialKeyGrouping("word")


def test_a_non_grouping_is_refused_with_its_place() -> None:
    """A non-grouping, and a grouping that can't be pickled, is rejected with the subscription and its line (D13)."""
    place = r"test_grouping_methods.py:\d+: bolt 'count' subscribes to stream 'other' of 'words': "
    with pytest.raises(
        InvalidTopologyError, match=place + r"a custom grouping needs the methods .* has no prepare"
    ):
        bolt(TopologyBuilder()).custom_grouping("words", "shuffle", "other")  # type: ignore[arg-type]
    with pytest.raises(SerializationError, match=place + r"the custom grouping ToAll can't be pickled"):
        bolt(TopologyBuilder()).custom_grouping("words", ToAll(threading.Lock()), "other")
