"""A tuple that goes round between workers for ever, on Spark."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from stormspark import TopologyBuilder
from tests.conformance.components import EFFECTS, Numbers, Record, read_effects
from tests.conformance.cycle_components import Forward, Token
from tests.waiting import wait_for, wait_for_batches, worker_processes

pytestmark = pytest.mark.spark


@pytest.mark.long  # the local engine has it, too
def test_an_endless_token_stops_nothing(start, tmp_path):
    """A15, B13: spouts hear their acks, batches stay short, it is deactivated, activated and stopped in a moment."""
    builder = TopologyBuilder()
    builder.set_spout("token", Token(reliable=True))
    builder.set_bolt("forward", Forward(), 3).shuffle_grouping("token").shuffle_grouping("forward")
    builder.set_spout("numbers", Numbers(200), 2)
    builder.set_bolt("record", Record(), 2).shuffle_grouping("numbers")
    conf = {"topology.workers": 2, "topology.enable.message.timeouts": False, EFFECTS: str(tmp_path)}
    running = start(builder.create_topology("endless"), conf=conf)

    def forwarded():
        return running.statistics().components["forward"].executed

    wait_for(lambda: len(read_effects(tmp_path, "numbers")) >= 200, message="all acks")
    assert Counter(n for _, n in read_effects(tmp_path, "numbers")) == Counter(range(200))
    before = forwarded()

    def four_batches() -> float:
        began = time.monotonic()
        wait_for_batches(running, 4)
        return time.monotonic() - began

    # A batch has a target of 1 s; a machine that gives its time to others makes it longer, now and then.
    wait_for(lambda: four_batches() < 4 * 5, message="batches that end soon")
    assert forwarded() >= before + 4
    running.deactivate()
    wait_for(lambda: read_effects(tmp_path, "numbers").count(["deactivate"]) == 2)
    before = forwarded()
    running.activate()
    wait_for_batches(running, 2)
    assert forwarded() > before
    statistics = running.statistics()
    assert (statistics.total("pending"), statistics.backlog) == (1, 1)
    began = time.monotonic()
    running.stop()
    assert time.monotonic() - began < 120, "it waits for no end of the loop"
    assert running.error is None
    assert read_effects(tmp_path, "numbers").count(["close"]) == 2
    wait_for(lambda: not worker_processes("endless"))
