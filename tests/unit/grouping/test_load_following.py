"""Groupings that follow load: Storm's load-aware shuffle and JStorm's local-first (D6, D7, W17)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stormspark.grouping import (
    Grouping,
    GroupingContext,
    LoadAwareShuffleGrouping,
    LoadFollower,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    ShuffleGrouping,
)

HERE = Path(__file__).parent
TASKS = (4, 5, 6, 9)


def chooser(
    grouping: Grouping, local: tuple[int, ...] = (), targets: tuple[int, ...] = TASKS, **known: Any
) -> Any:
    return grouping.chooser(
        GroupingContext("lines", "default", ("line",), 2, targets, local, Random(1), **known)
    )


def turn(choose: Any, tuples: int = 1000) -> Counter[int]:
    return Counter(choose(("a",)) for _ in range(tuples))


def test_shares_change_with_the_loads_as_in_storm() -> None:
    """D6: the record was made by Storm's own class; `StormLoadAware.java` says how."""
    records = [json.loads(line) for line in (HERE / "storm_load_aware.jsonl").read_text().splitlines()]
    assert len(records) > 50
    sender: tuple[int, int] = (-1, -1)
    choose: Any = None
    for record in records:
        local, targets = record["local"], record["targets"]
        if (local, targets) != sender:
            sender = local, targets
            choose = chooser(LoadAwareShuffleGrouping(), tuple(range(local)), tuple(range(targets)))
        choose.refresh_load(dict(enumerate(record["loads"])))
        counts = turn(choose, sum(record["turn"]))
        # What rounding down leaves over, less than a slot a target, goes to chance.
        assert all(abs(counts[task] - storms) <= targets for task, storms in enumerate(record["turn"])), (
            record
        )
        assert {task for task, storms in enumerate(record["turn"]) if storms} == set(counts), record


def test_it_stays_local_until_the_local_tasks_are_full_and_comes_back_when_they_are_nearly_empty() -> None:
    """D6: above 0.8 all targets, below 0.2 the local ones again."""
    choose = chooser(LoadAwareShuffleGrouping(), local=(5, 9))
    used = []
    for load in (0.0, 0.8, 0.81, 0.5, 0.2, 0.19, 0.5):
        choose.refresh_load({5: load, 9: load})
        used.append(set(turn(choose)))
    near, everywhere = {5, 9}, set(TASKS)
    assert used == [near, near, everywhere, everywhere, everywhere, near, near]


def test_the_bounds_are_settings() -> None:
    """D6: topology.localityaware.higher.bound and .lower.bound."""
    choose = chooser(LoadAwareShuffleGrouping(), local=(5,), higher_bound=0.3, lower_bound=0.25)
    used = []
    for load in (0.31, 0.26, 0.24):
        choose.refresh_load({5: load})
        used.append(len(set(turn(choose))))
    assert used == [4, 4, 1]


def test_a_task_without_a_known_load_has_none() -> None:
    """A task whose load is unknown counts as idle, so it still gets tuples (D6)."""
    choose = chooser(LoadAwareShuffleGrouping())
    for _ in range(10):
        choose.refresh_load({4: 0.06})
    assert set(turn(choose)) == {5, 6, 9}


def test_a_task_that_lags_behind_loses_its_share_fast_and_regains_it_slowly() -> None:
    """D6: -10 and +1 of 100."""
    choose = chooser(LoadAwareShuffleGrouping(), targets=(1, 2))
    shares = []
    for load in [0.5] * 10 + [0.0] * 100:
        choose.refresh_load({1: load})
        shares.append(turn(choose)[1])
    assert shares[9] == 0
    assert shares[9:] == sorted(shares[9:])
    assert 80 < shares[19] < 100 and shares[-1] == 500


def test_while_nothing_changes_the_ring_goes_on_turning() -> None:
    """D6: so a calm topology is even over any number of refreshes."""
    choose = chooser(LoadAwareShuffleGrouping())
    counts = Counter()
    for _ in range(100):
        choose.refresh_load({})
        counts += turn(choose, 10)
    assert counts == dict.fromkeys(TASKS, 250)


def test_a_single_target_gets_all() -> None:
    """A single target gets all tuples, whatever its load (D6)."""
    choose = chooser(LoadAwareShuffleGrouping(), targets=(7,))
    choose.refresh_load({7: 1.0})
    assert turn(choose, 10) == {7: 10}


def test_local_or_shuffle_that_follows_load_never_leaves_the_worker() -> None:
    """D7: what Storm makes of it unless told otherwise."""
    grouping = LoadAwareShuffleGrouping(stay_local=True)
    assert grouping.candidates(TASKS, (5, 9)) == (5, 9)
    assert grouping.candidates(TASKS, ()) == TASKS
    choose = chooser(grouping, local=(5, 9))
    for _ in range(3):
        choose.refresh_load({5: 1.0, 9: 0.9})
    counts = turn(choose)
    assert set(counts) == {5, 9} and counts[5] < counts[9]
    assert set(turn(chooser(grouping))) == set(TASKS)


def test_local_first_deals_evenly_to_local_tasks_while_they_keep_up_else_to_all() -> None:
    """Local-first uses the local tasks while their mean load is below the bound, and otherwise all (D7)."""
    choose = chooser(LocalFirstGrouping(), local=(5, 9))
    assert turn(choose, 10) == {5: 5, 9: 5}
    choose.refresh_load({5: 1.0, 9: 0.6})
    assert turn(choose, 12) == dict.fromkeys(TASKS, 3)
    choose.refresh_load({5: 1.0, 9: 0.59})
    assert turn(choose, 10) == {5: 5, 9: 5}


def test_local_first_without_local_tasks_deals_to_all() -> None:
    """Without local tasks local-first spreads evenly over all (D7)."""
    choose = chooser(LocalFirstGrouping())
    choose.refresh_load(dict.fromkeys(TASKS, 1.0))
    assert turn(choose, 8) == dict.fromkeys(TASKS, 2)


@pytest.mark.parametrize("grouping", [LoadAwareShuffleGrouping(), LocalFirstGrouping()])
def test_any_task_may_get_a_tuple_so_the_edge_can_cross(grouping: Grouping) -> None:
    """Every task is a candidate of a grouping that follows loads (D6, D7)."""
    assert grouping.candidates(TASKS, (5, 9)) == TASKS


def test_the_plain_ones_do_not_ask_for_loads() -> None:
    """W17, D5: even, whatever lags behind."""
    for plain in (ShuffleGrouping(), LocalOrShuffleGrouping()):
        assert not plain.follows_load
        assert not isinstance(chooser(plain), LoadFollower)
    for follower in (LoadAwareShuffleGrouping(), LocalFirstGrouping()):
        assert follower.follows_load
        assert isinstance(chooser(follower), LoadFollower)
