"""Metrics consumers (J17): what they get, when, and what happens if they fail."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from stormspark import Config, Fields, MetricsConsumer, TaskInfo, TopologyBuilder
from stormspark.driver.source_lag import PartitionLag
from stormspark.errors import InvalidTopologyError
from stormspark.local import LocalCluster
from stormspark.metrics import CountMetric, DataPoint, Histogram, TaskCounters
from stormspark.metrics.streams import StreamCounts
from stormspark.plan.rebalance import rebalanced
from stormspark.reporting.builtin import Buckets
from stormspark.reporting.consumers import consumers_of
from stormspark.reporting.places import Hosts
from stormspark.testing import FixedTupleSpout, TestWordCounter
from tests.unit.reporting.reported import Reported
from tests.waiting import wait_for

HERE = __name__
REGISTER = "topology.metrics.consumer.register"


class Keeps(MetricsConsumer):
    """Keeps what it gets. Registered with a number, it raises so often first."""

    got: ClassVar[list[tuple[TaskInfo, list[DataPoint]]]] = []
    told: ClassVar[list[Any]] = []
    left: ClassVar[int] = 0

    def prepare(self, conf: Mapping[str, Any], argument: Any, context: Any, error_reporter: Any) -> None:
        Keeps.told.append((argument, context.this_component_id, context.component_ids))
        Keeps.left = argument if isinstance(argument, int) else 0
        if argument == "does not begin":
            raise ValueError(argument)

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        if Keeps.left:
            Keeps.left -= 1
            msg = "no"
            raise ConnectionError(msg)
        Keeps.got.append((task_info, list(data_points)))

    def cleanup(self) -> None:
        Keeps.told.append("cleanup")


class Exits(MetricsConsumer):
    """Exits once, in ``prepare`` or when it is handed something."""

    got = 0

    def prepare(self, conf: Mapping[str, Any], argument: Any, context: Any, error_reporter: Any) -> None:
        Exits.got = 0
        if argument == "at once":
            sys.exit("exit at once")

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        Exits.got += 1
        if Exits.got == 1:
            sys.exit("exit")


class Stuck(MetricsConsumer):
    """Never returns."""

    never = threading.Event()

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        Stuck.never.wait()


class Registers(TestWordCounter):
    """Has a metric of its own."""

    def prepare(self, conf: Any, context: Any) -> None:
        super().prepare(conf, context)
        self.words = context.register_metric("words", CountMetric(), 10)

    def execute(self, tup: Any, collector: Any) -> None:
        self.words.incr()
        super().execute(tup, collector)


@pytest.fixture(autouse=True)
def forget() -> None:
    Keeps.got, Keeps.told, Keeps.left = [], [], 0


def registered(**entry: Any) -> dict[str, Any]:
    return {REGISTER: [{"class": f"{HERE}:Keeps", **entry}]}


def values(points: Sequence[DataPoint]) -> dict[str, Any]:
    return {point.name: point.value for point in points}


def test_a_bucket_has_what_was_added_since_the_last_one() -> None:
    running = Reported()
    buckets = Buckets(running, 60.0)
    spent = Histogram()
    spent.add(0.002, 4)
    running.report(
        {
            running.spout: TaskCounters(
                emitted=10, transferred=10, acked=7, failed=1, pending=2, timed_out=1
            ),
            running.bolts[0]: TaskCounters(executed=4, acked=4, queued=6, latency=spent),
        }
    )
    bolt, spout, system = buckets.read(1000.0)
    assert values(spout)["__emit-count"] == {"default": 10}
    assert values(spout)["__ack-count"] == {"default": 7}
    assert values(spout)["__pending-acked-count"] == 2
    assert values(bolt)["__execute-count"] == {"lines:default": 4}
    assert values(bolt)["__execute-latency"] == {"lines:default": 2.0}
    assert values(bolt)["__receive"] == {"population": 6, "bytes": 0}
    assert values(system)["startTimeSecs"] == 1_795_861_973.0
    assert (bolt[0].at_ms, bolt[0].bucket_secs, system[0].task) == (1_000_000, 60.0, -1)
    bolt, spout, _ = buckets.read(1060.0)
    assert values(spout)["__emit-count"] == {"default": 0}
    assert values(bolt)["__execute-latency"] == {}


def test_a_bolt_with_several_inputs_counts_by_input() -> None:
    running = Reported()
    by_input = {
        ("lines", "default"): StreamCounts(
            executed=8, acked=6, calls=8, call_seconds=0.016, processed=2, process_seconds=2.0
        ),
        ("lines", "late"): StreamCounts(executed=2, failed=2, calls=2, call_seconds=0.002),
    }
    outputs = {"default": StreamCounts(3, 3), "error": StreamCounts(1, 0)}
    running.report({running.bolts[0]: TaskCounters(emitted=4, executed=10, inputs=by_input, outputs=outputs)})
    bolt = values(next(Buckets(running, 60.0).read(0.0)))
    assert bolt["__execute-count"] == {"lines:default": 8, "lines:late": 2}
    assert bolt["__emit-count"] == {"default": 3, "error": 1}
    assert bolt["__transfer-count"] == {"default": 3, "error": 0}
    assert bolt["__process-latency"] == {"lines:default": pytest.approx((4 * 2 + 2000) / 6)}
    assert bolt["__execute-latency"] == {"lines:default": 2.0, "lines:late": 1.0}


def test_the_lag_of_kafka_has_the_names_of_storm() -> None:
    running = Reported()
    running.known_lags = {"lines": {"t": {"0": PartitionLag(90, 100), "1": PartitionLag(5, 7)}}}
    running.report({running.spout: TaskCounters()})
    offsets = values(next(Buckets(running, 60.0).read(0.0)))["kafkaOffset"]
    assert offsets["t/totalSpoutLag"] == 12
    assert offsets["t/partition_0/spoutLag"] == 10


def test_a_topology_tells_its_consumers() -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", FixedTupleSpout([["a"], ["b"]], Fields("word")))
    builder.set_bolt("count", Registers()).shuffle_grouping("lines")
    conf = Config().register_metrics_consumer(Keeps, {"to": "x"})
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("words", conf, builder.create_topology("words"))
        running.advance_time(59.0)
        of_users = [
            (info.src_component_id, point.name, point.value) for info, points in Keeps.got for point in points
        ]
        assert of_users[0] == ("count", "words", 2)
        assert {name for _, name, _ in of_users} == {"words"}
        running.advance_time(2.0)
        by_component = {info.src_component_id: (info, values(points)) for info, points in Keeps.got}
        info, points = by_component["lines"]
        assert points["__ack-count"] == {"default": 2}
        assert (info.timestamp, info.update_interval_secs, info.src_worker_port) == (60, 60, 6700)
        assert by_component["count"][1]["__execute-count"] == {"lines:default": 2}
    (argument, component, components), last = Keeps.told
    assert argument == {"to": "x"}
    assert component == f"__metrics_{HERE}:Keeps"
    assert set(components) == {"lines", "count"}
    assert last == "cleanup"


def handed_on(running: Reported, points: Sequence[DataPoint], **entry: Any) -> None:
    """Hand data points to the consumer of an entry, on the test's own clock."""
    (consumer,) = consumers_of(Reported(registered(**entry)).plan)
    consumer.begin(running, Hosts(running), None, lambda: 7.0)
    consumer.take(points)
    consumer.step()


