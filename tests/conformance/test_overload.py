"""What does not fit into a bolt's queue, where spouts are not to be slowed down: the same on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import TopologyBuilder
from tests.conformance.components import Numbers, Record, recorded

Run = Callable[..., Any]

N = 2000


def overloaded(run: Run, strategy: dict[str, Any]) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(N, replays=0))
    builder.set_bolt("record", Record(), 2).shuffle_grouping("numbers")
    return run(builder.create_topology("overload"), {"stormspark.queue.high.mark.tuples": 10, **strategy})


def executed_once_and_in_order(done: Any) -> list[int]:
    """The numbers that were executed; per sender and receiver in the order of their emits."""
    record = done.statistics.components["record"]
    by_task = [[one.values[-1] for one in recorded(rows)] for rows in done.effects_by_task("record")]
    assert all(numbers == sorted(numbers) for numbers in by_task)
    numbers = [number for numbers in by_task for number in numbers]
    assert len(set(numbers)) == len(numbers) == record.executed == N - record.shed
    assert 0 < record.shed < N
    return numbers


@pytest.mark.slow
def test_what_does_not_fit_is_dropped(run: Run) -> None:
    """X51, F10, F14: by Heron's key; it is counted and reported, its tree ends, and memory is bounded by the mark."""
    done = overloaded(run, {"topology.droptuples.upon.backpressure": True})
    executed_once_and_in_order(done)
    assert done.acked("numbers") == dict.fromkeys(range(N), 1)
    spout, bolt = done.statistics.components["numbers"], done.statistics.components["record"]
    assert (spout.acked, spout.failed, spout.pending) == (N, 0, 0)
    assert "tuples were dropped" in bolt.last_error


def test_what_does_not_fit_fails(run: Run) -> None:
    """X51, W4, E22: each tree has one verdict; those that failed name the bolt, its mark and the setting."""
    done = overloaded(run, {"stormspark.backpressure.strategy": "fail"})
    numbers = executed_once_and_in_order(done)
    acked, failed = done.acked("numbers"), done.failed("numbers")
    assert acked + Counter(fail.message for fail in failed) == dict.fromkeys(range(N), 1)
    assert sorted(acked) == sorted(numbers)
    for fail in failed:
        assert (fail.outcome, fail.component) == ("FAILED", "record")
        assert "is full (10 tuples: stormspark.queue.high.mark.tuples)" in fail.reason
    spout = done.statistics.components["numbers"]
    assert spout.failed_by_bolt == spout.failed == done.statistics.components["record"].shed
