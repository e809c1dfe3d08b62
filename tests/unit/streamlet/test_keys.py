"""Pairs, and which partition a key belongs to."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from random import Random
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.errors import EmitError, ValueNotHashableError
from stormspark.grouping import GroupingContext
from stormspark.streamlet import KeyedWindow, KeyValue, Window
from stormspark.streamlet.keys import ByFunction, ByKey, is_pair, key_hash

NUMBERS = (
    st.integers() | st.floats(allow_nan=False) | st.booleans() | st.decimals(allow_nan=False) | st.fractions()
)
KEYS = st.recursive(
    NUMBERS | st.text() | st.binary() | st.none() | st.dates() | st.uuids(),
    lambda keys: st.lists(keys, max_size=3).map(tuple) | st.frozensets(keys, max_size=3),
    max_leaves=5,
)


@given(st.lists(NUMBERS, min_size=2, max_size=20))
def test_equal_numbers_have_equal_hashes_whatever_their_type(some):
    """G24: as keys of a dict, which a partition reduces and joins by."""
    for one in some:
        for other in [*some, int(one) if one == one and abs(one) != float("inf") else one]:
            assert one != other or key_hash(one) == key_hash(other)


@dataclass(frozen=True)
class Place:
    town: str
    number: float


class Colour(Enum):
    RED = 1
    BLUE = 2


ONE_OF_EACH = [
    "storm",
    "\udc80",
    b"storm",
    7,
    -1.5,
    Decimal("1.5"),
    Fraction(3, 2),
    None,
    True,
    date(2026, 1, 1),
    datetime(2026, 1, 1, 12, tzinfo=UTC),
    timedelta(seconds=3),
    UUID(int=7),
    ("a", (1, None)),
    frozenset({"a", "b", "c"}),
    Colour.BLUE,
    Place("Rome", 3),
    KeyedWindow("a", Window(0.0, 10.0)),
]


@pytest.mark.slow
def test_hashes_are_the_same_in_every_process():
    """G24: Python's own are not, unless PYTHONHASHSEED is set everywhere."""
    here = [key_hash(key) for key in ONE_OF_EACH]
    code = "from tests.unit.streamlet.test_keys import *; print([key_hash(key) for key in ONE_OF_EACH])"
    for seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == repr(here)


def test_equal_values_of_more_kinds_have_equal_hashes():
    """Values that are equal have equal hashes, across types, time zones and orders of sets (G24)."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert key_hash(noon) == key_hash(noon.astimezone(timezone(timedelta(hours=5))))
    assert key_hash(np.int64(3)) == key_hash(np.float32(3)) == key_hash(3)
    assert key_hash(np.True_) == key_hash(True) == key_hash(1)
    assert key_hash(Place("Rome", 3)) == key_hash(Place("Rome", 3.0))
    assert key_hash(frozenset("abcdefgh")) == key_hash(frozenset("hgfedcba"))
    assert key_hash(Window(None, 1.0)) == key_hash(Window(None, 1))
    assert key_hash(float("nan")) == key_hash(float("nan"))


@given(KEYS, st.integers(1, 5), st.integers(0, 10))
def test_a_key_has_one_partition(key, partitions, sender):
    """G24: whoever sends."""
    targets = tuple(range(4, 4 + partitions))
    choices = {
        ByKey().chooser(GroupingContext("a", "output", ("_output_",), task, targets, (), Random(task)))(
            [(key, value)]
        )
        for task, value in ((1, "x"), (2, "y"), (sender, "z"))
    }
    assert len(choices) == 1 and choices <= set(targets)


def chooser(grouping: ByKey, targets: tuple[int, ...] = (4, 5, 6)):
    return grouping.chooser(
        GroupingContext("map-1", "output", ("_output_",), 1, targets, (), Random(7), consumer="join-1")
    )


def test_keys_are_spread():
    """Keys are spread evenly over the partitions (G24)."""
    choose = chooser(ByKey())
    counts = [sum(choose([(f"key {n}", n)]) == target for n in range(3000)) for target in (4, 5, 6)]
    assert min(counts) > 900


@pytest.mark.parametrize("element", ["ab", b"ab", 7, None, (1,), (1, 2, 3), {"a"}, [], iter("ab")])
def test_what_is_no_pair_is_refused_with_both_stages(element):
    """G24: a text of two letters too, which Heron takes for a pair."""
    assert not is_pair(element)
    with pytest.raises(
        EmitError, match=r"stage 'map-1' gives .* to stage 'join-1', which groups by keys: it must be a pair"
    ):
        chooser(ByKey())([element])


@pytest.mark.parametrize("element", [("a", 1), ["a", 1], KeyValue("a", 1), np.array([1, 2])])
def test_sequences_of_two_items_are_pairs(element):
    """Tuples, lists, key-value objects and arrays of two items are pairs (G24)."""
    assert is_pair(element)
    assert chooser(ByKey())([element]) in (4, 5, 6)


class Anything:
    pass


def test_a_key_without_a_stable_hash_is_refused_unless_there_is_one_partition():
    """A key without a stable hash is rejected unless there is only one partition (G24)."""
    with pytest.raises(ValueNotHashableError):
        key_hash(Anything())
    for key in (Anything(), [1]):
        with pytest.raises(EmitError, match="groups by keys"):
            chooser(ByKey())([(key, 1)])
        assert chooser(ByKey(), (9,))([(key, 1)]) == 9


def test_elements_without_keys_are_dealt_out_where_they_may_be():
    """G24: reduce_by_window."""
    choose = chooser(ByKey(strict=False))
    assert sorted(choose([n]) for n in range(6)) == [4, 4, 5, 5, 6, 6]
    assert choose([("a", 1)]) == choose([("a", 2)])


@pytest.mark.parametrize(
    ("chosen", "tasks"),
    [(0, [4]), (4, [5]), (-1, [6]), ([0, 2], [4, 6]), ((), []), (np.int64(1), [5]), ({1}, [5])],
)
def test_a_repartition_function_names_one_partition_or_several(chosen, tasks):
    """G24: modulo their number, as in Heron."""
    grouping = ByFunction(lambda element, partitions: chosen)
    grouping.tasks = [4, 5, 6]
    assert grouping.choose_tasks(1, ["element"]) == tasks


def test_a_repartition_function_is_given_the_element_and_the_number_of_partitions():
    """G24: Heron's Python gives a list with the element in it, if it came so far."""
    given_ = []

    def first(element, partitions):
        given_.append((element, partitions))
        return 0

    grouping = ByFunction(first)
    grouping.tasks = [4, 5]
    assert grouping.choose_tasks(1, ["element"]) == [4]
    assert given_ == [("element", 2)]


@pytest.mark.parametrize("chosen", [None, "1", 1.5, [0, None], True])
def test_other_answers_are_refused(chosen):
    """A user's partition function must return one number or several (G24)."""
    grouping = ByFunction(lambda element, partitions: chosen)
    grouping.tasks = [4, 5]
    with pytest.raises(TypeError, match="must return the number of a partition, or several numbers, got"):
        grouping.choose_tasks(1, ["element"])
