"""Calls that are under way when a topology on Spark stops (B1, J15)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Bolt, TopologyBuilder
from stormspark.spark import SparkTopology
from tests.conformance.components import EFFECTS, Effects, Numbers, acked, read_effects
from tests.waiting import wait_for

pytestmark = pytest.mark.spark
EXECUTORS = 6


class Slow(Bolt):
    """Takes two seconds per tuple."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.effects = collector, Effects(conf, context)

    def execute(self, tup: Any) -> None:
        self.effects.write("begins", tup["n"])
        time.sleep(2)
        self.collector.ack(tup)
        self.effects.write("ends", tup["n"])


@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.long)])
def test_what_they_ack_is_in_the_summary_and_the_spout_hears_of_it(
    start: Callable[..., SparkTopology], tmp_path: Path, workers: int
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(1000))
    builder.set_bolt("slow", Slow(), EXECUTORS).shuffle_grouping("numbers")
    conf = {"topology.workers": workers, EFFECTS: str(tmp_path)}
    running = start(builder.create_topology("calls-at-a-stop"), conf=conf)

    def calls(what: str) -> Counter[int]:
        return Counter(number for kind, number in read_effects(tmp_path, "slow") if kind == what)

    wait_for(lambda: len(calls("begins")) >= EXECUTORS, message="calls")
    begun = time.monotonic()
    running.stop()
    assert running.error is None and time.monotonic() - begun < 60, "it has waited for more than its calls"
    assert calls("begins") == calls("ends")
    counts = running.statistics().components
    assert counts["slow"].executed == counts["slow"].acked == calls("ends").total()
    assert counts["numbers"].acked == calls("ends").total()
    assert acked(read_effects(tmp_path, "numbers")) == calls("ends")
