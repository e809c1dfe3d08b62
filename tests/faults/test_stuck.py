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
from tests.faults.stuck_components import Hangs, Spins
from tests.waiting import PATIENCE_SECS, wait_for, wait_until_gone, wait_until_idle, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults]


def spinning(bolt: Spins, folder: Path, *, on_workers_thread: bool) -> tuple[Any, dict[str, Any]]:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20, replays=1000))
    builder.set_bolt("spins", bolt, 2 if on_workers_thread else 4).shuffle_grouping("numbers")
    conf = {
        "topology.workers": 2,
        EFFECTS: str(folder),
        "stormspark.worker.lease.secs": 6,
        "stormspark.stuck.warning.secs": 1,
        "stormspark.stuck.timeout.secs": 3,
        "stormspark.executor.threads": "never" if on_workers_thread else "always",
    }
    return builder.create_topology(f"spinning-{bolt.times}-{on_workers_thread}"), conf


def test_a_bolt_in_an_endless_loop_costs_its_worker_and_no_message(
    start: Callable[..., SparkTopology], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B1, W6, E15: the driver's log says whose code it was; the batch is run again."""
    topology, conf = spinning(Spins(1), tmp_path, on_workers_thread=True)
    with caplog.at_level(logging.WARNING):
        running = start(topology, conf=conf)
        wait_until_idle(running)
        alive = worker_processes(topology.name)
    running.stop()
    assert running.error is None and len(alive) == 2
    assert "execute of spins[" in caplog.text and "had not returned after" in caplog.text
    assert set(acked(read_effects(tmp_path, "numbers"))) == set(range(20))


def test_a_bolt_that_never_gets_out_of_its_loop_stops_the_topology_with_the_reason(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """W6, W22: after stormspark.max.attempts; nothing is left over."""
    topology, conf = spinning(Spins(1000), tmp_path, on_workers_thread=True)
    running = start(topology, conf=conf | {"stormspark.max.attempts": 2})
    assert running.wait(PATIENCE_SECS)
    assert isinstance(running.error, WorkerLostError)
    assert "failed 2 times" in str(running.error) and "execute of spins[" in str(running.error)
    wait_until_gone(list(worker_processes(topology.name).values()))


@pytest.mark.long  # CI has the call on the worker's own thread
def test_a_call_that_never_returns_on_a_thread_costs_no_worker_and_no_message(
    start: Callable[..., SparkTopology], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B1, E10, W6: as in Storm, its executor stands still alone; its tuple and those behind it time out and are replayed."""
    topology, conf = spinning(Hangs(), tmp_path, on_workers_thread=False)
    with caplog.at_level(logging.WARNING):
        running = start(topology, conf=conf | {"topology.message.timeout.secs": 2})
        wait_for(lambda: "only its own executor in worker" in caplog.text, message="the warning")
        before = worker_processes(topology.name)
        wait_for(
            lambda: set(acked(read_effects(tmp_path, "numbers"))) == set(range(20)),
            message=lambda: f"all acks: {sorted(acked(read_effects(tmp_path, 'numbers')))}",
        )
        assert worker_processes(topology.name) == before
    running.stop()
    assert running.error is None
    assert "execute of spins[" in caplog.text
    assert "was lost" not in caplog.text
