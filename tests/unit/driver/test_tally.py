"""Reports are totals of a process; the sum is right whatever dies, and however often a report comes."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from types import SimpleNamespace
from typing import Any

from stormspark.driver.tally import Tally
from stormspark.metrics import TaskCounters
from stormspark.worker.step import ErrorReport, WorkerReport

PLAN: Any = SimpleNamespace(
    topology="t",
    components={"s": SimpleNamespace(kind="spout", tasks=(1, 2), calls_at_once=0)},
    tasks={1: SimpleNamespace(component="s"), 2: SimpleNamespace(component="s")},
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
