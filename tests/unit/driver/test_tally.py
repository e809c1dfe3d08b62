"""Reports are totals of a process; the sum is right whatever dies, and however often a report comes."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from stormspark.backpressure import Pressure, SpoutPressure
from stormspark.driver.tally import Tally
from stormspark.metrics import TaskCounters
from stormspark.user_line import CodePlace
from stormspark.worker.busy import Busy
from stormspark.worker.step import ErrorReport, WorkerReport

PLAN: Any = SimpleNamespace(
    topology="t",
    components={"s": SimpleNamespace(kind="spout", tasks=(1, 2), calls_at_once=0)},
    tasks={1: SimpleNamespace(component="s"), 2: SimpleNamespace(component="s")},
)

PLAN_OF_BOLT: Any = SimpleNamespace(
    topology="t",
    components={"b": SimpleNamespace(kind="bolt", tasks=(1,), calls_at_once=0)},
    tasks={1: SimpleNamespace(component="b")},
)


def report(worker, incarnation, batch, errors=(), **counts):
    counters = {worker + 1: TaskCounters(**counts)}
    return WorkerReport(worker, incarnation, batch, counters, errors, None, 0)


def test_the_latest_totals_of_each_life_are_added_up():
    tally = Tally(PLAN, "spark")
    tally.add_batch([report(0, 0, 0, emitted=10, pending=4), report(1, 0, 0, emitted=5, pending=1)], 0.1)
    again = [report(0, 0, 1, emitted=30, pending=7, calls_under_way=1.5), report(1, 0, 1, emitted=6)]
    tally.add_batch(again, 0.3)
    tally.add_batch([report(0, 1, 2, emitted=2, pending=2), report(1, 0, 2, emitted=9)], 0.2)
    now = tally.statistics()
    assert now.components["s"].emitted == 30 + 2 + 9, "a dead incarnation's last totals are kept"
    assert now.components["s"].pending == 2, "its gauges are not"
    assert now.components["s"].calls_under_way == 0
    assert (now.batches, now.batch_ms.mean) == (3, 200.0)


def test_reports_of_the_last_commit_are_no_batch():
    """J15."""
    tally = Tally(PLAN, "spark")
    tally.add_batch([report(0, 0, 0, emitted=10, pending=10), report(1, 0, 0, emitted=5, pending=5)], 0.1)
    tally.add_last_reports([report(0, 0, 0, emitted=10, acked=10)])
    now = tally.statistics()
    assert (now.batches, now.batch_ms.mean) == (1, 100.0)
    assert (now.components["s"].acked, now.components["s"].pending) == (10, 5)


def test_the_numbers_of_batches_add_up_to_the_totals_over_all_lives():
    """Whatever the number of their rounds, and where a worker was lost within a batch."""
    tally = Tally(PLAN, "spark")
    tally.add_batch([report(0, 0, 0, emitted=10, acked=3)], 0.1)
    tally.add_batch([report(0, 0, 0, emitted=11, acked=5, failed=1), report(1, 0, 0, emitted=1)], 0.1)
    first = tally.take_batch()
    assert (first.emitted, first.acked, first.failed, first.executed) == (12, 5, 1, 0)
    assert first.complete_latency_ms is None, "nothing was measured"
    tally.add_batch([report(0, 1, 1, emitted=2, acked=1), report(1, 0, 1, emitted=4)], 0.1)
    second, nothing = tally.take_batch(), tally.take_batch()
    assert (second.emitted, second.acked, nothing.emitted) == (5, 1, 0)
    total = tally.statistics().components["s"]
    assert (first.emitted + second.emitted, first.acked + second.acked) == (total.emitted, total.acked)


def test_the_tuples_of_bolts_are_no_trees():
    tally = Tally(PLAN_OF_BOLT, "spark")
    tally.add_batch([report(0, 0, 0, executed=7, acked=6, failed=1)], 0.1)
    counts = tally.take_batch()
    assert (counts.executed, counts.acked, counts.failed) == (7, 0, 0)


def test_a_repeated_report_changes_nothing():
    tally = Tally(PLAN, "spark")
    for _ in range(3):
        tally.add_batch([report(0, 0, 0, emitted=10)], 0.1)
    assert tally.statistics().components["s"].emitted == 10


def test_the_last_error_of_a_component_is_kept():
    tally = Tally(PLAN, "spark")
    tally.add_batch([report(0, 0, 0, errors=(ErrorReport("s", 1, "one"), ErrorReport("s", 1, "two")))], 0.1)
    tally.add_batch([report(0, 0, 1)], 0.1)
    assert tally.statistics().components["s"].last_error == "two"


def test_phases_of_batches_are_summed_up():
    tally = Tally(PLAN, "spark")
    tally.add_phases({"workers": 0.1, "between": 0.2})
    tally.add_phases({"workers": 0.3})
    phases = tally.statistics().phases
    assert {name: phase.mean for name, phase in phases.items()} == pytest.approx(
        {"workers": 200, "between": 200}
    )
    assert tally.statistics().as_json()["phases_ms"]["workers"]["mean"] == pytest.approx(200)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_calls_under_way_are_averaged_over_the_time_before_the_stop():
    """J16: neither the start nor the ten seconds of a stop pull the average down, and calls that never end count."""
    clock = Clock()
    tally = Tally(PLAN, "local", clock=clock)
    for at, calls in (20.0, 0.0), (24.0, 100.0), (32.0, 70.0):
        clock.now = at
        tally.add_batch([report(0, 0, at, calls_under_way=calls), report(1, 0, at, calls_under_way=10.0)], 1)
    assert tally.statistics().components["s"].mean_calls_under_way == pytest.approx(90)
    tally.begin_to_stop()
    clock.now = 42.0
    tally.add_batch([report(0, 0, 42), report(1, 0, 42)], 1)
    tally.stop()
    assert tally.statistics().components["s"].mean_calls_under_way == pytest.approx(90)


def test_the_seconds_in_which_a_stop_waits_do_not_count_in_the_rate():
    """J15: what the batch under way does still counts, with its time."""
    clock = Clock()
    tally = Tally(PLAN_OF_BOLT, "local", clock=clock)
    for at, executed, stops in (2.0, 100, False), (4.0, 200, True), (6.0, 300, False), (16.0, 301, False):
        clock.now = at
        tally.add_batch([report(0, 0, at, executed=executed)], 1)
        if stops:
            assert tally.statistics().tuples_per_s == 50
            clock.now = 5.0
            tally.begin_to_stop()
            assert tally.statistics().tuples_per_s == 50
    tally.begin_to_stop()
    tally.stop()
    now = tally.statistics()
    assert (now.seconds, now.before_stop, now.tuples_per_s) == (16.0, (300, 6.0), 50)


def test_a_topology_that_stops_before_its_first_report_has_the_rate_of_its_whole_time():
    clock = Clock()
    tally = Tally(PLAN_OF_BOLT, "local", clock=clock)
    tally.begin_to_stop()
    assert tally.statistics().before_stop is None
    clock.now = 4.0
    tally.stop()
    assert tally.statistics().tuples_per_s == 0


def test_calls_that_had_not_returned_at_the_end_are_kept():
    """B1, C1: a task that got no cleanup must not be known from the log alone."""
    tally, place = Tally(PLAN, "spark"), CodePlace("execute", "ask.py:5")
    tally.add_batch([report(0, 0, 0)], 1)
    of_loop = Busy("s[1]", 12.0, on_loop=True, place=place)
    tally.add_not_returned([Busy("s[0]", 35.04, place=place), of_loop, Busy("a worker hook", 20.0)])
    found = tally.statistics().components["s"].as_json()
    assert found["not_returned"] == [
        {"task": "s[0]", "code": "execute of s[0] (ask.py:5)", "seconds": 35.0, "others": 0, "tuples": 0}
    ]
    assert found["blocked_loop"]["seconds"] == 12.0


def test_the_longest_block_of_an_event_loop_is_kept():
    """B1: a warning in the log is easily overlooked."""
    tally, place = Tally(PLAN, "spark"), CodePlace("execute", "ask.py:5")
    for seconds in 2.0, 20.04, 3.0:
        blocks = Busy("s[1]", seconds, on_loop=True, place=place), Busy("a coroutine", 60.0, on_loop=True)
        tally.add_batch([replace(report(0, 0, 0), blocked_loop=blocks), report(1, 0, 0)], 1)
    assert tally.statistics().components["s"].as_json()["blocked_loop"] == {
        "task": "s[1]",
        "code": "execute of s[1] (ask.py:5)",
        "seconds": 20.0,
        "others": 0,
        "tuples": 0,
    }


def test_rounds_are_no_batches():
    tally = Tally(PLAN, "spark")
    seen = []
    for is_end in (False, False, True):
        tally.add_batch([report(0, 0, 0)], 0.1)
        if is_end:
            tally.end_batch(flushes=True)
        now = tally.statistics()
        seen.append((now.batches, now.batches_ended, now.flushes))
    assert seen == [(1, 0, 0), (2, 0, 0), (3, 1, 1)]


def test_what_slowed_spouts_down_is_counted_over_all_layouts():
    """J3: the counter of Prometheus does not go back."""

    def pressure(ms: float) -> Pressure:
        return Pressure({"s": SpoutPressure(None, None, {"b": ms})}, {}, 1, ())

    plan: Any = SimpleNamespace(topology="t", components={}, tasks={})
    tally = Tally(plan, "spark")
    assert tally.pressure() is None
    for ms in (10.0, 5.0, 1.0):
        tally.lay_out(plan, lambda ms=ms: pressure(ms))  # type: ignore[misc]
    found = tally.statistics().pressure
    assert found is not None and found == tally.pressure()
    assert (found.spouts["s"].throttled_ms, found.limit_changes) == ({"b": 16.0}, 3)


def test_totals_stay_when_a_topology_is_laid_out_anew():
    """J3. Task 2 was the second one of the spout, and has the id 5 now. Incarnations are counted from 0 again."""

    def plan(*tasks: int) -> Any:
        return SimpleNamespace(
            topology="t",
            components={"s": SimpleNamespace(kind="spout", tasks=tasks, calls_at_once=0)},
            tasks={id: SimpleNamespace(id=id, component="s", index=index) for index, id in enumerate(tasks)},
        )

    tally = Tally(plan(1, 2), "spark")
    tally.add_batch([report(0, 0, 0, emitted=10, pending=4), report(1, 0, 0, emitted=5, pending=1)], 0.1)
    failed = WorkerReport(1, 0, 1, {2: TaskCounters(emitted=5)}, (ErrorReport("s", 2, "no"),), None, 0)
    tally.add_batch([failed], 0.1)
    tally.take_batch()
    tally.lay_out(plan(4, 5, 6))
    assert [error.task for error in tally.errors()["s"]] == [5]
    assert not tally.has_reports
    assert {task: one.emitted for task, one in tally.by_task().items()} == {4: 10, 5: 5}
    assert tally.statistics().components["s"].pending == 0, "its workers have ended"
    again = WorkerReport(0, 0, 1, {4: TaskCounters(emitted=2), 6: TaskCounters(emitted=1)}, (), None, 0)
    tally.add_batch([again], 0.1)
    assert {task: one.emitted for task, one in tally.by_task().items()} == {4: 12, 5: 5, 6: 1}
    assert tally.take_batch().emitted == 3
    assert tally.statistics().batches == 3
    tally.lay_out(plan(4, 5))
    assert {task: one.emitted for task, one in tally.by_task().items()} == {4: 12, 5: 6}, "it was taken back"
