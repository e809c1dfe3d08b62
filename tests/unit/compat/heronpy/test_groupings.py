"""Groupings of Heron's."""

from __future__ import annotations

import datetime
import enum
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.compat.heronpy import groupings
from stormspark.compat.heronpy.custom_grouping import ICustomGrouping
from stormspark.compat.heronpy.groupings import AnyFieldsGrouping, engine_grouping
from stormspark.compat.heronpy.stream import Grouping
from stormspark.errors import ComponentError, EmitError
from stormspark.grouping import CustomGrouping, FieldsGrouping, GroupingContext


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def context(sender: int = 1) -> GroupingContext:
    tasks = {"source": (1, 2), "target": (4, 5, 6)}
    return GroupingContext(
        "source", "default", ("a", "b"), sender, (4, 5, 6), (), Random(7), consumer="target", tasks=tasks
    )


KEYS = st.one_of(
    st.text(),
    st.integers(),
    st.none(),
    st.tuples(st.text(), st.integers()),
    st.sampled_from(Colour),
    st.complex_numbers(),
)


@given(KEYS, st.integers())
def test_equal_keys_meet(key: Any, other: Any) -> None:
    """D4: whatever can be pickled is a key, from whichever task it comes."""
    chosen = {AnyFieldsGrouping(["a"]).chooser(context(sender))((key, other)) for sender in (1, 2)}
    assert len(chosen) == 1 and chosen <= {4, 5, 6}


def rebuilt(key: Any) -> Any:
    """Return an equal key that shares no object with itself, and whose sets and dicts have another order."""
    if isinstance(key, list | tuple):
        return type(key)(map(rebuilt, key))
    if isinstance(key, frozenset):
        return frozenset(sorted(key, reverse=True))
    if isinstance(key, dict):
        return {rebuilt(name): rebuilt(key[name]) for name in reversed(key)}
    return datetime.date(key.year, key.month, key.day) if isinstance(key, datetime.date) else key


DAY = datetime.date(2026, 1, 2)
PAIR = ("a", 1j)


@pytest.mark.parametrize(
    "key",
    [(DAY, DAY), [PAIR, PAIR], (1j, frozenset([8, 16, 0])), {"a": 1j, "b": 2j}, [[PAIR], PAIR]],
    ids=str,
)
def test_equal_keys_have_equal_bytes(key: Any) -> None:
    """D4: also if an object occurs in a key twice."""
    assert rebuilt(key) == key and groupings._key_bytes(rebuilt(key)) == groupings._key_bytes(key)


class HasItself:
    def __init__(self) -> None:
        self.me = self


def test_an_object_that_refers_to_itself_is_a_key() -> None:
    """D4."""
    choose = AnyFieldsGrouping(["a"]).chooser(context())
    assert choose((HasItself(), 1)) == choose((HasItself(), 1)) in (4, 5, 6)


@given(st.text())
def test_keys_that_storm_knows_go_where_storm_sends_them(key: str) -> None:
    """D1, D4: and not where Heron's C++ would."""
    assert AnyFieldsGrouping(["a"]).chooser(context())((key, 1)) == FieldsGrouping(["a"]).chooser(context())(
        (key, 1)
    )


class Own(ICustomGrouping):
    def prepare(self, context: Any, component: str, stream: str, target_tasks: list[int]) -> None:
        assert (context.get_task_id(), context.get_component_id(), component) == (1, "source", "source")
        assert context.get_component_tasks("target") == target_tasks
        assert context.get_cluster_config() == {"x": 1} and context.get_topology_name() == "topology"
        assert context.get_this_sources() == {} and context.get_sources("nobody") is None
        for forbidden in (lambda: context.register_metric("m", None, 1), lambda: context.add_task_hook(None)):
            with pytest.raises(RuntimeError, match=r"a grouping can't"):
                forbidden()
        self.tasks = target_tasks

    def choose_tasks(self, values: Any) -> list[int]:
        return [9] if values[0] == "wrong" else self.tasks[: values[0]]


def chooser(grouping: Any) -> Any:
    made = engine_grouping(grouping, "here", "topology", {"x": 1}, {"source": {}})
    assert isinstance(made, CustomGrouping)
    return made.chooser(context())


@pytest.mark.parametrize("given", [Own(), f"{__name__}.Own"])
def test_a_custom_grouping(given: Any) -> None:
    """D13: many tasks, or none; an id that is no target's is refused."""
    choose = chooser(Grouping.custom(given))
    assert (choose((2, "x")), choose((0, "x"))) == ([4, 5], [])
    with pytest.raises(EmitError, match=r"must return a list of ids of its target tasks"):
        choose(("wrong", "x"))


def test_a_class_that_there_is_not() -> None:
    """D13: ComponentError with the path."""
    with pytest.raises(ComponentError, match=r"custom grouping 'no.Where' can't be loaded"):
        chooser(Grouping.custom("no.Where"))
