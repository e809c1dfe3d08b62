"""Windowed bolts: the same on every engine. Exact times are those of the local engine's simulated clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stormspark import Count, Duration, Fields, Topology, TopologyBuilder, WindowedBolt
from stormspark.local import LocalCluster
from tests.conformance.components import EFFECTS, read_effects
from tests.conformance.window_components import Best, FailSums, Late, Stages, Sum, Window, windows_in

Run = Callable[..., Any]


def topology(spout: Stages, bolt: WindowedBolt, *failing: int) -> Topology:
    """Numbers -> windows -> who fails some of their sums."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("windows", bolt).shuffle_grouping("numbers")
    builder.set_bolt("sums", FailSums(*failing), 2).shuffle_grouping("windows")
    return builder.create_topology("windows")


def windows(done: Any) -> list[Window]:
    return windows_in(done.effects("windows"))


def items(done: Any) -> list[list[int]]:
    """The items of each window, in order."""
    return [window.items for window in windows(done)]


def verdicts(done: Any, spout: str = "numbers") -> Counter[tuple[Any, ...]]:
    return Counter((what, message) for what, message, *_ in done.effects(spout))


def test_tumbling_counts(run: Run) -> None:
    """C23, C27, C34: every tuple in one window, acked when the next one is full."""
    done = run(topology(Stages(range(20), untracked=range(5)), Sum().with_tumbling_window(Count(5))))
    assert items(done) == [*([*range(n, n + 5)] for n in range(0, 20, 5)), [0, 1, 2, 3, 4]]
    assert verdicts(done) == Counter(("ack", n) for n in range(20))
    assert done.statistics.components["windows"].acked == 20


def test_sliding_counts(run: Run) -> None:
    """C23, C24, C28: what is new and what has expired since the last window."""
    done = run(topology(Stages(range(8), untracked=[100] * 4), Sum().with_window(Count(4), slide=Count(2))))
    assert items(done)[:4] == [[0, 1], [0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7]]
    assert [window.new for window in windows(done)][:4] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [window.expired for window in windows(done)][:4] == [[], [], [0, 1], [2, 3]]
    assert {window.start for window in windows(done)} == {None}
    assert verdicts(done) == Counter(("ack", n) for n in range(8))


def test_windows_are_per_task(run: Run) -> None:
    """C34: a fields grouping deals keys out to tasks, whose windows have the keys mixed."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Stages(range(40), untracked=[1000] * 4))
    bolt = builder.set_bolt("windows", Sum().with_tumbling_window(Count(4)), 2)
    bolt.fields_grouping("numbers", Fields("n")).all_grouping("numbers", "untracked")
    done = run(builder.create_topology("per task"))
    by_task = [
        [n for window in windows_in(effects) for n in window.items if n < 1000]
        for effects in done.effects_by_task("windows")
    ]
    assert len(by_task) == 2 and all(by_task)
    assert sorted(by_task[0] + by_task[1]) == list(range(40))
    assert all(of_task == sorted(of_task) for of_task in by_task)
    assert verdicts(done) == Counter(("ack", n) for n in range(40))


@pytest.mark.slow
@pytest.mark.parametrize(
    "length", [Duration(150), timedelta(milliseconds=150)], ids=["Duration", "timedelta"]
)
def test_tumbling_durations_lose_nothing_and_repeat_nothing(run: Run, length: Any) -> None:
    """C23, C28, C29, W14: whatever the rhythm of the batches; the last ones are acked by a window that is not executed."""
    done = run(topology(Stages(range(500)), Sum().with_tumbling_window(length)))
    fired = windows(done)
    assert [n for window in fired for n in window.items] == list(range(500))
    assert all(window.items == window.new for window in fired)
    assert all(window.start == window.end - 150 for window in fired)
    assert all(one.end < other.end for one, other in pairwise(fired))
    assert verdicts(done) == Counter(("ack", n) for n in range(500))


def test_event_time_with_lag_and_late_tuples(run: Run) -> None:
    """C30, C31, C32, A22: out of order up to the lag; what comes after the watermark goes to the late stream, and is acked."""
    # 31 is the watermark after the first stage: 3, 5, 7 leave with the window that ends at 30.
    spout = Stages([7, 3, 18, 5, 26, 36], [30, 31, 40, 29], wait_for=(3, 5, 7), untracked=[10_000, 10_031])
    bolt = Sum().with_window(Duration(20), Duration(10)).with_timestamp_field("n").with_lag(Duration(5))
    bolt.with_late_tuple_stream("late").with_watermark_interval(timedelta(milliseconds=50))
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("windows", bolt).shuffle_grouping("numbers")
    builder.set_bolt("late", Late()).shuffle_grouping("windows", "late")
    done = run(builder.create_topology("event time"))
    assert done.effects("late") == [
        [30, "numbers", "default", ["late_tuple"]],
        [29, "numbers", "default", ["late_tuple"]],
    ]
    fired = windows(done)
    assert {window.end: window.items for window in fired if window.end < 9_000} == {
        10: [3, 5, 7],
        20: [3, 5, 7, 18],
        30: [18, 26],
        40: [26, 31, 36, 40],
        50: [31, 36, 40],
    }
    assert all(window.start == window.end - 20 for window in fired)
    assert verdicts(done) == Counter(("ack", n) for n in (3, 5, 7, 18, 26, 29, 30, 31, 36, 40))


def test_event_time_over_two_streams_does_not_depend_on_which_is_ahead(run: Run) -> None:
    """C30, C33, W14: the watermark is the slower one's; the order in a window is that of the timestamps."""
    builder = TopologyBuilder()
    builder.set_spout("even", Stages(range(0, 400, 2), untracked=range(1000, 1010)))
    builder.set_spout("odd", Stages(range(1, 400, 2), untracked=range(1000, 1010)))
    bolt = Sum().with_tumbling_window(Count(10)).with_timestamp_field("n")
    bolt.with_watermark_interval(Duration(50))
    builder.set_bolt("windows", bolt).shuffle_grouping("even").shuffle_grouping("odd")
    done = run(builder.create_topology("two streams"))
    assert items(done)[:40] == [[*range(n, n + 10)] for n in range(0, 400, 10)]
    assert verdicts(done, "even") + verdicts(done, "odd") == Counter(("ack", n) for n in range(400))


