"""kill -9 of a worker in which many calls wait: what they were at work on comes again (E15, A16)."""

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
from tests.conformance.components import EFFECTS, Effects, Numbers, acked, read_effects
from tests.waiting import wait_for, wait_until_idle, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults]

TOTAL, EXECUTORS, SECS_EACH = 1200, 40, 0.5


class Waits(Bolt):
    """Writes down when it begins and when it ends with a tuple, and waits in between."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.effects = collector, Effects(conf, context)

    def execute(self, tup: Any) -> None:
        self.effects.write("begins", tup[0], os.getpid())
        time.sleep(SECS_EACH)
        self.effects.write("ends", tup[0])
        self.collector.ack(tup)


def test_nothing_is_lost_with_twenty_calls_under_way(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """E15, E16, A16: the other worker's calls go on, and each message is acked once and executed at least once."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(TOTAL, replays=10))
    builder.set_bolt("waits", Waits(), EXECUTORS).shuffle_grouping("numbers")
    # Otherwise all tuples stay in the worker of the spout, until that has too many (D6).
    conf = {
        "topology.workers": 2,
        "topology.disable.loadaware.messaging": True,
        EFFECTS: str(tmp_path),
    }
    running = start(builder.create_topology("calls-under-way"), conf=conf)

    def under_way(pid: int) -> set[int]:
        effects = read_effects(tmp_path, "waits")
        ended = {number for what, number, *_ in effects if what == "ends"}
        return {number for what, number, *of in effects if what == "begins" and of == [pid]} - ended

    try:
        wait_for(lambda: len(read_effects(tmp_path, "waits")) > EXECUTORS, message="calls in both workers")
        # The worker without the spout, so that the spout lives on and replays what fails.
        numbers = next(task.worker for task in running.plan.tasks.values() if task.component == "numbers")
        victim = worker_processes("calls-under-way")[1 - numbers].pid
        wait_for(lambda: len(under_way(victim)) >= EXECUTORS // 4, message="calls under way")
        lost = under_way(victim)
        os.kill(victim, signal.SIGKILL)
        wait_until_idle(running)
    finally:
        running.stop()
    assert running.error is None
    effects = read_effects(tmp_path, "waits")
    assert {number for what, number, *_ in effects if what == "ends"} == set(range(TOTAL))
    again = [number for what, number, *_ in effects if what == "begins"]
    assert lost and any(again.count(number) > 1 for number in lost)
    assert acked(read_effects(tmp_path, "numbers")) == dict.fromkeys(range(TOTAL), 1)
