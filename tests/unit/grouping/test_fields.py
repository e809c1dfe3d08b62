"""The fields grouping: Storm's task for every key, and mistakes in its fields (D1-D3, A7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from stormspark.errors import InvalidTopologyError, ValueNotHashableError
from stormspark.grouping import FieldsGrouping, GlobalGrouping, GroupingContext, fields_task_index

TASKS = (4, 5, 6, 9)
#: Equal in Python one and all, or nearly so, and different to Java.
LOOK_ALIKES = [
    1,
    True,
    1.0,
    "1",
    b"1",
    0,
    False,
    0.0,
    -0.0,
    None,
    "",
    b"",
    (),
    [],
    -1,
    [1],
    (1.0,),
    {},
    {1: 1},
    {1.0},
]


def chooser(grouping: FieldsGrouping, ints: str = "long") -> Callable[[Sequence[Any]], Any]:
    context = GroupingContext("split", "words", ("word", "n", "tags"), 2, TASKS, (5,), Random(1), ints)
    return grouping.chooser(context)


@pytest.mark.parametrize("ints", ["long", "integer", "json"])
def test_the_task_is_the_one_at_storms_index_whatever_was_asked_before(ints: str) -> None:
    """Values that are equal in Python but not in Java go to Storm's task for each, in any order (D1, D2, D3)."""
    one, two = chooser(FieldsGrouping("n"), ints), chooser(FieldsGrouping(["n", "word"]), ints)
    for value in LOOK_ALIKES * 2:
        for other in LOOK_ALIKES:
            assert one([other, value, None]) == TASKS[fields_task_index([value], 4, ints)]
            assert two([other, value, None]) == TASKS[fields_task_index([value, other], 4, ints)]


def test_fields_hash_in_the_order_of_the_grouping() -> None:
    """The fields hash in the order in which the grouping names them (D1)."""
    values = ["storm", 7, None]
    assert chooser(FieldsGrouping(["n", "word"]))(values) == TASKS[fields_task_index([7, "storm"], 4)]
    assert chooser(FieldsGrouping(["word", "n"]))(values) == TASKS[fields_task_index(["storm", 7], 4)]


def test_fields_are_one_name_or_several() -> None:
    """A fields grouping takes one name or any iterable of names (D1)."""
    assert FieldsGrouping("word") == FieldsGrouping(["word"]) == FieldsGrouping(iter(("word",)))
    assert FieldsGrouping(["word", "n"]).key_fields == ("word", "n")


def test_all_tasks_are_candidates() -> None:
    """Every task is a candidate of a fields grouping, local or not (D1)."""
    assert FieldsGrouping("word").candidates(TASKS, (5,)) == TASKS


def test_without_fields_it_is_the_global_grouping() -> None:
    """Without fields it behaves and describes itself as the global grouping (A7, D10)."""
    none, to_one = FieldsGrouping([]), GlobalGrouping()
    assert none.key_fields == ()
    assert none.candidates(TASKS, (5,)) == to_one.candidates(TASKS, (5,))
    assert none.repartitioning(TASKS) == to_one.repartitioning(TASKS)
    assert none.describe() == to_one.describe()
    assert chooser(none)(["storm", 7, None]) == 4


def test_a_field_is_named_once() -> None:
    """A field that is named twice is rejected (D1, A11)."""
    with pytest.raises(InvalidTopologyError, match="takes each field once, got 'word' twice"):
        FieldsGrouping(["word", "n", "word"])


def test_a_field_is_a_name() -> None:
    """A field that is no string is rejected (D1)."""
    with pytest.raises(InvalidTopologyError, match="takes names of fields, got 0 of type int"):
        FieldsGrouping([0])  # type: ignore[list-item]


def test_a_field_must_be_one_of_the_stream() -> None:
    """A field that the stream does not declare is rejected, with the fields that it declares (D1, J5)."""
    with pytest.raises(
        InvalidTopologyError,
        match=r"'wrod' of stream 'words' of 'split', which declares only 'word', 'n', 'tags'",
    ):
        chooser(FieldsGrouping(["n", "wrod"]))


@pytest.mark.parametrize("fields", ["tags", ["word", "tags"]])
def test_a_key_without_a_stable_hash_is_refused_by_field(fields: Any) -> None:
    """D2: Java would send it anywhere."""
    choose = chooser(FieldsGrouping(fields))
    for culprit in (object(), [object()], {"x": object()}):
        with pytest.raises(
            ValueNotHashableError, match=r"^field 'tags' of stream 'words' of 'split': .* of type object:"
        ):
            choose(["storm", 7, culprit])
