import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.backpressure import BoltPressure, LimitChange, Pressure, SpoutPressure
from stormspark.metrics import LatencySummary, TaskCounters, TopologyStatistics, summarise

#: What only tasks have.
OF_TASKS = ("latency", "processed", "process_seconds", "outputs", "inputs")
COUNTS = [field.name for field in fields(TaskCounters) if field.name not in OF_TASKS]

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
    keys = ["topology", "engine", "seconds", "batches", "batch_ms", "phases_ms", "backlog", "components"]
    assert list(summary) == [*keys, "backpressure", "dead_letters_in"]
    assert summary["backpressure"] is None and summary["dead_letters_in"] is None
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


def test_the_json_names_the_throttled_spouts_and_the_bolts_at_fault():
    """F6, F11: time throttled by bolt, limits now and over time, queues against their marks; and all of it is bounded."""
    pressure = Pressure(
        spouts={
            "lines": SpoutPressure(165, "split", {"split": 3_000.04, "count": 1_000.0}),
            "other": SpoutPressure(None, None, {}),
        },
        bolts={"split": BoltPressure(7, 700, 1_000_000, 104_857_600, 2.5, above=False)},
        limit_changes=2_000,
        history=[LimitChange(float(n), "lines", n or None, "split" if n else None) for n in range(1000)],
    )
    summary = json.loads(json.dumps(replace(statistics(), seconds=10.0, pressure=pressure).as_json()))
    told = summary["backpressure"]
    assert told["limit_changes"] == 2_000
    assert told["spouts"]["lines"] == {
        "limit": 165,
        "throttled_by": "split",
        "throttled_ms": {"split": 3000.0, "count": 1000.0},
        "throttled_share": 0.4,
        "max_pending": None,
        "unfelt_max_pending": None,
    }
    assert told["spouts"]["other"] == {
        "limit": None,
        "throttled_by": None,
        "throttled_ms": {},
        "throttled_share": 0.0,
        "max_pending": None,
        "unfelt_max_pending": None,
    }
    assert told["bolts"]["split"] == {
        "queued": 7,
        "queued_bytes": 700,
        "high_mark": 1_000_000,
        "high_mark_bytes": 104_857_600,
        "backlog_seconds": 2.5,
        "above": False,
        "first_call_secs": 0.0,
    }
    assert len(told["history"]) == 100
    assert told["history"][-1] == {"seconds": 999.0, "spout": "lines", "limit": 999, "because_of": "split"}


def test_what_held_a_spout_stands_with_its_counts():
    """F6: skipped for backpressure, for max spout pending and while inactive, in milliseconds; and what a bolt has shed (X51)."""
    held = TaskCounters(skipped_backpressure_ms=1.5, skipped_max_spout_ms=2.5, skipped_inactive_ms=3.5)
    one = summarise("spout", 2, [held, held], None).as_json()
    names = ("skipped_backpressure_ms", "skipped_max_spout_ms", "skipped_inactive_ms")
    assert [one[name] for name in names] == [3.0, 5.0, 7.0]
    assert summarise("bolt", 1, [TaskCounters(shed=9, queued_bytes=4)], None).as_json()["shed"] == 9