def test_lists_and_maps() -> None:
    running = Reported()
    points = [
        DataPoint("count", running.bolts[1], "sizes", {"a": 1, "b": 2}, 5000, 10.0),
        DataPoint("count", running.bolts[0], "words", 3, 5000, 10.0),
    ]
    handed_on(running, points, expandMapType=True, metricNameSeparator="/", blacklist=["^words$", "/b"])
    ((info, got),) = Keeps.got
    assert values(got) == {"sizes/a": 1}
    assert info == TaskInfo(5, "one", 6700, running.bolts[1], "count", 10)
    Keeps.got.clear()
    handed_on(running, points, whitelist=["ord"])
    assert [values(got) for _, got in Keeps.got] == [{"words": 3}]


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ({"whitelist": ["a"], "blacklist": ["b"]}, "it may have one of them"),
        ({"whitelist": ["("]}, "is no regular expression"),
        ({"whitelist": [7]}, "is no regular expression"),
        ({"whitelist": "a"}, "whitelist must be a list"),
        ({"max.retain.metric.tuples": True}, "must be a whole number, got True"),
        ({"expandMapType": "yes"}, "must be true or false"),
        ({"class": f"{HERE}:Nothing"}, "has no attribute 'Nothing'"),
        ({"class": f"{HERE}:TaskInfo"}, "is no class derived from"),
        ({"class": "no_such_module:Consumer"}, "No module named"),
        ({"class": "stormspark.no_such.Consumer"}, "No module named"),
        ({"class": ":"}, "can't be imported"),
        ({"class": ""}, "names '', which is no class"),
        ({"class": "LogingMetricsConsumer"}, "did you mean 'LoggingMetricsConsumer'?"),
    ],
)
def test_an_entry_that_can_not_be_is_refused_before_the_start(entry: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidTopologyError, match=wrong):
        consumers_of(Reported(registered(**entry)).plan)


def test_a_class_of_java_changes_nothing_and_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert consumers_of(Reported(registered(**{"class": "com.acme.metrics.Sender"})).plan) == []
    assert "com.acme.metrics.Sender, which is no class of Python" in caplog.text


