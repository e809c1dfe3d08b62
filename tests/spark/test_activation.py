"""Activation, and user code that does not return, on Spark."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.spark import SparkTopology
from tests.conformance.components import EFFECTS, Numbers, Record, read_effects
from tests.waiting import wait_for, wait_for_acks, wait_for_batches, wait_until_idle

pytestmark = pytest.mark.spark


class Sleeps(Spout):
    """The first next_tuple blocks for a while, then it emits one tuple."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.done = collector, False

    def next_tuple(self) -> None:
        if not self.done:
            time.sleep(self.seconds)
            self.done = True
            self.collector.emit((1,), message_id=1)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


def test_a_topology_submitted_inactive_waits_and_can_be_activated_and_deactivated(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """B2, B13, J4: workers that start later obey too."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(50), parallelism=2)
    builder.set_bolt("record", Record(), 2).shuffle_grouping("numbers")
    topology = start(
        builder.create_topology("inactive"),
        conf={"topology.workers": 2, EFFECTS: str(tmp_path)},
        active=False,
    )
    wait_for_batches(topology, 3)
    assert topology.statistics().total("emitted") == 0
    topology.activate()
    wait_for_acks(topology, "numbers", 50)
    wait_until_idle(topology)
    topology.deactivate()
    wait_for(lambda: ["deactivate"] in read_effects(tmp_path, "numbers"), message="deactivate")
    topology.stop()
    assert sum(e == ["close"] for e in read_effects(tmp_path, "numbers")) == 2


def test_a_spout_that_blocks_is_named_and_loses_nothing(
    start: Callable[..., SparkTopology], caplog: pytest.LogCaptureFixture
) -> None:
    """B1, W6, A16: the driver's log says who waits, and for how long. Nobody else does."""
    builder = TopologyBuilder()
    builder.set_spout("sleepy", Sleeps(6))
    builder.set_bolt("record", Numb()).shuffle_grouping("sleepy")
    with caplog.at_level(logging.WARNING):
        topology = start(
            builder.create_topology("blocked"),
            conf={
                "topology.workers": 2,
                "stormspark.stuck.warning.secs": 2,
                "stormspark.worker.lease.secs": 6,
            },
        )
        warning = re.compile(r"next_tuple of sleepy\[0\] \(.*test_activation.py:\d+\) has not returned for")
        wait_for(lambda: warning.search(caplog.text), message="the warning")
        assert "only its own executor in worker" in caplog.text
        wait_for_acks(topology, "sleepy", 1)
    topology.stop()
    assert topology.error is None


class Numb(Record):
    """Records nothing."""

    def prepare(self, conf: Any, context: Any) -> None:
        pass

    def execute(self, tup: Any, collector: Any) -> None:
        pass

    def cleanup(self) -> None:
        pass
