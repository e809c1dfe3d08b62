"""Tuples that a bolt keeps over the end of their batch, where batches are transactions."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Bolt, TopologyBuilder
from stormspark.spark import SparkTopology
from tests.repeatable_spouts import NumbersFromState
from tests.spark.test_durable_acker import Held
from tests.waiting import wait_for, wait_for_batches, wait_until_idle, worker_processes
from tests.whole_lines import whole_lines

pytestmark = [pytest.mark.spark, pytest.mark.faults]
FOLDER = "test.folder"
NUMBERS = 40


def test_rows_come_again_whoever_ends_until_they_are_acked(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """C39, E15: after a stop in order, a kill of all, and a worker's end; what was acked does not."""
    held = Held(start, tmp_path)
    once: dict[str, Any] = {"stormspark_exactly_once": True}
    held.start(**once).stop()
    held.start(times=2, **once).kill()
    running = held.start(times=3, **once)
    os.kill(worker_processes("held")[0].pid, signal.SIGKILL)
    held.wait_for(lambda _: held.replayed(4))
    (tmp_path / "go").touch()
    wait_until_idle(running)
    running.stop()
    assert running.error is None
    before = held.seen()
    running = start(
        held.topology,
        checkpoint=held.checkpoint,
        conf={"topology.workers": 3, FOLDER: str(tmp_path), "stormspark.exactly.once": True},
    )
    wait_for_batches(running, 3)
    running.stop()
    assert held.seen() == before


class Numbers(NumbersFromState):
    def next_tuple(self) -> None:
        if self.n < NUMBERS:
            self.emit_next()


class Slow(Bolt):
    """Acks the oldest tuple that it keeps every ten milliseconds."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.kept = collector, []
        self.file = Path(conf[FOLDER], "acked")
        context.set_timer(0.01, self.ack_one)

    def execute(self, tup: Any) -> None:
        self.kept.append(tup)

    def ack_one(self) -> None:
        if self.kept:
            tup = self.kept.pop(0)
            with self.file.open("a") as file:
                file.write(f"{tup['n']}\n")
            self.collector.ack(tup)


def test_a_stop_waits_for_what_nobody_could_emit_again(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """B13, C37: a spout of one's own whose position is committed."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("slow", Slow()).shuffle_grouping("numbers")
    running = start(
        builder.create_topology("waits"),
        checkpoint=tmp_path / "checkpoint",
        conf={"topology.workers": 2, FOLDER: str(tmp_path), "topology.message.timeout.secs": 300},
    )
    wait_for(lambda: (tmp_path / "acked").exists() and running.statistics().batches > 2)
    begun = time.monotonic()
    running.stop()
    assert running.error is None and time.monotonic() - begun < 250
    assert sorted(map(int, whole_lines(tmp_path / "acked"))) == list(range(NUMBERS))
