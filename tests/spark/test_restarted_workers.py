"""Workers that a command restarts: exactly-once state counts on, and levels of loggers reach those that come later (J6, J22)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import stormspark
from stormspark.operations.client import Client
from stormspark.spark import SparkTopology
from tests.spark.test_rebalance import executed
from tests.spark.test_state import BY_KEYS
from tests.spark.test_state import topology as sums_by_key
from tests.waiting import entry_of_driver, wait_for, wait_until_idle, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.long]


def are_gone(running: SparkTopology, before: set[int], number: int) -> bool:
    """Whether so many of the worker processes before are there no more."""
    return len(before - {place.pid for place in running.worker_places()}) >= number


def test_each_number_counts_once_whatever_is_restarted(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    n = 20_000
    conf = {"test.effects": str(tmp_path), "topology.workers": 2, "stormspark.max.attempts": 2}
    running = start(sums_by_key(n, 2, **BY_KEYS), checkpoint=tmp_path / "checkpoint", conf=conf)
    client = Client(entry_of_driver(running.name, os.getpid()))
    for action in ("restart/0", "restart", "restart/1", "restart"):  # more than stormspark.max.attempts
        so_far = executed(running, "sums")
        wait_for(lambda so_far=so_far: executed(running, "sums") > so_far)  # type: ignore[misc]
        before = {place.pid for place in running.worker_places()}
        answer = client.do(action)
        wait_for(partial(are_gone, running, before, len(answer["workers"])))
    wait_until_idle(running)
    running.stop()
    assert running.error is None
    rows = stormspark.state(tmp_path / "checkpoint", "sums").to_dict("records")
    assert {row["key"]: row["value"] for row in rows} == dict.fromkeys(range(10), n // 10)


def test_levels_of_loggers_are_those_of_workers_that_come_later(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    conf = {
        "test.effects": str(tmp_path),
        "topology.workers": 2,
        "stormspark.log.dir": str(tmp_path / "logs"),
    }
    running = start(sums_by_key(40_000, 2, **BY_KEYS), checkpoint=tmp_path / "checkpoint", conf=conf)
    wait_for(lambda: executed(running, "sums") > 0)
    client = Client(entry_of_driver(running.name, os.getpid()))
    levels = {"stormspark.worker": {"target_level": "DEBUG", "timeout": 0}}
    client.do("logconfig", {"namedLoggerLevels": levels})
    assert running._now.nimbus._orders.log_levels == (("stormspark.worker", 10),)
    running.rebalance(workers=3)
    assert len(worker_processes("sums")) == 3
    assert running._now.nimbus._orders.log_levels == (("stormspark.worker", 10),)
    running.kill()