def test_a_result_that_fails_fails_its_whole_window_once(run: Run) -> None:
    """C27, E17, E25, W14: each input gets exactly one verdict."""
    spout = Stages(range(20), untracked=[1000] * 5)
    done = run(topology(spout, Sum().with_tumbling_window(Count(5)), sum(range(5, 10)), sum(range(10, 15))))
    assert verdicts(done) == Counter(
        [*(("fail", n) for n in range(5, 15)), *(("ack", n) for n in (*range(5), *range(15, 20)))]
    )
    first = [fail for fail in done.failed("numbers") if fail.message < 10]
    assert {fail.outcome for fail in first} == {"FAILED"} and {fail.component for fail in first} == {"sums"}
    assert {fail.reason for fail in first} == {"FailedException: not 35"}


def test_sliding_windows_fail_what_any_of_them_has(run: Run) -> None:
    """A tuple fails when any of the sliding windows that contain it fails (C27, E25, W14)."""
    spout = Stages(range(8), untracked=[1000] * 4)
    done = run(topology(spout, Sum().with_window(Count(4), Count(2)), 2 + 3 + 4 + 5))
    assert verdicts(done) == Counter(
        [*(("fail", n) for n in (2, 3, 4, 5)), *(("ack", n) for n in (0, 1, 6, 7))]
    )


@pytest.mark.slow
def test_a_failed_exception_fails_the_window_and_restarts_nothing(run: Run) -> None:
    """C27, W14: in Storm it kills the worker. What is replayed comes into later windows."""
    spout = Stages(range(100), replays=1)
    done = run(topology(spout, Sum(fail=[7]).with_tumbling_window(Duration(200))))
    failed = next(window.items for window in windows(done) if 7 in window.items)
    assert verdicts(done) == Counter([*(("fail", n) for n in failed), *(("ack", n) for n in range(100))])
    assert {fail.reason for fail in done.failed("numbers")} == {"FailedException: this window fails"}
    statistics = done.statistics.components["windows"]
    assert (statistics.restarts, statistics.failed, statistics.acked) == (0, len(failed), 100)


@pytest.mark.slow
def test_another_error_restarts_the_task_and_fails_all_that_it_held(run: Run) -> None:
    """W14, W22: nothing is lost, and nothing gets two verdicts."""
    spout = Stages(range(5), range(5, 20), wait_for=range(5), replays=1)
    done = run(topology(spout, Sum(error=[3]).with_tumbling_window(Duration(300))))
    heard = verdicts(done)
    failed = [n for what, n in heard if what == "fail"]
    assert 3 in failed
    assert all("KeyError" in fail.reason for fail in done.failed("numbers"))
    assert heard == Counter([*(("fail", n) for n in failed), *(("ack", n) for n in range(20))])
    assert done.statistics.components["windows"].restarts == 1
    assert done.effects("windows").count(["prepared"]) == 2


@pytest.mark.slow
def test_tuples_of_a_window_that_never_fills_time_out_once(run: Run) -> None:
    """C26, C27, E10: a count window can't know."""
    done = run(
        topology(Stages(range(7)), Sum().with_tumbling_window(Count(5))), {"topology.message.timeout.secs": 1}
    )
    assert items(done) == [[0, 1, 2, 3, 4]]
    assert verdicts(done) == Counter(("fail", n) for n in range(7))
    assert {fail.outcome for fail in done.failed("numbers")} == {"TIMED_OUT"}


