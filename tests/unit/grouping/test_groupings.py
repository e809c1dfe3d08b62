"""What every grouping promises: its choice, candidates and Spark side, and that it is a value (D5-D13)."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from random import Random
from typing import Any

import pytest

from stormspark.errors import EmitError
from stormspark.grouping import (
    AllGrouping,
    ByChooser,
    ById,
    ByTask,
    CopyToEach,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    GroupingContext,
    LoadAwareShuffleGrouping,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    Repartitioning,
    RoundRobin,
    ShuffleGrouping,
    SinglePartition,
    Stay,
)

TASKS = (4, 5, 6, 9)


def context(
    *, targets: tuple[int, ...] = TASKS, local: tuple[int, ...] = (), seed: int = 1, ints: str = "long"
) -> GroupingContext:
    return GroupingContext("split", "default", ("word", "n"), 2, targets, local, Random(seed), ints)


def choices(grouping: Grouping, count: int, **known: Any) -> list[Any]:
    choose = grouping.chooser(context(**known))
    return [choose(["word", n]) for n in range(count)]


@pytest.mark.parametrize(
    ("grouping", "kind", "single", "text", "repartitioning"),
    [
        (ShuffleGrouping(), "shuffle", True, "shuffle", RoundRobin(4)),
        (FieldsGrouping("word"), "fields", True, "fields(word)", ById(("word",), 4, "json")),
        (FieldsGrouping(["n", "word"]), "fields", True, "fields(n, word)", ById(("n", "word"), 4, "json")),
        (FieldsGrouping(()), "fields", True, "global", SinglePartition()),
        (GlobalGrouping(), "global", True, "global", SinglePartition()),
        (AllGrouping(), "all", False, "all", CopyToEach(4)),
        (DirectGrouping(), "direct", True, "direct", ByTask("task", TASKS)),
        (LocalOrShuffleGrouping(), "local_or_shuffle", True, "local_or_shuffle", Stay()),
        *(
            (grouping, kind, True, text, ByChooser(grouping, TASKS, "json"))
            for grouping, kind, text in [
                (PartialKeyGrouping(["n", "word"]), "partial_key", "partial_key(n, word)"),
                (PartialKeyGrouping(), "partial_key", "partial_key(first value)"),
                (NoneGrouping(), "none", "none"),
                (LoadAwareShuffleGrouping(), "load_aware_shuffle", "load_aware_shuffle"),
                (
                    LoadAwareShuffleGrouping(stay_local=True),
                    "load_aware_shuffle",
                    "local_or_load_aware_shuffle",
                ),
                (LocalFirstGrouping(), "local_first", "local_first"),
            ]
        ),
    ],
    ids=str,
)
def test_a_grouping_says_what_it_is(
    grouping: Grouping, kind: str, single: bool, text: str, repartitioning: Repartitioning
) -> None:
    """D1, D5-D13: its name, its text in a plan, and how a DataFrame is laid out for it."""
    assert (grouping.kind, grouping.single, grouping.describe()) == (kind, single, text)
    assert grouping.repartitioning(TASKS, "json") == repartitioning


@pytest.mark.parametrize(
    "grouping",
    [
        ShuffleGrouping(),
        FieldsGrouping(["word", "n"]),
        GlobalGrouping(),
        AllGrouping(),
        LocalOrShuffleGrouping(),
        PartialKeyGrouping(["word", "n"]),
        NoneGrouping(),
        LoadAwareShuffleGrouping(stay_local=True),
        LocalFirstGrouping(),
        ByChooser(NoneGrouping(), TASKS),
    ],
)
def test_a_grouping_is_a_value(grouping: Any) -> None:
    """Each grouping survives pickling, with the same equality, hash and repr (D1, D5-D13)."""
    copy = pickle.loads(pickle.dumps(grouping))
    assert copy == grouping
    assert hash(copy) == hash(grouping)
    assert repr(copy) == repr(grouping)


def test_shuffle_begins_at_position_1_of_its_shuffled_list_and_comes_to_position_0_last() -> None:
    """Shuffle walks its shuffled list from position 1 and reaches position 0 last, as Storm's does (D5)."""
    order = list(TASKS)
    Random(7).shuffle(order)
    assert choices(ShuffleGrouping(), 5, seed=7) == [*order[1:], order[0], order[1]]


def test_senders_shuffle_in_orders_of_their_own() -> None:
    """D5: unlike Heron, which begins anywhere in one order (D14)."""
    firsts = Counter(choices(ShuffleGrouping(), 1, seed=seed)[0] for seed in range(400))
    assert all(60 < firsts[task] < 140 for task in TASKS)


def test_global_takes_the_lowest_task() -> None:
    """The global grouping chooses the task with the lowest id, also when others are local (D10)."""
    assert choices(GlobalGrouping(), 3) == [4, 4, 4]
    assert GlobalGrouping().candidates(TASKS, (6, 9)) == (4,)


def test_all_takes_every_task() -> None:
    """The all grouping chooses every task (D9)."""
    assert choices(AllGrouping(), 2) == [TASKS, TASKS]
    assert AllGrouping().candidates(TASKS, (6, 9)) == TASKS


def test_direct_leaves_the_choice_to_the_producer() -> None:
    """A direct grouping allows every task, and rejects a plain emit (D11, B9)."""
    assert DirectGrouping().candidates(TASKS, (6, 9)) == TASKS
    with pytest.raises(EmitError, match="regular emit to direct stream 'default' of 'split'"):
        choices(DirectGrouping(), 1)


def test_local_or_shuffle_deals_to_local_tasks_where_there_are_any() -> None:
    """Local-or-shuffle spreads over the local tasks, or over all when none is local (D7)."""
    assert Counter(choices(LocalOrShuffleGrouping(), 10, local=(5, 9))) == {5: 5, 9: 5}
    assert Counter(choices(LocalOrShuffleGrouping(), 8)) == dict.fromkeys(TASKS, 2)


@pytest.mark.parametrize("known", [{"targets": ()}, {"targets": (5, 4)}, {"targets": (4, 4)}])
def test_a_context_needs_targets_in_order(known: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="targets must be at least one task id, ascending"):
        context(**known)


@pytest.mark.parametrize("local", [(7,), (6, 5), (5, 5)])
def test_local_targets_are_some_of_the_targets(local: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="local_targets must be some of"):
        context(local=local)


def test_none_draws_each_target_as_often_as_any_other_and_in_no_order() -> None:
    """D8: uniformly at random, so not even as a shuffle is."""
    drawn = choices(NoneGrouping(), 4000)
    counts = Counter(drawn)
    assert set(counts) == set(TASKS) and all(900 < count < 1100 for count in counts.values())
    repeats = sum(one == other for one, other in itertools.pairwise(drawn))
    assert 900 < repeats < 1100
    assert choices(NoneGrouping(), 50, seed=3) == choices(NoneGrouping(), 50, seed=3)
    assert NoneGrouping().candidates(TASKS, (6, 9)) == TASKS


@pytest.mark.parametrize(
    "make",
    [RoundRobin, CopyToEach, lambda n: ById(("word",), n), lambda n: ByChooser(NoneGrouping(), TASKS[:n])],
)
def test_there_is_no_layout_without_partitions(make: Any) -> None:
    with pytest.raises(ValueError, match="partitions must be at least 1, got 0"):
        make(0)
