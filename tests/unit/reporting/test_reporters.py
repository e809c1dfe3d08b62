"""Reporters of ``topology.metrics.reporters`` (J18): what they send, when, and what happens if nobody listens."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from stormspark import Fields, TopologyBuilder
from stormspark.errors import InvalidTopologyError
from stormspark.local import LocalCluster
from stormspark.metrics import DataPoint, Histogram, TaskCounters
from stormspark.operations.facts import WorkerPlace
from stormspark.plan.rebalance import rebalanced
from stormspark.reporting import Report, Reporter
from stormspark.reporting.families import families
from stormspark.reporting.places import Hosts
from stormspark.reporting.reporters import senders_of
from stormspark.reporting.throttled_log import ThrottledLog
from stormspark.testing import FixedTupleSpout, TestWordCounter
from tests.unit.reporting.reported import Reported

HERE = __name__
REPORTERS = "topology.metrics.reporters"


class Keeps(Reporter):
    """Keeps the reports. Fails as often as ``left`` says first."""

    got: ClassVar[list[Report]] = []
    left: ClassVar[int] = 0

    def report(self, report: Report) -> None:
        if Keeps.left:
            Keeps.left -= 1
            msg = "nobody listens"
            raise ConnectionRefusedError(msg)
        Keeps.got.append(report)


@pytest.fixture(autouse=True)
def forget() -> None:
    Keeps.got, Keeps.left = [], 0


def counted() -> Reported:
    running = Reported()
    spent = Histogram()
    spent.add(0.002, 3)
    points = [
        DataPoint("count", running.bolts[1], name, value, 0, 60.0)
        for name, value in (("below", -3), ("cache hits", {"a.b": 3}))
    ]
    running.report(
        {
            running.spout: TaskCounters(emitted=10),
            running.bolts[0]: TaskCounters(executed=4, queued=6, latency=spent),
        },
        points=points,
    )
    return running


def report_of(running: Reported, at: float = 1_795_861_973.5) -> Report:
    return Report(running, Hosts(running), families(running), at)


def reported(running: Reported, *entries: dict[str, Any], times: int = 1) -> None:
    """Let the reporters of these entries report a number of times, ten seconds apart, and end."""
    now = [0.0]
    senders = senders_of(Reported({REPORTERS: list(entries)}).plan)
    for sender in senders:
        sender.begin(lambda: report_of(running), lambda: now[0])
    for _ in range(times):
        now[0] += 10.0
        for sender in senders:
            sender.step()


def test_samples_have_names_as_in_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "driver.example.org")
    running = counted()
    found = {one.name: one for one in report_of(running).flat()}
    bolt, other = running.bolts
    begin = "storm.topology.words-1-1795861973"
    assert found[f"{begin}.one.count.{bolt}.6700-executed"][1:] == ("counter", 4)
    assert found[f"{begin}.one.count.{bolt}.6700-queued"][1:] == ("gauge", 6)
    assert found[f"{begin}.one.count.{other}.6700-cache_hits.a_b"].value == 3.0
    assert found[f"{begin}.driver_example_org.count.all.driver-execute_latency_seconds.count"].value == 3
    assert found[
        f"{begin}.driver_example_org.count.all.driver-execute_latency_seconds.p50"
    ].value == pytest.approx(0.002, rel=0.02)
    assert found[f"{begin}.driver_example_org.__system.all.driver-batches"].value == 1
    assert all(len(name.split("-", 3)[0]) for name in found)


def test_the_console_gets_what_the_filter_lets_through(capsys: pytest.CaptureFixture[str]) -> None:
    only = {"class": "org.apache.storm.metrics2.filters.RegexFilter", "expression": r".*-executed"}
    reported(
        counted(),
        {
            "class": "org.apache.storm.metrics2.reporters.ConsoleStormReporter",
            "filter": only,
            "report.period": 10,
        },
    )
    head, line = capsys.readouterr().out.splitlines()
    assert head.startswith("-- metrics of words at 2026-11-28")
    assert line.endswith("-executed = 4")


def test_files_of_values(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    reported(counted(), {"class": "csv", "csv.log.dir": str(folder)}, times=2)
    (file,) = folder.glob("*count*-executed.csv")
    assert file.read_text() == "t,value\n1795861973,4\n1795861973,4\n"
    file.write_text("x" * 1_100_000)
    reported(counted(), {"class": "csv", "csv.log.dir": str(folder)}, times=2)
    assert Path(f"{file}.1").stat().st_size > 1_000_000
    assert file.read_text() == "t,value\n1795861973,4\n"


@contextmanager
def listening(kind: socket.SocketKind) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, kind) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(20.0)
        yield listener


def lines_to(listener: socket.socket, last: str) -> list[str]:
    """Return the lines of datagrams, up to the one with ``last`` in a line."""
    found: list[str] = []
    while not any(last in line for line in found):
        found += listener.recv(65536).decode().splitlines()
    return found


def test_graphite_gets_lines_over_a_connection() -> None:
    with listening(socket.SOCK_STREAM) as listener:
        listener.listen()
        entry = {
            "class": "org.apache.storm.metrics2.reporters.GraphiteStormReporter",
            "graphite.host": "127.0.0.1",
            "graphite.port": listener.getsockname()[1],
            "graphite.prefixed.with": "prod",
        }
        reported(counted(), entry)
        connection, _ = listener.accept()
        with connection, connection.makefile() as file:
            lines = file.read().splitlines()
    assert all(len(line.split(" ")) == 3 for line in lines)
    (line,) = (line for line in lines if "-executed " in line)
    assert line.startswith("prod.storm.topology.words-1-1795861973.one.count.")
    assert line.endswith(".6700-executed 4 1795861973")


def test_graphite_gets_datagrams() -> None:
    with listening(socket.SOCK_DGRAM) as listener:
        where = {"graphite.host": "127.0.0.1", "graphite.port": listener.getsockname()[1]}
        reported(counted(), {"class": "graphite", "graphite.transport": "UDP", **where})
        lines = lines_to(listener, "cache_hits")
    assert any("-executed 4 " in line for line in lines)


def test_statsd_gets_what_was_added_and_gauges() -> None:
    running = counted()
    with listening(socket.SOCK_DGRAM) as listener:
        where = {
            "statsd.host": "127.0.0.1",
            "statsd.port": listener.getsockname()[1],
            "statsd.prefix": "prod",
        }
        reported(running, {"class": "statsd", **where}, times=2)
        first, second = lines_to(listener, "cache_hits"), lines_to(listener, "cache_hits")
    assert [line for line in first if line.endswith("-executed:4|c")]
    assert not [line for line in second if "-executed" in line]
    assert [line.partition("-below:")[2] for line in second if "-below:" in line] == ["0|g", "-3.0|g"]
    assert [line for line in second if line.endswith("-queued:6|g") and line.startswith("prod.storm.")]


def test_statsd_gets_nothing_twice_after_a_rebalance() -> None:
    """Names have the worker's host and port, and the task's id: a rebalance changes all three, and the totals go on."""
    running = Reported()
    with listening(socket.SOCK_DGRAM) as listener:
        entry = {"class": "statsd", "statsd.host": "127.0.0.1", "statsd.port": listener.getsockname()[1]}
        (sender,) = senders_of(Reported({REPORTERS: [entry]}).plan)
        executed = {task: TaskCounters(executed=100 + task) for task in running.bolts}
        running.report({running.spout: TaskCounters(emitted=1000), **executed})
        sender._reporter.report(report_of(running))
        first = lines_to(listener, "uptime")
        plan = rebalanced(running.plan, workers=2, executors={"count": 3, "lines": 2})
        assert running.spout not in plan.components["lines"].tasks
        running.plan = plan
        running.tally.lay_out(plan)
        sender._reporter.report(report_of(running))
        second = lines_to(listener, "uptime")
    counters = "-executed:", "-emitted:"
    assert len([line for line in first if any(one in line for one in counters)]) == 3
    assert [line for line in second if any(one in line for one in counters)] == []


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    got: list[tuple[dict[str, str], bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((dict(self.headers), self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/metrics", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_collector_of_opentelemetry_gets_everything() -> None:
    running = counted()
    with collector() as (url, got):
        reported(running, {"class": "opentelemetry", "otlp.endpoint": url, "otlp.headers": {"api-key": 7}})
    ((headers, body),) = got
    assert headers["api-key"] == "7"
    request = ExportMetricsServiceRequest.FromString(body)
    (of_topology,) = request.resource_metrics
    resource = {one.key: one.value.string_value for one in of_topology.resource.attributes}
    assert (resource["service.name"], resource["service.instance.id"]) == ("words", running.storm_id)
    metrics = {one.name: one for one in of_topology.scope_metrics[0].metrics}
    (point,) = (
        one
        for one in metrics["stormspark.executed"].sum.data_points
        if any(label.value.string_value == str(running.bolts[0]) for label in one.attributes)
    )
    assert (point.as_int, metrics["stormspark.executed"].sum.is_monotonic) == (4, True)
    (latency,) = metrics["stormspark.execute_latency_seconds"].histogram.data_points
    assert (latency.count, sum(latency.bucket_counts), latency.HasField("min")) == (3, 3, False)
    assert metrics["stormspark.queued"].gauge.data_points


def test_a_collector_that_refuses_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with collector(400) as (url, got):
        reported(counted(), {"class": "opentelemetry", "otlp.endpoint": url}, times=3)
    assert len(got) == 3
    (line,) = (one.getMessage() for one in caplog.records)
    assert "metrics reporter opentelemetry" in line
    assert "400" in line


def test_a_dead_endpoint_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with listening(socket.SOCK_STREAM) as bound:
        where = {"graphite.host": "127.0.0.1", "graphite.port": bound.getsockname()[1]}  # nobody listens
        reported(counted(), {"class": "graphite", **where}, times=5)
    (line,) = (one.getMessage() for one in caplog.records)
    assert "metrics reporter graphite: ConnectionRefusedError" in line
    assert "the topology goes on without it" in line


def test_a_reporter_that_works_again_says_so(caplog: pytest.LogCaptureFixture) -> None:
    Keeps.left = 2
    with caplog.at_level(logging.INFO):
        reported(counted(), {"class": f"{HERE}:Keeps"}, times=4)
    assert len(Keeps.got) == 2
    assert "works again, after 2 failures" in caplog.text


def test_a_reporter_that_fails_now_and_then_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    log = ThrottledLog("metrics reporter graphite", lambda: now[0])
    with caplog.at_level(logging.INFO):
        for now[0] in range(0, 600, 20):
            log.failed(ConnectionRefusedError("nobody listens"))
            log.worked()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"] * 2


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ({"class": "console", "report.period": "often"}, "report.period must be a number, got 'often'"),
        ({"class": "console", "report.period": True}, "report.period must be a number"),
        ({"class": "console", "report.period": 0}, "at least a second, got '0 SECONDS'"),
        (
            {"class": "console", "report.period": 10, "report.period.units": "MILLISECONDS"},
            "at least a second",
        ),
        ({"class": "console", "report.period.units": "FORTNIGHTS"}, "must be one of MILLISECONDS"),
        ({"class": "console", "filter": {"expression": "("}}, "must be a regular expression"),
        ({"class": "console", "filter": "a"}, "must be a mapping with an expression"),
        ({"class": "graphite"}, "graphite.host must be the name or the address of a host, got None"),
        (
            {"class": "graphite", "graphite.host": "a", "graphite.port": "2003"},
            "must be the number of a port",
        ),
        ({"class": "graphite", "graphite.host": "a", "graphite.port": 70000}, "must be the number of a port"),
        ({"class": "graphite", "graphite.host": "a", "graphite.transport": "pigeon"}, "must be tcp or udp"),
        ({"class": "csv", "csv.log.dir": "/dev/null/x"}, "csv.log.dir"),
        ({"class": "opentelemetry", "otlp.headers": "a=b"}, "otlp.headers must be a mapping"),
        ({"class": "consol"}, "names 'consol', which is no class: .*; did you mean 'console'?"),
        ({"class": f"{HERE}:Nothing"}, "has no attribute 'Nothing'"),
        ({"class": f"{HERE}:Report"}, "is no class derived from stormspark.reporting.reporter.Reporter"),
    ],
)
def test_an_entry_that_can_not_be_is_refused_before_the_start(entry: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidTopologyError, match=wrong):
        senders_of(Reported({REPORTERS: [entry]}).plan)


@pytest.mark.parametrize(
    "name", ["org.apache.storm.metrics2.reporters.JmxStormReporter", "com.acme.Reporter"]
)
def test_a_class_of_java_changes_nothing_and_is_warned_of(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert senders_of(Reported({REPORTERS: [{"class": name}]}).plan) == []
    assert f"{name}, which is no class of Python" in caplog.text


def test_a_topology_reports_at_its_end_too() -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", FixedTupleSpout([["a"], ["b"]], Fields("word")))
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("lines")
    conf = {REPORTERS: [{"class": f"{HERE}:Keeps", "report.period": 5}]}
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("words", conf, builder.create_topology("words"))
        running.advance_time(16.0)
        assert [report.at for report in Keeps.got] == [5.0, 10.0, 15.0]
    assert len(Keeps.got) == 4
    acked = next(one for one in Keeps.got[-1].families if one.name == "stormspark_acked_total")
    assert sorted(sample.value for sample in acked.samples) == [2, 2]  # type: ignore[type-var]


def test_a_reporter_has_a_thread_and_its_end_does_not_wait() -> None:
    entered, never = threading.Event(), threading.Event()

    class Waits(Keeps):
        def report(self, report: Report) -> None:
            entered.set()
            never.wait()

    (sender,) = senders_of(Reported({REPORTERS: [{"class": f"{HERE}:Keeps"}]}).plan)
    sender._reporter = Waits()
    make: Callable[[], Report] = lambda: report_of(counted())  # noqa: E731
    sender.begin(make)
    sender.end()
    assert entered.wait(20)
    sender.join(0.01)
    never.set()
    sender.join(20)


def test_names_stay_when_workers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    running = counted()
    hosts = Hosts(running)
    before = {one.name for one in Report(running, hosts, families(running), 0.0).flat()}
    monkeypatch.setattr(running, "worker_places", lambda: [WorkerPlace(0, "", 0, 0.0)])
    after = {one.name for one in Report(running, hosts, families(running), 10.0).flat()}
    assert not {name for name in after - before if ".count." in name}
    assert not [name for name in after if "unknown" in name]
