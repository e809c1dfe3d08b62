"""What metrics that leave the driver cost: a scrape of Prometheus every five seconds, four reporters, a consumer of metrics.

    python -m benchmarks.reporting idle|full [--engine local] [--seconds 20] [--warmup 10] [--rounds 5]
    python -m benchmarks.reporting each [--tasks 100] [--rounds 20]

One topology runs, and its metrics leave it in every second window of ``--seconds``. So both sides have the same workers, and
what else the machine does hits both. *idle*: a topology that has nothing to do; printed are the cores. *full*: the acked
word count at full speed; printed are words per CPU second. Reporters send to a process that throws away what it gets; its CPU
and that of the scrapes counts, too. On the local engine the REST API is there in these windows only, on Spark it always is.

Prints one JSON line for each round, and one with the spread of all.

*each*: the CPU milliseconds of one scrape, of one report of each reporter, and of one bucket of a consumer, for a topology of so
many tasks that has run. These don't depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks import idle_batch
from benchmarks.cpu import CpuMeter
from benchmarks.topologies import build
from benchmarks.word_count import running_on
from stormspark.api import TaskInfo
from stormspark.operations.metrics_calls import served_families
from stormspark.operations.registry import entry_of
from stormspark.operations.server import serve
from stormspark.reporting.builtin import Buckets
from stormspark.reporting.consumer_context import ConsumerContext
from stormspark.reporting.exposition import exposition
from stormspark.reporting.families import families
from stormspark.reporting.logging_consumer import LoggingMetricsConsumer
from stormspark.reporting.places import Hosts
from stormspark.reporting.report import Report
from stormspark.reporting.reporter import Reporter
from stormspark.reporting.reporting import Reporting

_FIRST_BATCH_SECS = 120.0
#: Takes connections and requests, and scrapes the socket that it is told.
_OTHER_SIDE = """
import http.server, socket, sys, threading, time
import httpx

class Takes(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): ...

def drain(listener):
    while True:
        connection, _ = listener.accept()
        while connection.recv(1 << 20): ...

graphite, statsd = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
statsd.bind(("127.0.0.1", 0))
collector = http.server.HTTPServer(("127.0.0.1", 0), Takes)
threading.Thread(target=drain, args=(graphite,), daemon=True).start()
threading.Thread(target=collector.serve_forever, args=(60,), daemon=True).start()
print(graphite.getsockname()[1], statsd.getsockname()[1], collector.server_port, flush=True)
with httpx.Client(transport=httpx.HTTPTransport(uds=sys.stdin.readline().strip())) as client:
    while True:
        client.get("http://driver/metrics").raise_for_status()
        time.sleep(5)
"""


@contextmanager
def _other_side() -> Iterator[tuple[Any, list[int]]]:
    """Start the process that takes everything. Yield it, and its ports for Graphite, StatsD and OpenTelemetry."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    other = subprocess.Popen([sys.executable, "-c", _OTHER_SIDE], **pipes)
    assert other.stdin is not None and other.stdout is not None
    try:
        yield other, [int(port) for port in other.stdout.readline().split()]
    finally:
        other.kill()
        other.wait()


def _conf(folder: str, ports: list[int]) -> dict[str, Any]:
    graphite, statsd, collector = ports
    return {
        "topology.builtin.metrics.bucket.size.secs": 10,
        "topology.metrics.consumer.register": [{"class": "LoggingMetricsConsumer"}],
        "topology.metrics.reporters": [
            {"class": "csv", "csv.log.dir": folder},
            {"class": "graphite", "graphite.host": "127.0.0.1", "graphite.port": graphite},
            {"class": "statsd", "statsd.host": "127.0.0.1", "statsd.port": statsd},
            {"class": "opentelemetry", "otlp.endpoint": f"http://127.0.0.1:{collector}/v1/metrics"},
        ],
    }


