"""Executors that come and go: late, killed, decommissioned, idle, slow. State stays as if there were one that never ends."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.exactly_once.test_exactly_once import Run, running
from tests.faults.standalone import standalone
from tests.waiting import executor_processes, wait_for, worker_processes

#: A worker stands still for so long, and so often at most.
_SLOW_SECS, _TRIES = 3.0, 10

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]


def executors_of_workers(run: Run) -> Counter[str]:
    """How many workers live beside each executor."""
    return Counter(
        process.environ()["SPARK_EXECUTOR_DIRS"] for process in worker_processes(run.name).values()
    )


def with_settings(**settings: object) -> Callable[[Run], None]:
    def prepare(run: Run) -> None:
        run.settings = {name.replace("__", "."): value for name, value in settings.items()}

    return prepare


@pytest.mark.long  # two workers on two executors are in tests/spark/test_network.py
@pytest.mark.parametrize(("workers", "even"), [(3, [1, 2]), (4, [2, 2])])
def test_workers_live_evenly_on_executors(tmp_path: Path, workers: int, even: list[int]) -> None:
    """J23: each executor has its share, however many slots it has and whichever registered first."""
    # However long a busy machine takes for the second executor, and for Python beside it.
    settings = {"stormspark__executors__wait__secs": 300, "stormspark__worker__start__timeout__secs": 300}
    with running(tmp_path, workers, "local-cluster[2,3,1024]", with_settings(**settings)) as run:
        assert sorted(executors_of_workers(run).values()) == even
        run.end()
        assert run.drivers == 1
        run.check()


@pytest.mark.long
def test_executors_that_come_late_are_killed_and_decommissioned(tmp_path: Path) -> None:
    """C35, J23: a standalone cluster whose second host joins later, whose first executor is killed, whose second host is taken
    away; nothing is lost, nothing comes twice, and workers that start again are placed evenly.
    """
    settings = {
        "spark__executor__memory": "600m",
        "spark__decommission__enabled": "true",
        "stormspark__max__attempts": 3,
    }
    with standalone(tmp_path / "cluster") as cluster:
        first = cluster.add_worker("first")
        with running(_folder(tmp_path), 2, cluster.url, with_settings(**settings)) as run:
            assert sorted(executors_of_workers(run).values()) == [2], "there is one executor"
            second = cluster.add_worker("second")
            wait_for(lambda: executor_processes(second), message="the second executor")
            run.goes_on(2)
            executor_processes(first)[0].kill()
            run.goes_on(2)
            wait_for(
                lambda: sorted(executors_of_workers(run).values()) == [1, 1], message="an even placement"
            )
            third = cluster.add_worker("third")
            wait_for(lambda: executor_processes(third), message="the third executor")
            cluster.decommission(second)
            wait_for(
                lambda: not executor_processes(second),
                message=lambda: f"the end of the second host:\n{cluster.output('second')[-2000:]}",
            )
            run.goes_on(2)
            assert len(worker_processes(run.name)) == 2
            run.end()
            assert run.drivers == 1
            print(f"{run.check():,} numbers")


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.mark.long
def test_dynamic_allocation_leaves_executors_with_workers_alone(tmp_path: Path) -> None:
    """J23: batches are six seconds apart, and executors that idle for a second are given back; no worker is."""
    dynamic = "spark__dynamicAllocation__"
    settings = {
        f"{dynamic}enabled": "true",
        f"{dynamic}initialExecutors": "1",
        f"{dynamic}maxExecutors": "3",
        f"{dynamic}executorIdleTimeout": "1s",
        f"{dynamic}shuffleTracking__timeout": "1s",
        f"{dynamic}schedulerBacklogTimeout": "1s",
        "stormspark__trigger__interval__ms": 6000,
    }
    with running(tmp_path, 2, "local-cluster[3,1,1024]", with_settings(**settings)) as run:
        before = {worker: process.pid for worker, process in worker_processes(run.name).items()}
        assert sorted(executors_of_workers(run).values()) == [1, 1], (
            "it was given two executors, for two workers"
        )
        run.goes_on(3)
        assert {worker: process.pid for worker, process in worker_processes(run.name).items()} == before
        run.end()
        assert run.drivers == 1
        run.check()


@pytest.mark.long
def test_speculative_twins_of_slow_tasks_change_nothing(tmp_path: Path) -> None:
    """A worker stands still for some seconds, again and again, so that its tasks are run a second time elsewhere."""
    settings = {
        "spark__executor__memory": "600m",
        "stormspark__worker__lease__secs": 300,
        "spark__speculation": "true",
        "spark__speculation__interval": "100ms",
        "spark__speculation__multiplier": "1.1",
        "spark__speculation__quantile": "0.5",
        "spark__speculation__minTaskRuntime": "100ms",
        "spark__eventLog__enabled": "true",
        "spark__eventLog__rolling__enabled": "false",
        "spark__eventLog__compress": "false",
        "spark__eventLog__dir": (tmp_path / "events").as_uri(),
    }
    (tmp_path / "events").mkdir()
    with standalone(tmp_path / "cluster") as cluster:
        for host in ("127.0.0.1", "127.0.0.2"):  # a twin is never on its own host
            cluster.add_worker(host, 2, host)
        with running(_folder(tmp_path), 2, cluster.url, with_settings(**settings)) as run:
            for _ in range(_TRIES):  # Spark writes down what it has started when the stage ends
                slow = worker_processes(run.name)[1]
                slow.suspend()
                time.sleep(_SLOW_SECS)
                slow.resume()
                run.goes_on(2)
                if _twins(tmp_path):
                    break
            run.end()
            assert run.drivers == 1
            assert _twins(tmp_path), "Spark has run no task twice"
            print(f"{_twins(tmp_path)} twins, {run.check():,} numbers")


def _twins(folder: Path) -> int:
    """Tasks that Spark has started a second time, beside the first."""
    found = 0
    for file in (folder / "events").rglob("*"):
        if file.is_file():
            for line in file.read_text(errors="replace").splitlines():
                if '"SparkListenerTaskStart"' in line and line.endswith("}"):
                    found += json.loads(line)["Task Info"]["Speculative"]
    return found
