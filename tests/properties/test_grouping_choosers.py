"""What every chooser keeps to, whatever comes (D1, D5, D7, D9, D10)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stormspark.grouping import (
    AllGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    GroupingContext,
    LocalOrShuffleGrouping,
    ShuffleGrouping,
    fields_task_index,
)

FIELDS = ("word", "n", "tags")
NUMBER_TYPES = st.sampled_from(["long", "integer", "json"])

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5)
)
#: Few distinct values, and among them those that Python confuses and Java doesn't.
look_alikes = st.sampled_from(
    [0, 1, False, True, 0.0, -0.0, 1.0, "0", "1", "", b"1", None, (1,), (1.0,), (True,)]
)
values = st.lists(scalars | look_alikes | st.lists(scalars, max_size=3), min_size=3, max_size=3)
groupings = st.sampled_from(
    [
        ShuffleGrouping(),
        FieldsGrouping("word"),
        FieldsGrouping(["tags", "n"]),
        FieldsGrouping(()),
        GlobalGrouping(),
        AllGrouping(),
        LocalOrShuffleGrouping(),
    ]
)


@st.composite
def contexts(draw: st.DrawFn) -> GroupingContext:
    targets = draw(st.lists(st.integers(1, 50), unique=True, min_size=1, max_size=8).map(sorted))
    local = [task for task in targets if draw(st.booleans())]
    random = Random(draw(st.integers(0, 2**32)))
    return GroupingContext(
        "split", "default", FIELDS, 99, tuple(targets), tuple(local), random, draw(NUMBER_TYPES)
    )


def chosen(grouping: Grouping, context: GroupingContext, tuples: list[Any]) -> list[tuple[int, ...]]:
    choose = grouping.chooser(context)
    return [(choose(one),) if grouping.single else tuple(choose(one)) for one in tuples]


@given(groupings, contexts(), st.lists(values, max_size=20))
def test_only_candidates_are_chosen(grouping: Grouping, context: GroupingContext, tuples: list[Any]) -> None:
    candidates = grouping.candidates(context.targets, context.local_targets)
    assert set(candidates) <= set(context.targets)
    assert list(candidates) == sorted(candidates)
    for tasks in chosen(grouping, context, tuples):
        assert set(tasks) <= set(candidates)


@given(contexts(), st.lists(values, max_size=30), st.sampled_from([("word",), ("tags", "n"), FIELDS]))
def test_fields_look_at_the_key_only_and_forget_nothing_of_its_types(
    context: GroupingContext, tuples: list[Any], key: tuple[str, ...]
) -> None:
    # One chooser for all tuples, so a key that it remembers stands against all its look-alikes.
    for one, (task,) in zip(tuples, chosen(FieldsGrouping(key), context, tuples), strict=True):
        picked = [one[FIELDS.index(field)] for field in key]
        index = fields_task_index(picked, len(context.targets), context.ints)
        assert task == context.targets[index]


@given(contexts(), st.integers(0, 100))
def test_shuffle_is_even_within_one_tuple_for_each_sender(context: GroupingContext, count: int) -> None:
    sent = Counter(task for (task,) in chosen(ShuffleGrouping(), context, [[]] * count))
    shares = [sent[task] for task in context.targets]
    assert max(shares) - min(shares) <= 1
    assert sum(shares) == count


@given(contexts(), st.lists(values, max_size=5))
def test_all_takes_each_target_once(context: GroupingContext, tuples: list[Any]) -> None:
    for tasks in chosen(AllGrouping(), context, tuples):
        assert sorted(tasks) == list(context.targets)


@given(contexts(), st.lists(values, max_size=5))
def test_global_takes_the_lowest(context: GroupingContext, tuples: list[Any]) -> None:
    assert chosen(GlobalGrouping(), context, tuples) == [(min(context.targets),)] * len(tuples)


@given(contexts(), st.integers(1, 40))
def test_local_or_shuffle_stays_local_if_it_can_and_is_even(context: GroupingContext, count: int) -> None:
    sent = Counter(task for (task,) in chosen(LocalOrShuffleGrouping(), context, [[]] * count))
    open_to_it = context.local_targets or context.targets
    shares = [sent[task] for task in open_to_it]
    assert sum(shares) == count
    assert max(shares) - min(shares) <= 1