@contextmanager
def leaving(running: Any, engine: str) -> Iterator[None]:
    """Let the metrics of a topology leave it."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        other, ports = stack.enter_context(_other_side())
        conf = _conf(folder, ports)
        server = (
            serve(running, engine=engine, active=True, checkpoint=None)
            if engine == "local"
            else running._server
        )
        assert server is not None
        if engine == "local":
            stack.callback(server.close)
        reporting = Reporting(replace(running.plan, conf={**running.plan.conf, **conf}))
        reporting.begin(running, partial(served_families, server.served), folder)
        stack.callback(reporting.close)
        assert other.stdin is not None
        other.stdin.write(f"{entry_of(running.name).socket}\n")
        other.stdin.flush()
        yield


def window(running: Any, meter: CpuMeter, seconds: float) -> tuple[float, float]:
    """Return the cores that were used, and the words per CPU second."""

    def words() -> int:
        return sum(one.executed for name, one in running.statistics().components.items() if name == "count")

    before, counted, began = sum(meter.read().values()), words(), time.monotonic()
    time.sleep(seconds)
    # Words are counted at the end of a batch. In the long run that hits both sides alike.
    used = sum(meter.read().values()) - before
    return used / (time.monotonic() - began), (words() - counted) / used


def run(case: str, engine: str, seconds: float, warmup: float, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield what each round has measured."""
    workers = 2 if engine == "spark" else 1
    topology = idle_batch.build() if case == "idle" else build("wordcount_acked", (workers,) * 3)
    with running_on(engine, topology, {"topology.workers": workers}) as running:
        deadline = time.monotonic() + _FIRST_BATCH_SECS
        while not running.statistics().batches:
            if running.wait(0.05) or time.monotonic() > deadline:
                raise running.error or TimeoutError(f"no batch ended within {_FIRST_BATCH_SECS:g} s")
        time.sleep(warmup)
        meter = CpuMeter(running.name)
        for round_ in range(rounds):
            found: dict[bool, tuple[float, float]] = {}
            for on in (False, True) if round_ % 2 else (True, False):
                with leaving(running, engine) if on else nullcontext():
                    time.sleep(2)  # the other side has begun by then
                    found[on] = window(running, meter, seconds)
            (cores_on, words_on), (cores_off, words_off) = found[True], found[False]
            yield {
                "case": f"reporting_{case}",
                "engine": f"stormspark-{engine}",
                "cores_off": round(cores_off, 4),
                "cores_on": round(cores_on, 4),
                "more_cores": round(cores_on - cores_off, 4),
                "words_ratio": round(words_on / words_off, 4) if words_off else None,
            }


def _report(reporter: Reporter, running: Any, hosts: Hosts) -> None:
    reporter.report(Report(running, hosts, families(running), time.time()))


def each(tasks: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the CPU milliseconds of each way out, the least of all rounds, the median and the most."""
    parts = max(1, tasks // 3)
    with ExitStack() as stack:
        running: Any = stack.enter_context(running_on("local", build("wordcount_acked", (parts,) * 3), {}))
        while running.statistics().components["count"].executed < 100 * tasks:
            time.sleep(0.1)
        running.stop()
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        _, ports = stack.enter_context(_other_side())
        conf = _conf(folder, ports)
        reporting = Reporting(replace(running.plan, conf={**running.plan.conf, **conf}))
        hosts = Hosts(running)
        ways: dict[str, Callable[[], object]] = {"prometheus": lambda: exposition(families(running))}
        for sender in reporting._senders:
            ways[sender._settings.name] = partial(_report, sender._reporter, running, hosts)
        buckets = Buckets(running, 10.0)
        consumer = LoggingMetricsConsumer()
        consumer.prepare(
            {}, None, ConsumerContext(running.plan, "id", "__metrics", folder), reporting._consumers[0]
        )
        info = TaskInfo(0, "host", 6700, 1, "count", 10)
        ways["consumer"] = lambda: list(map(partial(consumer.handle_data_points, info), buckets.read(0.0)))
        for name, way in ways.items():
            took = []
            for _ in range(rounds):
                began = time.thread_time()
                way()
                took.append(1000 * (time.thread_time() - began))
            spread_ms = [round(one, 2) for one in (min(took), statistics.median(took), max(took))]
            yield {
                "case": "reporting_each",
                "tasks": len(running.plan.tasks),
                "way": name,
                "cpu_ms": spread_ms,
            }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=("idle", "full", "each"))
    parser.add_argument("--engine", choices=("spark", "local"), default="local")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warmup", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=100)
    options = parser.parse_args()
    if options.case == "each":
        for figures in each(options.tasks, options.rounds):
            print(json.dumps(figures), flush=True)
        return
    key = "more_cores" if options.case == "idle" else "words_ratio"
    values = []
    for figures in run(options.case, options.engine, options.seconds, options.warmup, options.rounds):
        print(json.dumps(figures), flush=True)
        values.append(figures[key])
    print(json.dumps({key: [min(values), statistics.median(values), max(values)]}), flush=True)


if __name__ == "__main__":
    main()
