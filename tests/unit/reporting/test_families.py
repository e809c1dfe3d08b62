"""What Prometheus gets to read about a topology."""

from __future__ import annotations

from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from stormspark.driver.source_lag import PartitionLag
from stormspark.metrics import DataPoint, Histogram, TaskCounters
from stormspark.reporting.exposition import exposition
from stormspark.reporting.families import MOST_KEYS, families
from tests.unit.reporting.reported import Reported


def read(running: Reported, **options: object) -> dict[str, Metric]:
    text, content_type = exposition(families(running, **options))  # type: ignore[arg-type]
    assert content_type.startswith("text/plain")
    return {metric.name: metric for metric in text_string_to_metric_families(text.decode())}


def values(metric: Metric, *labels: str) -> dict[tuple[str, ...], float]:
    return {tuple(one.labels[label] for label in labels): one.value for one in metric.samples}


def counted() -> Reported:
    running = Reported()
    spent = Histogram()
    spent.add(0.002, 3)
    spent.add(70.0)
    running.report(
        {
            running.spout: TaskCounters(emitted=10, acked=7, failed=1, pending=2, skipped_max_spout_ms=1500),
            running.bolts[0]: TaskCounters(emitted=4, executed=10, queued=6, latency=spent),
            running.bolts[1]: TaskCounters(executed=2),
        }
    )
    return running


def test_each_task_has_its_counts() -> None:
    running = counted()
    found = read(running)
    assert values(found["stormspark_executed"], "topology", "component", "task") == {
        ("words", "count", str(running.bolts[0])): 10.0,
        ("words", "count", str(running.bolts[1])): 2.0,
    }
    assert found["stormspark_executed"].type == "counter"
    assert values(found["stormspark_pending"], "component") == {("lines",): 2.0}
    assert values(found["stormspark_skipped_seconds"], "reason") == {
        ("backpressure",): 0.0,
        ("max_spout_pending",): 1.5,
        ("inactive",): 0.0,
    }


def test_streams_have_their_counts() -> None:
    found = read(counted())
    emitted = values(found["stormspark_stream_emitted"], "component", "stream")
    assert emitted == {("lines", "default"): 10.0, ("count", "default"): 4.0}
    inputs = values(found["stormspark_input_executed"], "component", "source", "stream")
    assert inputs == {("count", "lines", "default"): 12.0}


def test_many_tasks_are_added_up_by_component() -> None:
    running = counted()
    found = read(running, by_task=False)
    assert values(found["stormspark_executed"], "component", "task") == {("count", ""): 12.0}
    many = Reported(tasks=1001)
    many.report({task: TaskCounters(executed=2) for task in many.bolts})
    assert values(read(many)["stormspark_executed"], "task") == {("",): 2002.0}
    assert len(read(many, by_task=True)["stormspark_executed"].samples) == 1001


def test_latencies_are_histograms_whose_last_bucket_has_all() -> None:
    latency = read(counted())["stormspark_execute_latency_seconds"]
    buckets = {one.labels["le"]: one.value for one in latency.samples if one.name.endswith("_bucket")}
    assert (buckets["0.001"], buckets["0.005"], buckets["60.0"], buckets["+Inf"]) == (0.0, 3.0, 3.0, 4.0)
    (total,) = (one.value for one in latency.samples if one.name.endswith("_sum"))
    assert round(total, 6) == 70.006


def test_limits_marks_batches_lags_and_states_are_there() -> None:
    running = counted()
    running.known_lags = {"lines": {"t": {"0": PartitionLag(90, 100)}}}
    found = read(running, status="INACTIVE", capacities={"count": 0.25})
    assert values(found["stormspark_spout_limit"], "component") == {("lines",): 500.0}
    assert values(found["stormspark_throttled_seconds"], "by") == {("count",): 1.5}
    assert values(found["stormspark_queue_high_mark"], "component") == {("count",): 1e6}
    assert values(found["stormspark_batch_part_seconds"], "part") == {("spark",): 0.1}
    assert values(found["stormspark_batches"]) == {(): 1.0}
    assert values(found["stormspark_kafka_lag"], "component", "topic", "partition") == {
        ("lines", "t", "0"): 10.0
    }
    assert values(found["stormspark_capacity"], "component") == {("count",): 0.25}
    assert values(found["stormspark_status"], "status")["INACTIVE",] == 1.0
    assert sum(values(found["stormspark_status"], "status").values()) == 1.0
    assert values(found["stormspark_worker_up"], "worker", "host") == {("0", "one"): 1.0}


def test_users_metrics_have_labels_whatever_their_names_are() -> None:
    running = Reported()
    hostile = 'a "b"\\\n{le="1"} 7'
    named = {
        hostile: 3,
        "keys": {"x": 1, 1: 2, "1": 5, "text": "no number", hostile: True},
        "many": {str(key): key for key in range(1000)},
        "text": "no number",
        "nothing": None,
        "nan": float("nan"),
        "larger than any float": 10**400,
    }
    bolt = running.bolts[0]
    points = [DataPoint("count", bolt, name, value, 0, 60.0) for name, value in named.items()]
    running.report({}, points=points)
    found = values(read(running)["stormspark_user_metric"], "name", "key")
    assert found[hostile, ""] == 3.0
    assert {key: found[name, key] for name, key in found if name == "keys"} == {
        "x": 1.0,
        "1": 5.0,
        hostile: 1.0,
    }
    assert ("larger than any float", "") not in found
    assert sum(name == "many" for name, _ in found) == MOST_KEYS
    assert ("text", "") not in found
    assert str(found["nan", ""]) == "nan"


def test_a_topology_that_has_not_begun_is_read_too() -> None:
    assert values(read(Reported())["stormspark_batches"]) == {(): 0.0}


def test_openmetrics_is_spoken_too() -> None:
    text, content_type = exposition(families(counted()), "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert "stormspark_executed" in {metric.name for metric in read_openmetrics(text.decode())}