def test_a_consumer_that_raises_gets_the_next_points_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    running = Reported()
    points = [DataPoint("count", task, "words", 3, 0, 10.0) for task in running.bolts] * 3
    points = [point._replace(at_ms=1000 * number) for number, point in enumerate(points)]
    with caplog.at_level(logging.INFO):
        handed_on(running, points, argument=3)
    assert len(Keeps.got) == 3
    assert [one.levelname for one in caplog.records] == ["WARNING", "INFO"]
    assert "ConnectionError: no" in caplog.text
    assert "works again, after 3 failures" in caplog.text


def test_a_consumer_that_does_not_begin_gets_nothing(caplog: pytest.LogCaptureFixture) -> None:
    handed_on(Reported(), [DataPoint("count", 1, "words", 3, 0, 10.0)], argument="does not begin")
    assert Keeps.got == []
    assert "it could not begin: ValueError: does not begin" in caplog.text


@pytest.mark.parametrize("argument", ["later", "at once"])
def test_a_consumer_that_exits_is_told_and_collects_nothing(
    argument: str, caplog: pytest.LogCaptureFixture
) -> None:
    running = Reported()
    entry = {"class": f"{HERE}:Exits", "argument": argument, "max.retain.metric.tuples": 0}
    (consumer,) = consumers_of(Reported(registered(**entry)).plan)
    consumer.begin(running, Hosts(running), None)
    wait_for(lambda: argument == "later" or "could not begin: SystemExit" in caplog.text)
    for _ in range(2):
        consumer.take([DataPoint("count", running.bolts[0], "words", 1, 0, 10.0)])
    wait_for(lambda: not consumer._waiting)
    consumer.end()
    consumer.join(10.0)
    assert Exits.got >= 2 or argument == "at once"
    assert "SystemExit: exit" in caplog.text


def test_a_consumer_goes_on_if_figures_can_not_be_read_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = Reported()
    (consumer,) = consumers_of(Reported(registered()).plan)
    hosts = Hosts(running)
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 1:
            msg = "no hosts yet"
            raise RuntimeError(msg)

    monkeypatch.setattr(hosts, "look", look)
    consumer.begin(running, hosts, None)
    consumer.take([DataPoint("count", running.bolts[0], "words", 0, 0, 10.0)])
    wait_for(lambda: len(looks) == 1)
    consumer.take([DataPoint("count", running.bolts[0], "words", 1, 0, 10.0)])
    wait_for(lambda: len(looks) == 2)
    consumer.end()
    consumer.join(10.0)
    assert [values(points)["words"] for _, points in Keeps.got if "words" in values(points)] == [1]
    assert "RuntimeError: no hosts yet" in caplog.text


def test_a_consumer_that_is_stuck_holds_up_nobody() -> None:
    """Old data points are forgotten, and the end does not wait for long."""
    running = Reported()
    entry = {"class": f"{HERE}:Stuck", "max.retain.metric.tuples": 5}
    (consumer,) = consumers_of(Reported(registered(**entry)).plan)
    consumer.begin(running, Hosts(running), None)
    for number in range(1000):
        consumer.take([DataPoint("count", running.bolts[0], "words", number, 0, 10.0)])
    assert len(consumer._waiting) <= 5
    consumer.end()
    consumer.join(0.01)
    Stuck.never.set()
    consumer.join(10.0)
    Stuck.never.clear()


def test_storms_logging_consumer_writes_lines_with_tabs(tmp_path: Path) -> None:
    running = Reported({REGISTER: [{"class": "org.apache.storm.metric.LoggingMetricsConsumer"}]})
    (consumer,) = consumers_of(running.plan)
    consumer.begin(running, Hosts(running), str(tmp_path))
    consumer.take(
        [DataPoint("count", running.bolts[0], "words", {"x": 1, "a\nb": None}, 1_795_861_973_000, 10.0)]
    )
    consumer.end()
    consumer.join(10.0)
    line, *_ = (tmp_path / "metrics.log").read_text().splitlines()
    assert line.split(" ", 2)[2].split("\t") == [
        "1795861973", "            one:6700", f"{running.bolts[0]:3}:count      ", f"{'words':23}", "{x=1, a\\nb=null}"
    ]  # fmt: skip
    assert (tmp_path / "metrics.log").stat().st_mode & 0o077 == 0


def test_a_rebalance_counts_nothing_twice() -> None:
    """Tasks have other ids after it, and go on with the totals of those that had their index."""
    running = Reported()
    buckets = Buckets(running, 60.0)
    running.report({task: TaskCounters(executed=10) for task in running.bolts})
    assert (
        sum(values(points).get("__execute-count", {}).get("lines:default", 0) for points in buckets.read(0.0))
        == 20
    )
    plan = rebalanced(running.plan, executors={"count": 3, "lines": 2})
    assert plan.components["lines"].tasks != running.plan.components["lines"].tasks
    running.plan = plan
    running.tally.lay_out(plan)
    added = [values(points).get("__execute-count") for points in buckets.read(60.0)]
    assert all(one in (None, {"lines:default": 0}) for one in added)
