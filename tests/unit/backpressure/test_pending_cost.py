"""Which max spout pending would not be felt, from rounds under a smaller one."""

from __future__ import annotations

import pytest

from stormspark.backpressure import BoltLoad, LimitedSpout, PendingCost, SpoutLoad, TaskLoad

WORKERS = {1: 0, 2: 1, 3: 0, 4: 1}


def cost() -> PendingCost:
    return PendingCost({"words": LimitedSpout((3, 4), 200)}, WORKERS)


def a_round(emitted: int, *seconds: float) -> dict[int, TaskLoad]:
    """Each spout task emits so much, and the bolt's tasks work for so long."""
    loads: dict[int, TaskLoad] = {task: SpoutLoad(emitted, False, False, held=True) for task in (3, 4)}
    loads |= {task: BoltLoad(emitted, taken, 0, 0) for task, taken in enumerate(seconds, 1)}
    return loads


def test_it_is_the_throughput_of_the_busiest_worker_times_the_time_that_a_tree_is_open() -> None:
    one = cost()
    one.observe(a_round(200, 0.004, 0.001))
    assert (one.unfelt("words", 1.0), one.unfelt("words", 2.5)) == (50_000, 130_000), "two digits, rounded up"


def test_the_limit_in_force_does_not_matter() -> None:
    small, large = cost(), cost()
    small.observe(a_round(2, 0.00004, 0.00001))
    large.observe(a_round(20_000, 0.4, 0.1))
    assert small.unfelt("words", 1.0) == large.unfelt("words", 1.0) == 50_000


def test_bolts_that_get_slower_are_noticed_within_some_rounds() -> None:
    one = cost()
    for seconds in [0.004] * 100 + [0.4] * 20:
        one.observe(a_round(200, seconds, 0.0))
    unfelt = one.unfelt("words", 1.0)
    assert unfelt is not None and 500 <= unfelt <= 1000


@pytest.mark.parametrize("loads", [{}, a_round(0, 0.1), a_round(5)])
def test_nothing_is_known_without_tuples_or_without_work(loads: dict[int, TaskLoad]) -> None:
    one = cost()
    one.observe(loads)
    assert one.unfelt("words", 1.0) is None
    assert one.unfelt("other", 1.0) is None
