"""How many cores a session offers, by its master, its settings, and the Spark executors that there are; Spark is played."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark import TopologyBuilder
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.spark import cores as module
from stormspark.spark import submit
from stormspark.spark import topology as topology_module
from stormspark.spark.cores import session_cores
from stormspark.spark.executors import Executor, Executors
from stormspark.testing import TestWordCounter, TestWordSpout


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(module, "time", clock)
    return clock


def offered(
    clock: Time,
    monkeypatch: pytest.MonkeyPatch,
    master: str,
    conf: dict[str, str],
    come: list[tuple[float, int]],
    wait_secs: float = 30.0,
) -> int:
    """The cores of a session on ``master``, to which Spark executors come: each at a time, with its number of slots."""
    session: Any = MagicMock()
    session.sparkContext.master = master
    session.sparkContext.getConf.return_value.getAll.return_value = list(conf.items())
    session.sparkContext.getConf.return_value.get = conf.get
    there = [(at, Executor(str(number), "host", slots, slots)) for number, (at, slots) in enumerate(come)]
    monkeypatch.setattr(Executors, "active", lambda _: [one for at, one in there if at <= clock.now])
    return session_cores(session, wait_secs)


DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}
MOST, LEAST = "spark.dynamicAllocation.maxExecutors", "spark.dynamicAllocation.minExecutors"


@pytest.mark.parametrize(
    ("master", "conf", "come", "cores"),
    [
        ("local[3,4]", {}, [], 3),
        ("local[4]", {"spark.task.cpus": "2"}, [], 2),
        ("local-cluster[2,2,1024]", {}, [], 4),
        ("yarn", {}, [], 2),  # Spark's defaults: two executors of one core each
        ("yarn", {"spark.executor.instances": "5", "spark.executor.cores": "4"}, [], 20),
        ("k8s://x", {"spark.executor.instances": "5", "spark.executor.cores": "4", "spark.task.cpus": "2"}, [], 10),
        ("yarn", {"spark.executor.instances": "5", "spark.executor.cores": "4"}, [(0, 4)], 20),  # the others come later
        ("yarn", DYNAMIC | {"spark.executor.cores": "4"}, [], 4),
        ("yarn", DYNAMIC | {"spark.executor.cores": "4", LEAST: "3"}, [], 12),
        ("yarn", DYNAMIC | {"spark.executor.cores": "4", LEAST: "3"}, [(0, 4)] * 5, 20),
        ("yarn", DYNAMIC | {"spark.executor.cores": "4", LEAST: "3", MOST: "2"}, [], 8),
        ("spark://x", DYNAMIC | {"spark.executor.cores": "2", LEAST: "2"}, [], 4),
        ("spark://x", DYNAMIC, [(0, 8)], 8),
    ],
)  # fmt: skip
def test_what_is_requested_is_known_without_waiting(
    clock: Time,
    monkeypatch: pytest.MonkeyPatch,
    master: str,
    conf: dict[str, str],
    come: list[tuple[float, int]],
    cores: int,
) -> None:
    assert offered(clock, monkeypatch, master, conf, come) == cores
    assert clock.now == 0


@pytest.mark.parametrize(
    ("conf", "come", "cores", "until"),
    [
        ({}, [(1, 8), (2.5, 8)], 16, 4.5),  # no more have come for two seconds
        ({"spark.cores.max": "1000"}, [(1, 8)], 8, 3),
        ({"spark.cores.max": "8", "spark.executor.cores": "4"}, [(1, 4), (3, 4)], 8, 3),
        ({"spark.cores.max": "8", "spark.executor.cores": "4"}, [(1, 4)], 4, 30),  # the other one never comes
        ({}, [], 1, 30),
    ],
)
def test_a_standalone_cluster_offers_what_has_registered(
    clock: Time,
    monkeypatch: pytest.MonkeyPatch,
    conf: dict[str, str],
    come: list[tuple[float, int]],
    cores: int,
    until: float,
) -> None:
    """It may have fewer cores than an application requests."""
    assert offered(clock, monkeypatch, "spark://x", conf, come) == cores
    assert clock.now == pytest.approx(until, abs=0.25)


def test_nobody_waits_who_does_not_want_to(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(clock, monkeypatch, "spark://x", {}, [(1, 8)], wait_secs=0) == 1
    assert clock.now == 0


def test_executors_that_do_not_come_are_reported_with_what_to_do(
    clock: Time, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    offered(clock, monkeypatch, "spark://x", {}, [])
    assert "the topology gets one worker; set topology.workers to have more" in caplog.text
    assert "stormspark.executors.wait.secs (30)" in caplog.text


class Submitted(NamedTuple):
    """What `submit` did: the sessions that it started (workers, master), how often it counted cores, and the plan that runs."""

    sessions: list[tuple[int, str | None]]
    counted: int
    plan: PhysicalPlan


Submit = Callable[..., Submitted]


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> Submit:
    """`submit` a topology of eight executors to a Spark that is played, whose session has three cores."""

    def run(spark: Any = None, *, planned: bool = False, **options: Any) -> Submitted:
        sessions: list[tuple[int, str | None]] = []
        count = MagicMock(return_value=3)

        def started(workers: int, conf: Any, *, master: str | None, topology: str) -> Any:
            sessions.append((workers, master))
            return MagicMock()

        builder = TopologyBuilder()
        builder.set_spout("words", TestWordSpout(), 4)
        builder.set_bolt("count", TestWordCounter(), 4).shuffle_grouping("words")
        topology: Any = builder.create_topology("eight")
        alive = SimpleNamespace(start=lambda _, begin, replaced=None: begin())
        for name, instead in {
            "local_session": started,
            "session_cores": count,
            "check_session": lambda session: session,
            "SparkTopology": lambda plan, *_: plan,
            "SparkSession": SimpleNamespace(getActiveSession=lambda: None),
            "SparkContext": SimpleNamespace(_active_spark_context=None),
            "_alive": alive,
        }.items():
            monkeypatch.setattr(topology_module, name, instead)
        plan: Any = submit(plan_topology(topology) if planned else topology, spark, **options)
        return Submitted(sessions, count.call_count, plan)

    return run


def test_a_session_that_is_started_has_the_cores_of_its_master(submitted: Submit) -> None:
    """It is started for as many workers as there will be, and is not asked."""
    run = submitted(master="local[5]")
    assert (run.sessions, run.counted, run.plan.workers) == ([(5, "local[5]")], 0, 5)


def test_a_session_without_a_master_has_the_cores_of_the_host(
    submitted: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stormspark.cores.host_cores", lambda: 6)
    run = submitted()
    assert (run.sessions, run.counted, run.plan.workers) == ([(6, None)], 0, 6)


def test_a_cluster_is_asked_once_it_runs(submitted: Submit) -> None:
    run = submitted(master="spark://host:7077")
    assert (run.sessions, run.counted, run.plan.workers) == ([(1, "spark://host:7077")], 1, 3)


def test_a_session_of_the_user_is_asked(submitted: Submit) -> None:
    run = submitted(MagicMock())
    assert (run.sessions, run.counted, run.plan.workers) == ([], 1, 3)


@pytest.mark.parametrize(
    "conf", [{"topology.workers": 2}, {"topology.max.spout.pending": 10}, {"nimbus.slots.perTopology": 1}]
)
def test_nobody_counts_cores_that_change_nothing(submitted: Submit, conf: dict[str, Any]) -> None:
    run = submitted(MagicMock(), conf=conf)
    assert (run.counted, run.plan.workers) == (0, conf.get("topology.workers", 1))


def test_a_plan_runs_as_it_is(submitted: Submit) -> None:
    run = submitted(MagicMock(), planned=True)
    assert (run.counted, run.plan.workers) == (0, 1)
