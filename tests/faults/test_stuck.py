"""User code that never returns is found, named, and its worker started again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.errors import WorkerLostError
from stormspark.spark import SparkTopology
from tests.conformance.components import EFFECTS, Numbers, acked, read_effects
from tests.faults.stuck_components import Spins
from tests.waiting import PATIENCE_SECS, wait_until_gone, wait_until_idle, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults]


def spinning(times: int, folder: Path, *, on_workers_thread: bool = False) -> tuple[Any, dict[str, Any]]:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20, replays=5))
    builder.set_bolt("spins", Spins(times), 2).shuffle_grouping("numbers")
    conf = {
        "topology.workers": 2,
        EFFECTS: str(folder),
        "stormspark.worker.lease.secs": 6,
        "stormspark.stuck.warning.secs": 1,
        "stormspark.stuck.timeout.secs": 3,
    }
    if (
        on_workers_thread
    ):  # On a thread of its executor's own a call holds up no batch, so no attempt at one fails.
        conf["stormspark.executor.threads"] = "never"
    return builder.create_topology(f"spinning-{times}"), conf


def test_a_bolt_in_an_endless_loop_costs_its_worker_and_no_message(
    start: Callable[..., SparkTopology], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B1, W6, E15: the driver's log says whose code it was; the batch is run again."""
    topology, conf = spinning(1, tmp_path)
    with caplog.at_level(logging.WARNING):
        running = start(topology, conf=conf)
        wait_until_idle(running)
        alive = worker_processes(topology.name)
    running.stop()
    assert running.error is None and len(alive) == 2
    assert "the code of spins[" in caplog.text and "had not returned after" in caplog.text
    assert set(acked(read_effects(tmp_path, "numbers"))) == set(range(20))


def test_a_bolt_that_never_gets_out_of_its_loop_stops_the_topology_with_the_reason(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """W6, W22: after stormspark.max.attempts; nothing is left over."""
    topology, conf = spinning(1000, tmp_path, on_workers_thread=True)
    running = start(topology, conf=conf | {"stormspark.max.attempts": 2})
    assert running.wait(PATIENCE_SECS)
    assert isinstance(running.error, WorkerLostError)
    assert "failed 2 times" in str(running.error) and "the code of spins[" in str(running.error)
    wait_until_gone(list(worker_processes(topology.name).values()))