# -- to the millisecond, in simulated time ---------------------------------------------------------------------


def simulated(topology: Topology, folder: Path, *seconds: float, **conf: Any) -> list[Any]:
    """(items, start, end) of the windows after so much time."""
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("simulated", {EFFECTS: str(folder), **conf}, topology)
        running.run_until_idle() if not seconds else None
        for step in seconds:
            cluster.advance_time(step)
    return [
        (window.items, window.start, window.end) for window in windows_in(read_effects(folder, "windows"))
    ]


def test_a_window_of_ten_seconds_every_five(tmp_path: Path) -> None:
    """C23, C29: Storm's example; the first window is after five seconds, and has what came until then."""
    spout = Stages([1, 2], untracked=[])
    bolt = Sum().with_window(Duration.seconds(10), Duration.seconds(5))
    fired = simulated(topology(spout, bolt), tmp_path, 4.75, 0.25, 5, 5, 5)
    assert fired == [([1, 2], -5001, 4999), ([1, 2], -1, 9999)]
    assert verdicts_of(tmp_path) == [["ack", 1], ["ack", 2]]


def verdicts_of(folder: Path) -> list[list[Any]]:
    return [[what, message] for what, message, *_ in read_effects(folder, "numbers")]


def test_the_last_tuples_of_a_count_that_slides_by_time_are_seen_again_and_again(tmp_path: Path) -> None:
    """C23, C29: the last two, every second, and never acked by it."""
    bolt = Sum().with_window(Count(2), timedelta(seconds=1))
    fired = simulated(topology(Stages([1, 2, 3]), bolt), tmp_path, 3)
    assert fired == [([2, 3], None, 999), ([2, 3], None, 1999), ([2, 3], None, 2999)]
    assert verdicts_of(tmp_path) == [["ack", 1]]


def test_a_tuple_that_times_out_in_its_window_has_its_verdict(tmp_path: Path) -> None:
    """C27, E10, W14: it stays in its windows, and its ack means nothing any more."""
    bolt = Sum().with_window(Count(2), Duration.seconds(5))
    fired = simulated(topology(Stages([1, 2]), bolt), tmp_path, 20, **{"topology.message.timeout.secs": 6})
    assert [items for items, *_ in fired] == [[1, 2]] * 4
    assert verdicts_of(tmp_path) == [["fail", 1], ["fail", 2]]


# -- where batches are transactions ----------------------------------------------------------------------------

ONCE = {"stormspark.exactly.once": True}


def test_exactly_once_counts_are_acked_with_their_batch(run: Run) -> None:
    """C27, C41: also those whose window never fills, and a timeout is no matter."""
    bolt = Sum().with_tumbling_window(Count(5))
    # Without the gap a superstep counts at most an eighth of the timeout: a busy machine fails no tuple that is on its way.
    short = {"topology.message.timeout.secs": 1, "stormspark.clock.gap.ms": 0}
    done = run(topology(Stages(range(22)), bolt), ONCE | short)
    assert items(done) == [[*range(n, n + 5)] for n in range(0, 20, 5)]
    assert verdicts(done) == Counter(("ack", n) for n in range(22))


def test_exactly_once_event_time_with_lag_and_late_tuples(run: Run) -> None:
    """C30-C32, C41: as above; the second stage comes when the first one's batch is committed and its windows have fired."""
    first = (7, 3, 5, 18, 26, 36)  # none is late, however often the watermark is computed in between
    spout = Stages(first, [40, 2, 29, 10_000], wait_for=first, wait_for_window=30)
    bolt = Sum().with_window(Duration(20), Duration(10)).with_timestamp_field("n").with_lag(Duration(5))
    bolt.with_late_tuple_stream("late").with_watermark_interval(timedelta(milliseconds=1))
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("windows", bolt).shuffle_grouping("numbers")
    builder.set_bolt("late", Late()).shuffle_grouping("windows", "late")
    done = run(builder.create_topology("event time"), ONCE)
    assert [number for number, *_ in done.effects("late")] == [2, 29]  # 31 is the watermark
    fired = {window.end: window.items for window in windows(done)}
    assert fired[10] == [3, 5, 7] and fired[20] == [3, 5, 7, 18] and fired[50] == [36, 40]
    assert verdicts(done) == Counter(("ack", n) for n in (2, 3, 5, 7, 18, 26, 29, 36, 40, 10_000))


def test_a_stateful_windowed_bolt_with_persistence(run: Run) -> None:
    """C41: its state and its windows, which are read page by page."""
    done = run(topology(Stages(range(1000)), Best().with_window(Count(600), Count(300)).with_persistence()))
    assert done.effects("windows") == [["window", 300, 0, 1], ["window", 600, 0, 2], ["window", 600, 300, 3]]
    assert verdicts(done) == Counter(("ack", n) for n in range(1000))
