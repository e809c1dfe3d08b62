"""Async components, the same on every engine. Storm and Heron have none; Flink's async I/O has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import AsyncBolt, Fields, TopologyBuilder
from tests.conformance.async_components import Arrive, Ask, Pairs, Reported
from tests.conformance.components import Numbers, Record
from tests.conformance.state_components import Counts, Sequence

Run = Callable[..., Any]


def _chain(spout: Any, bolt: AsyncBolt, *, spouts: int = 1, tasks: int = 1, name: str = "async") -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout, spouts)
    builder.set_bolt("ask", bolt, tasks).shuffle_grouping("numbers")
    builder.set_bolt("record", Record(), 2).fields_grouping("ask", Fields("n"))
    return builder.create_topology(name)


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [False, True])
def test_calls_that_wait_run_side_by_side_and_every_tuple_has_one_verdict(run: Run, ordered: bool) -> None:
    """E5, E24, C5: a failed tuple fails alone; emits are anchored; the task's limit is kept."""
    bolt = Ask(fails=(7, 400), capacity=20, ordered=ordered)
    done = run(_chain(Numbers(600), bolt, spouts=2, tasks=2))
    assert {one.values[0] for one in done.recorded("record")} == set(range(600))
    assert done.acked("numbers") == Counter(range(600))
    assert sorted((one.message, one.component) for one in done.failed("numbers")) == [
        (7, "ask"),
        (400, "ask"),
    ]
    assert done.statistics.total("pending") == 0
    ends = done.effects("ask")
    assert len(ends) == 2  # one of each task
    for what, most, under_way in ends:
        assert what == "cleanup" and 10 < most <= 20 and under_way == 0


def test_ordered_results_leave_in_the_order_of_their_tuples(run: Run) -> None:
    """E31: whatever the calls take."""
    done = run(_chain(Numbers(300), Ask(ordered=True, capacity=50)))
    by_task: dict[int, list[int]] = {}
    for one in done.recorded("record"):
        by_task.setdefault(one.task, []).append(one.values[0])
    for numbers in by_task.values():
        assert numbers == sorted(numbers)
    assert sum(map(len, by_task.values())) == 300


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [False, True])
def test_a_call_that_takes_too_long_fails_its_tuple_alone(run: Run, ordered: bool) -> None:
    """E24, W4: and holds up nobody for longer than that."""
    done = run(_chain(Numbers(100), Ask(hangs=(3, 50), timeout_secs=0.5, ordered=ordered)))
    assert done.acked("numbers") == Counter(range(100))
    late = done.failed("numbers")
    # A machine that stands still for half a second makes other calls late too.
    assert {3, 50} <= {one.message for one in late} and len(late) < 50
    for one in late:
        assert (one.outcome, one.component) == ("FAILED", "ask")
        assert one.reason == "execute took longer than 0.5 s (timeout_secs)"


@pytest.mark.parametrize("end", ["raises", "exits"])
def test_an_exception_restarts_the_task_alone(run: Run, end: str) -> None:
    """W22: its tuple fails, and so do those of its other calls; nothing is lost."""
    endings: dict[str, Any] = {end: (5,)}
    done = run(_chain(Numbers(200, replays=9), Ask(**endings), tasks=2))
    assert {one.values[0] for one in done.recorded("record")} == set(range(200))
    assert done.acked("numbers") == Counter(range(200))
    assert done.statistics.components["ask"].restarts == 1
    reasons = {one.message: one.reason for one in done.failed("numbers")}
    expected = "KeyError: 5" if end == "raises" else "RuntimeError: execute raised SystemExit: 5"
    assert all(reason.endswith(expected) for reason in reasons.values())
    assert "restarted" not in reasons[5]


def test_a_reported_failure_is_an_error_that_restarts_nothing(run: Run) -> None:
    """C5."""
    done = run(_chain(Numbers(20), Reported(fails=(3,))))
    ask = done.statistics.components["ask"]
    assert (ask.errors, ask.restarts, ask.failed) == (1, 0, 1)
    assert done.acked("numbers") == Counter(range(20))


@pytest.mark.slow
def test_an_async_spout_waits_hears_and_replays(run: Run) -> None:
    """B3, B6, E11: what fails is emitted again; acks come while it waits."""
    done = run(_chain(Arrive(300), Ask(fails=(10, 20)), spouts=2))
    assert {one.values[0] for one in done.recorded("record")} == set(range(300))
    assert done.acked("numbers") == Counter(range(300))
    assert sorted(one.message for one in done.failed("numbers")) == [10, 20]
    assert done.effects("numbers").count(["close"]) == 2


def test_an_async_spout_that_raises_begins_anew(run: Run) -> None:
    """W22, B10."""
    done = run(_chain(Arrive(100, raises=(30, 31)), Ask()))
    assert {one.values[0] for one in done.recorded("record")} >= set(range(32, 100))
    assert done.statistics.components["numbers"].restarts == 2


def test_a_group_is_one_message(run: Run) -> None:
    """X68."""
    done = run(_chain(Pairs(50), Ask()))
    assert Counter(one.values[0] for one in done.recorded("record")) == Counter(dict.fromkeys(range(50), 2))
    assert done.acked("numbers") == Counter(range(50))


@pytest.mark.slow
def test_exactly_once_waits_for_calls_under_way(run: Run) -> None:
    """C44, G6: a batch ends when all of its calls have ended; a failure takes it back."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Sequence(200), 2)
    builder.set_bolt("ask", Ask(fails=(7,), raises=(90,)), 2).shuffle_grouping("numbers")
    builder.set_bolt("count", Counts(), 2).fields_grouping("ask", Fields("n"))
    done = run(builder.create_topology("async-once"), {"stormspark.exactly.once": True})
    pairs = [pair for what, *pair in done.effects("count") if what == "state"]
    assert dict(pairs) == dict.fromkeys(range(200), 1)
