import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.metrics import LatencySummary, TaskCounters, TopologyStatistics, summarise

COUNTS = [field.name for field in fields(TaskCounters) if field.name != "latency"]

counters = st.builds(TaskCounters, **{name: st.integers(min_value=0, max_value=10**12) for name in COUNTS})


@given(tasks=st.lists(counters, max_size=5))
def test_a_component_is_the_sum_of_its_tasks(tasks):
    component = summarise("bolt", len(tasks), tasks, None)
    for name in COUNTS:
        assert getattr(component, name) == sum(getattr(task, name) for task in tasks)


@given(tasks=st.lists(counters, min_size=1, max_size=5))
def test_summing_up_changes_no_task(tasks):
    before = repr(tasks)
    summarise("spout", len(tasks), tasks, None)
    assert repr(tasks) == before


def statistics():
    lines = TaskCounters(
        emitted=10, transferred=10, acked=7, failed=3, failed_by_bolt=2, timed_out=1, pending=0
    )
    lines.latency.add(0.250, count=7)
    split = TaskCounters(emitted=40, executed=10, acked=8, failed=2, errors=2)
    return TopologyStatistics(
        topology="words",
        engine="local",
        seconds=12.34567,
        batches=3,
        batch_ms=LatencySummary(1.0, 2.0, 3.0),
        components={
            "lines": summarise("spout", 1, [lines], None),
            "split": summarise("bolt", 1, [split], "ValueError: no words"),
        },
    )


def test_the_json_has_the_keys_that_other_tools_build_on():
    summary = json.loads(json.dumps(statistics().as_json()))
    assert list(summary) == ["topology", "engine", "seconds", "batches", "batch_ms", "backlog", "components"]
    assert summary["batch_ms"] == {"mean": 1.0, "p50": 2.0, "p99": 3.0}
    wanted = {"kind", "tasks", "emitted", "transferred", "executed", "acked", "failed", "failed_by_bolt"}
    wanted |= {"timed_out", "pending", "errors"}
    for component in summary["components"].values():
        assert wanted <= component.keys()
    assert summary["components"]["lines"]["complete_latency_ms"]["mean"] == 250.0
    assert summary["components"]["split"]["execute_latency_ms"] == {"mean": None, "p50": None, "p99": None}
    assert summary["components"]["split"]["last_error"] == "ValueError: no words"


@pytest.mark.parametrize(("kind", "acked"), [("spout", 7), ("bolt", 8), (None, 15)])
def test_totals_can_be_of_one_kind(kind, acked):
    assert statistics().total("acked", kind) == acked
