"""What a summary says of a topology on Spark that stops while it works (B1, J15)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import AsyncBolt, Bolt, TopologyBuilder
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


class Ends(Bolt):
    """Acks each tuple."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        self.collector.ack(tup)


class Awaits(AsyncBolt):
    """Awaits something for ever for one tuple."""

    async def execute(self, tup: Any) -> None:
        await asyncio.sleep(3600 if tup["n"] == 0 else 0)


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


def test_the_acks_of_the_last_committed_batch_are_in_the_summary(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """C44: the spout hears of them when the topology stops."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(1_000_000))
    builder.set_bolt("ends", Ends(), 2).shuffle_grouping("numbers")
    conf = {"topology.workers": 2, "stormspark.exactly.once": True, EFFECTS: str(tmp_path)}
    running = start(builder.create_topology("acks-at-a-stop"), conf=conf)
    wait_for(lambda: read_effects(tmp_path, "numbers"), message="acks")
    running.stop()
    assert running.error is None
    counts = running.statistics().components["numbers"]
    heard = acked(read_effects(tmp_path, "numbers")).total()
    assert counts.acked == heard == counts.emitted - counts.pending


@pytest.mark.long  # the local engine has it, too
def test_a_coroutine_that_never_returns_is_in_the_summary(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """B1: with its line."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(10))
    builder.set_bolt("awaits", Awaits()).shuffle_grouping("numbers")
    running = start(builder.create_topology("coroutine-at-a-stop"), conf={EFFECTS: str(tmp_path)})
    wait_for(lambda: running.statistics().components["awaits"].acked == 9, message="acks")
    running.stop()
    assert running.error is None
    (call,) = running.statistics().components["awaits"].not_returned
    assert call.code == f"execute of awaits[0] ({__file__}:{Awaits.execute.__code__.co_firstlineno + 1})"
