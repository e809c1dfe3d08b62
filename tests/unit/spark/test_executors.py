"""Which executors of an application count; Spark's list of them is played."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark import TopologyBuilder
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.spark.executors import Executors
from stormspark.testing import TestWordSpout


class Listed:
    """One in Spark's list, which has dead ones, too, if it is asked for those."""

    def __init__(self, name: str) -> None:
        self.name, self.there = name, True
        self.reason: str | None = None

    def id(self) -> str:
        return self.name

    def isActive(self) -> bool:  # noqa: N802 - Spark's
        return self.there

    def hostPort(self) -> str:  # noqa: N802 - Spark's
        return f"host-{self.name}:7077"

    def maxTasks(self) -> int:  # noqa: N802 - Spark's
        return 1

    def activeTasks(self) -> int:  # noqa: N802 - Spark's
        return 0

    def removeReason(self) -> Any:  # noqa: N802 - Spark's
        return SimpleNamespace(isDefined=lambda: self.reason is not None, get=lambda: self.reason)


@pytest.fixture
def listed() -> list[Listed]:
    return [Listed(name) for name in ("driver", "0", "1", "2")]


@pytest.fixture
def executors(listed: list[Listed]) -> Executors:
    return executors_of(listed)


DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}


def executors_of(listed: list[Listed], conf: Mapping[str, str] = DYNAMIC, master: str = "yarn") -> Executors:
    session: Any = MagicMock()
    session.sparkContext.getConf.return_value.getAll.return_value = [*conf.items()]
    session.sparkContext.master = master

    def executor_list(active: bool) -> Any:
        found = [one for one in listed if one.there or not active]
        return SimpleNamespace(size=lambda: len(found), apply=lambda number: found[number])

    session.sparkContext._jsc.sc.return_value.statusStore.return_value.executorList = executor_list
    return Executors(session)


def test_an_executor_that_idled_and_was_given_back_explains_no_failure(
    executors: Executors, listed: list[Listed]
) -> None:
    """A bolt raises in the batch in which dynamic allocation gives an executor back: ten of those end the topology, as ever."""
    for one in listed[1:]:
        one.there = False
        assert not executors.took_workers(set())
    assert executors.ever() == {"0": False, "1": False, "2": False}


def test_an_executor_that_goes_with_workers_explains_one_failure(
    executors: Executors, listed: list[Listed]
) -> None:
    assert not executors.took_workers({3}), "a worker died, and its executor is there"
    listed[2].there = False
    assert executors.took_workers({3})
    assert not executors.took_workers({3}), "that was an earlier attempt"


def test_an_executor_that_was_lost_before_the_topology_started_explains_no_failure(
    listed: list[Listed],
) -> None:
    """An application may have run for days: a worker that dies in the first failing batch did not go with that executor."""
    listed[1].there = False
    executors = executors_of(listed)
    assert not executors.took_workers({3})
    listed[2].there = False
    assert executors.took_workers({3})


def planned(workers: int = 2) -> PhysicalPlan:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), parallelism=workers)
    return plan_topology(builder.create_topology("demo"), {"topology.workers": workers})


@pytest.mark.parametrize(
    "reason",
    [
        "Container killed by YARN for exceeding physical memory limits. 1.5 GB of 1.4 GB physical memory used.",
        "The executor with id 1 exited with exit code 137(SIGKILL, possible container OOM).",
        "exit code: 137\n\t termination reason: OOMKilled",
        "Container from a bad node: container_1 on host: h. Exit status: 137. Diagnostics: Killed",
        "Container marked as failed. Possible causes: Unknown executor exit code (137) (died from signal 9?)",
        "Container killed on request. Exit code is 137",
    ],
)
def test_an_executor_whose_container_had_too_little_memory_names_the_setting(
    executors: Executors, listed: list[Listed], reason: str
) -> None:
    assert executors.why_lost(planned(), {3}) == ""
    listed[2].there, listed[2].reason = False, reason
    text = executors.why_lost(planned(), {3})
    assert text.startswith(f"; Spark has lost executor 1: {reason.rstrip('.')}. Its container ")
    assert "set spark.executor.memoryOverhead to 800m or more" in text
    assert executors.why_lost(planned(), {3}) == "", "that was an earlier attempt"


