"""What Spark may do to a forwarder, done to it by hand: a real worker process, a real nimbus, and no Spark."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from stormspark.errors import ComponentError, WorkerLostError
from stormspark.plan import plan_topology
from stormspark.spark.forwarder import Attempt, _exchange_side_by_side, _Route, _start_side_by_side
from stormspark.spark.nimbus import Nimbus
from stormspark.wire.frames import FRAME_SCHEMA
from stormspark.worker.host.addresses import Address
from stormspark.worker.host.launch import LaunchError, own_folder
from stormspark.worker.host.link import Endpoint
from stormspark.worker.host.messages import Request
from stormspark.worker.step import read_report
from tests.spark.topologies import FOLDER, PrepareRaises, broken, word_count
from tests.waiting import PATIENCE_SECS, wait_for, wait_until_gone, worker_processes

pytestmark = [pytest.mark.faults, pytest.mark.slow]


class Stage:
    """Nimbus of a topology, and forwarders for it as Spark would start them."""

    def __init__(self, topology, tmp_path, conf, host=None):
        self.plan = plan_topology(topology, {FOLDER: str(tmp_path), **conf})
        self.trouble = threading.Event()
        self.folder = own_folder("stormspark-")
        self.nimbus = Nimbus(
            cloudpickle.dumps(self.plan),
            self.plan.workers,
            folder=self.folder,
            address=host and Address(host),
            lease_secs=30,
            start_timeout_secs=60,
            on_trouble=self.trouble.set,
        )
        self.log_folder = str(tmp_path / "logs")
        self.routes = []

    def attempt(self, number=0, nimbus=None, start_timeout_secs=60.0):
        return Attempt(
            topology=self.plan.topology,
            generation=0,
            attempt=number,
            reason="a test",
            workers=self.plan.workers,
            supersteps=self.plan.last_superstep + 1,
            nimbus=nimbus or self.nimbus.endpoint,
            key=self.nimbus.key,
            log_folder=self.log_folder,
            start_timeout_secs=start_timeout_secs,
        )

    def route(self, worker=0, **attempt):
        self.routes.append(_Route(self.attempt(**attempt), worker))
        return self.routes[-1]


@pytest.fixture
def stage(tmp_path):
    stages = []

    def make(topology, host=None, **conf):
        stages.append(Stage(topology, tmp_path, conf, host))
        return stages[-1]

    yield make
    for one in stages:
        for route in one.routes:
            route.close()
        one.nimbus.validate()
        one.nimbus.kill_workers()
        one.nimbus.close()
        shutil.rmtree(one.folder, ignore_errors=True)


def exchange(route, batch=0, superstep=0, attempt=0, frames=()):
    request = Request(0, route.incarnation, batch, attempt, superstep, 0)
    return pa.Table.from_batches(route.exchange(request, frames), FRAME_SCHEMA)


def test_a_repeated_request_is_answered_from_memory(stage):
    one = stage(word_count(100, "repeated"), **{"topology.workers": 2})
    first, retry = one.route(), one.route()
    reply = exchange(first)
    assert reply.num_rows > 0, "words for the other worker"
    assert exchange(retry) == reply
    assert exchange(first) == reply
    exchange(first, batch=1)
    with pytest.raises(WorkerLostError, match="batch 0 is committed"):
        exchange(retry)


def test_workers_that_share_a_partition_run_side_by_side_and_only_once(stage):
    # No superstep ends before its work does, however busy the machine is: a worker waits only some milliseconds for threads.
    conf = {"stormspark.batch.target.ms": 60_000, "stormspark.executor.threads": "never"}
    one = stage(word_count(100, "shared"), **{"topology.workers": 3, **conf})
    _start_side_by_side(one.attempt(), range(3))
    assert len(worker_processes("shared")) == 3, "all have started before the first one is waited for"

    def exchanged(superstep, frames=()):
        routes = {worker: one.route(worker) for worker in range(3)}
        requests = {w: Request(0, route.incarnation, 0, 0, superstep, w) for w, route in routes.items()}
        reply = pa.Table.from_batches(_exchange_side_by_side(routes, requests, frames), FRAME_SCHEMA)
        return reply.sort_by([("sender", "ascending"), ("sequence", "ascending")])

    reply = exchanged(0)
    assert set(reply.column("target").to_pylist()) == {0, 1, 2}
    assert exchanged(0) == reply
    supersteps = one.plan.last_superstep
    for superstep in range(1, supersteps + 1):
        frames = reply.to_batches(max_chunksize=2)  # a record batch has frames for several workers
        reply = exchanged(superstep, frames)
        assert exchanged(superstep, frames) == reply
    reports = [read_report(payload) for payload in reply.column("payload").to_pylist()]
    assert sorted(report.worker for report in reports) == [0, 1, 2]
    assert sum(report.backlog for report in reports) == 0
    assert sum(counters.acked for report in reports for counters in report.counters.values()) >= 100


def test_a_worker_that_dies_ends_the_exchange_of_those_that_share_its_partition(stage):
    one = stage(word_count(100, "dies"), **{"topology.workers": 2})
    routes = {worker: one.route(worker) for worker in range(2)}
    requests = {w: Request(0, route.incarnation, 0, 0, 0, w) for w, route in routes.items()}
    os.kill(worker_processes("dies")[0].pid, signal.SIGKILL)
    with pytest.raises(WorkerLostError, match="was lost in attempt 0"):
        list(_exchange_side_by_side(routes, requests, ()))
    assert one.trouble.wait(PATIENCE_SECS)
    with pytest.raises(WorkerLostError):
        one.route(0)  # the attempt is over


def test_twins_wait_for_one_run(stage):
    one = stage(word_count(100_000, "twins"), **{"topology.workers": 2})
    routes = [one.route() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(exchange, routes))
    assert all(reply == replies[0] for reply in replies)


def test_large_replies_go_through_the_disk(stage):
    one = stage(word_count(100, "disk"), **{"topology.workers": 2, "stormspark.replies.memory.bytes": 0})
    first, retry = one.route(), one.route()
    reply = exchange(first)
    assert exchange(retry) == reply


def test_half_a_request_runs_nothing(stage):
    one = stage(word_count(100, "half"), **{"topology.workers": 2})
    half, whole = one.route(), one.route()
    half._connection.send(Request(0, half.incarnation, 0, 0, 0, 0))
    half.close()
    assert exchange(whole).num_rows > 0, "the spouts had not been asked before"


def test_everything_works_over_tcp(stage):
    one = stage(word_count(100, "over-tcp"), host="127.0.0.1", **{"topology.workers": 2})
    elsewhere = Endpoint("/on/another/host", one.nimbus.endpoint.tcp)
    route = one.route(nimbus=elsewhere)
    assert exchange(route).num_rows > 0
    wait_for(lambda: worker_processes("over-tcp"))
    assert one.nimbus.close_workers(30)


def test_a_killed_worker_ends_its_attempt_for_everybody(stage):
    one = stage(word_count(100, "killed"), **{"topology.workers": 2})
    route, other = one.route(0), one.route(1)
    exchange(route)
    victim = worker_processes("killed")[0]
    os.kill(victim.pid, signal.SIGKILL)
    with pytest.raises(WorkerLostError, match="worker 0 was lost in attempt 0"):
        exchange(route, batch=1)
    assert one.trouble.wait(PATIENCE_SECS)
    with pytest.raises(WorkerLostError, match="worker 0 was lost"):
        one.route(0)  # Spark's retry of the task
    with pytest.raises(WorkerLostError, match="worker 0 was lost"):
        one.route(1)

    one.nimbus.begin_attempt(1)
    again, survivor = one.route(0, number=1), one.route(1, number=1)
    assert (again.incarnation, survivor.incarnation) == (1, 0)
    exchange(survivor, batch=1, attempt=1)
    with pytest.raises(WorkerLostError, match="attempt 0 has ended, 1 runs"):
        exchange(other, batch=1)  # a straggler of the old attempt, with its connection still open
    with pytest.raises(WorkerLostError, match="attempt 0 has ended"):
        one.route(1)


def test_a_worker_that_can_not_start_says_why(stage):
    one = stage(broken(PrepareRaises()))
    with pytest.raises(WorkerLostError, match="no such table: words"):
        one.route()
    assert one.trouble.is_set()
    assert isinstance(one.nimbus.error, ComponentError)
    wait_for(lambda: not worker_processes("broken"))


def interpreter(folder, script):
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_that_does_not_come_up_says_why(stage, monkeypatch, tmp_path):
    one = stage(word_count(1, "no-interpreter"))
    monkeypatch.setattr(
        "sys.executable", interpreter(tmp_path, "echo 'no module named stormspark' >&2; exit 1")
    )
    with pytest.raises(LaunchError, match="no module named stormspark"):
        one.route()
    assert "worker 0 could not start:\nno module named stormspark" in str(one.nimbus.error)


@pytest.mark.parametrize("ended_by", ["kill -9 $$", "exit 1", "sleep 30"])
def test_a_worker_that_ends_without_a_word_before_its_hello_is_a_lost_worker(
    ended_by, stage, monkeypatch, tmp_path
):
    """What a kill -9 of a process that only just starts looks like: the next attempt starts it again."""
    one = stage(word_count(1, "silent"))
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", interpreter(tmp_path, ended_by))
        with pytest.raises(
            WorkerLostError, match=r"its process ended before nimbus knew it|did not come up within 1 s"
        ):
            one.route(start_timeout_secs=1.0)
    assert one.nimbus.error is None
    assert one.nimbus.lost_workers() == {0}
    one.nimbus.begin_attempt(1)
    again = one.route(number=1)
    assert again.incarnation == 1
    exchange(again, attempt=1)


def test_workers_go_with_nimbus(stage):
    one = stage(word_count(1, "orphans"))
    exchange(one.route())
    workers = list(worker_processes("orphans").values())
    one.nimbus.close()
    wait_until_gone(workers)
