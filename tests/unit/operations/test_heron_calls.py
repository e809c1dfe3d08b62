"""The calls of Heron's tracker, under ``/heron`` (J12)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stormspark.metrics import TaskCounters
from tests.unit.operations.test_storm_fields import Words, served, spent

pytestmark = pytest.mark.usefixtures("folder")

NAMED = {"cluster": "any", "environ": "any", "topology": "words"}


@pytest.fixture
def words(folder: Path) -> Iterator[tuple[Words, httpx.Client]]:
    running = Words(conf={"my.password": "sesame"})
    for client in served(running):
        yield running, client


def asked(client: httpx.Client, call: str, status: int = 200, **more: Any) -> Any:
    answer = client.get(f"http://driver/heron/{call}", params={**NAMED, **more})
    assert answer.status_code == status, answer.text
    assert "sesame" not in answer.text
    return answer.json()


def test_a_topology_is_found_and_has_its_plans(words: tuple[Words, httpx.Client]) -> None:
    running, client = words
    (role,) = asked(client, "topologies")["stormspark"].values()
    assert role == {"default": ["words"]}
    info = asked(client, "topologies/info")
    for part in ("logicalplan", "physicalplan", "packingplan", "metadata"):
        assert asked(client, f"topologies/{part}") == info[part.replace("plan", "_plan")]
    assert info["execution_state"]["status"] == "Running"
    logical = info["logical_plan"]
    assert (logical["stages"], set(logical["spouts"]), set(logical["bolts"])) == (
        2,
        {"lines"},
        {"split", "count"},
    )
    assert logical["bolts"]["count"]["inputs"] == [
        {"stream_name": "default", "component_name": "split", "grouping": "FIELDS"},
        {"stream_name": "side", "component_name": "lines", "grouping": "SHUFFLE"},
    ]
    physical = info["physical_plan"]
    assert len(physical["instances"]) == len(running.plan.tasks)
    (group, *_), (manager, *_) = physical["instance_groups"].values(), physical["stmgrs"].values()
    assert (group, manager["pid"]) == (manager["instance_ids"], 17)
    assert asked(client, "topologies/states")["stormspark"]["default"]["words"]["instances"] == 8
    assert asked(client, "machines") == {"stormspark": {"default": {"words": ["one"]}}}
    assert asked(client, "topologies/config")["my.password"] == "***"
    assert client.get("http://driver/heron/health").text == "ok"


def test_metrics_have_herons_names(words: tuple[Words, httpx.Client]) -> None:
    _, client = words
    found = asked(client, "topologies/metrics", component="count")["metrics"]
    (instance,) = (name for name, value in found["__execute-count"].items() if value == "32")
    assert instance.startswith("container_1_count_")
    assert found["__execute-count/split/default"][instance] == "30"
    assert found["__execute-count/default"][instance] == "30"
    assert float(found["__execute-latency/lines/side"][instance]) == pytest.approx(1e6)  # in ns
    only = asked(client, "topologies/metrics", component="lines", metricname="__ack-count/side", interval=600)
    assert list(only["metrics"]) == ["__ack-count/side"]


def test_what_came_in_a_minute_is_in_the_timeline_and_in_queries(words: tuple[Words, httpx.Client]) -> None:
    running, client = words
    task = running.plan.components["split"].tasks[1]
    running.counters[task] = TaskCounters(emitted=60, executed=25, acked=25, latency=spent(0.02, 25))
    now = int(time.time())
    times = {"starttime": 0, "endtime": now + 10**9}  # nothing is longer for that
    timeline = asked(client, "topologies/metrics/timeline", component="split", **times)["timeline"]
    instance = f"container_{running.plan.tasks[task].worker + 1}_split_{task}"
    assert sum(timeline["__execute-count/lines/default"][instance].values()) == 15
    query = "DIVIDE(SUM(TS(split,*,__execute-count/default)), 5)"
    (series,) = asked(client, "topologies/metrics/query", query=query, **times)["timeline"]
    assert series["instance"] is None
    assert sum(series["data"].values()) == 3
    assert len(series["data"]) <= 182


def test_errors_are_exceptions(words: tuple[Words, httpx.Client]) -> None:
    _, client = words
    assert [one["stacktrace"] for one in asked(client, "topologies/exceptions", component="count")] == [
        "5.5",
        "60.0",
    ]
    summary = asked(client, "topologies/exceptionsummary", component="count")
    assert [(one["class_name"], one["count"]) for one in summary] == [("5.5", "1"), ("60.0", "1")]
    assert asked(client, "topologies/exceptions", component="count", instance="nobody") == []


@pytest.mark.parametrize(
    ("call", "more", "status", "problem"),
    [
        ("topologies/info", {"topology": "other"}, 404, "no topology 'other' runs here, but 'words'"),
        ("topologies/metrics", {}, 400, "lacks the parameter 'component'"),
        ("topologies/metrics", {"component": "cuont"}, 404, "did you mean 'count'"),
        ("topologies/metrics", {"component": "count", "interval": "x"}, 400, "must be a whole number"),
        ("topologies/metrics/query", {"query": "SUM("}, 400, "lacks the parameter 'starttime'"),
        ("topologies/metrics/query", {"query": "SUM(", "starttime": 0, "endtime": 9}, 400, "ends too early"),
        (
            "topologies/metrics/query",
            {"query": "SUM(", "starttime": 9, "endtime": 0},
            400,
            "is after endtime",
        ),
    ],
)
def test_what_is_wrong_is_named(
    words: tuple[Words, httpx.Client], call: str, more: dict[str, Any], status: int, problem: str
) -> None:
    assert problem in asked(words[1], call, status, **more)["errorMessage"]