def test_another_end_of_an_executor_is_told_as_spark_tells_it(
    executors: Executors, listed: list[Listed]
) -> None:
    listed[1].there, listed[1].reason = False, "Remote RPC client disassociated"
    listed[2].there = False
    assert (
        executors.why_lost(planned(), {3}) == "; Spark has lost executor 0: Remote RPC client disassociated"
    )


def test_an_executor_that_was_given_back_is_not_told_of(executors: Executors, listed: list[Listed]) -> None:
    listed[1].there, listed[1].reason = False, "Executor killed by driver."
    assert executors.why_lost(planned(), set()) == ""


@pytest.mark.parametrize(
    "reason",
    [
        "The executor with id 1 exited with exit code 52(JVM OOM).",
        "Container from a bad node: container_1 on host: room-137.bloom.net. Exit status: 143",
        "The executor with id 1 exited with exit code 1370.",
        "Worker on Bloom-OOMPH lost",
    ],
)
def test_a_heap_that_was_too_small_and_names_of_hosts_are_no_lack_of_memory_beside_it(
    executors: Executors, listed: list[Listed], reason: str
) -> None:
    listed[2].there, listed[2].reason = False, reason
    assert executors.why_lost(planned(), {3}) == f"; Spark has lost executor 1: {reason.rstrip('.')}"


OVERHEAD = "spark.executor.memoryOverhead"
KILLED = "Container killed by YARN for exceeding physical memory limits"


@pytest.mark.parametrize(
    ("conf", "value"),
    [
        ({OVERHEAD: "500m"}, "800m or more"),
        ({OVERHEAD: "4g"}, "more than 4096m"),
        ({"spark.executor.minMemoryOverhead": "1g"}, "more than 1024m"),
    ],
)
def test_the_advice_is_never_to_set_what_is_there_already(
    listed: list[Listed], conf: dict[str, str], value: str
) -> None:
    executors = executors_of(listed, DYNAMIC | conf)
    listed[2].there, listed[2].reason = False, KILLED
    text = executors.why_lost(planned(), {3})
    assert f"set {OVERHEAD} to {value} (the plan needs " in text
    assert text.endswith(f"now it is {conf.get(OVERHEAD, 'not set')})")


@pytest.mark.parametrize("more", [{}, {"spark.task.cpus": "2", "spark.executor.cores": "8"}])
def test_the_advice_at_the_start_and_at_the_end_is_the_same(
    listed: list[Listed], more: dict[str, str]
) -> None:
    """With dynamic allocation, Spark has one executor at the start, and requests more when tasks wait."""
    conf = DYNAMIC | {"spark.dynamicAllocation.minExecutors": "1", "spark.executor.cores": "4"} | more
    plan = planned(32)
    (warning,) = executors_of(listed[:1], conf).shortfalls(plan)
    assert "for its 4 workers" in warning
    advice = "set " + warning.rpartition("; set ")[2]
    executors = executors_of(listed[:2], conf)
    listed[1].there, listed[1].reason = False, KILLED
    assert f"{advice} (" in executors.why_lost(plan, {3})


@pytest.mark.parametrize(
    ("master", "conf", "count"),
    [
        ("yarn", {}, 2),
        ("k8s://host", {"spark.executor.instances": "5"}, 5),
        ("local-cluster[3,1,1024]", {"spark.executor.instances": "5"}, 3),
        ("spark://host:7077", {}, None),
        ("spark://host:7077", {"spark.cores.max": "12"}, None),
        ("spark://host:7077", {"spark.cores.max": "12", "spark.executor.cores": "5"}, 2),
        ("yarn", DYNAMIC, 0),
        ("yarn", DYNAMIC | {"spark.dynamicAllocation.minExecutors": "2", "spark.executor.instances": "3"}, 3),
        ("local[4]", {}, None),
    ],
)
def test_the_number_of_executors_that_the_application_requests_at_its_start(
    listed: list[Listed], master: str, conf: dict[str, str], count: int | None
) -> None:
    assert executors_of(listed, conf, master).to_come() == count
