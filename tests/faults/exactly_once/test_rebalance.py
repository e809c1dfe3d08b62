"""A topology under load is rebalanced again and again, and killed in the middle: all has happened once."""

from __future__ import annotations

import itertools
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from stormspark.errors import StormsparkError
from stormspark.operations.client import Client
from tests.faults.exactly_once.test_exactly_once import ALL, KILLS, Run, running
from tests.waiting import entry_of_driver, wait_for, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]

#: Workers, and executors by component.
LAYOUTS: list[tuple[int, dict[str, int]]] = [
    (3, {"choose": 1}),
    (1, {"total": 1, "numbers": 1}),
    (2, {"choose": 2, "total": 2, "numbers": 2}),
]


def summary(run: Run) -> dict[str, Any] | None:
    """Return what the driver says of the topology; None if there is no driver that answers."""
    assert run.process is not None
    try:
        return Client(entry_of_driver(run.name, run.process.pid)).summary()
    except StormsparkError:
        return None


def begin_to_rebalance(run: Run, workers: int, executors: dict[str, int]) -> None:
    """Ask until a driver has taken it up. It may be in the middle of another rebalance, or start just now."""

    def taken_up() -> bool:
        if not run.lives():
            return False
        assert run.process is not None
        try:
            options = {"numWorkers": workers, "executors": executors}
            Client(entry_of_driver(run.name, run.process.pid)).do(
                "rebalance/0", {"rebalanceOptions": options}
            )
        except StormsparkError:  # it is REBALANCING, or there is no driver that answers
            return False
        return True

    wait_for(taken_up, message=lambda: run.output)


def is_laid_out(run: Run, workers: int) -> bool:
    found = summary(run)
    return found is not None and (found["workersTotal"], found["status"]) == (workers, "ACTIVE")


def test_rebalanced_under_load_and_killed_in_the_middle(tmp_path: Path) -> None:
    """J3, C35, C44: workers grow and shrink; then a worker, and the driver, are killed while the layouts change."""
    with running(tmp_path, 2) as run:
        for workers, executors in LAYOUTS[: None if ALL else 2]:
            begin_to_rebalance(run, workers, executors)
            wait_for(lambda workers=workers: is_laid_out(run, workers), message=lambda: run.output)  # type: ignore[misc]
            assert len(worker_processes(run.name)) == workers
            run.goes_on()
        assert run.drivers == 1
        begin_to_rebalance(run, 3, {})
        for process in worker_processes(run.name).values():
            process.kill()
            break
        run.goes_on()
        begin_to_rebalance(run, 2, {})
        assert run.process is not None
        run.process.kill()
        run.goes_on()
        run.end()
        print(f"{run.drivers} drivers, {run.check():,} numbers")


@pytest.mark.skipif(
    not ALL, reason="in the middle of one rebalance is enough; `make soak-exactly-once` has more"
)
def test_killed_at_random_moments_of_a_rebalance(tmp_path: Path) -> None:
    choice = random.Random(int(os.environ.get("TEST_SEED", "7")))
    layouts = itertools.cycle(LAYOUTS)
    with running(tmp_path, 2) as run:
        for kill in range(KILLS):
            begin_to_rebalance(run, *next(layouts))
            time.sleep(choice.uniform(0, 4))
            if kill % 2:
                assert run.process is not None
                run.process.kill()
                run.process.wait()
            elif alive := list(worker_processes(run.name).values()):
                choice.choice(alive).kill()
            run.goes_on()
        run.end()
        print(f"{run.drivers} drivers, {run.check():,} numbers")
