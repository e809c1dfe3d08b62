"""A kill waits for no coroutine, and no coroutine gets its last calls."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from stormspark import AsyncBolt, Topology, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from tests.unit.worker.executors import runs
from tests.unit.worker.executors.runs import Numbers, Told, running, until


class NeverReturns(AsyncBolt):
    """Waits for ever, once per tuple."""

    def __init__(self, told: Told) -> None:
        self.told = told

    async def execute(self, tup: Any) -> None:
        """Wait."""
        self.told("begins")
        await asyncio.sleep(3600)

    async def cleanup(self) -> None:
        """Tell."""
        self.told("cleanup")


def _topology(told: Told) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1], told))
    builder.set_bolt("waits", NeverReturns(told)).shuffle_grouping("numbers")
    return builder.create_topology("killed")


@pytest.mark.parametrize("exactly_once", [False, True], ids=["at least once", "exactly once"])
def test_a_kill_waits_neither_for_a_coroutine_nor_for_the_end_of_its_round(exactly_once: bool) -> None:
    """A stop after the kill, such as that of a `LocalCluster` which is left, does not bring the last calls back."""
    told = Told("a kill with coroutines")
    with running(_topology(told), **{"stormspark.exactly.once": exactly_once}) as topology:
        until(lambda: ("begins",) in told.all)
        killed_at = time.monotonic()
        topology.kill()
        topology.stop()
        took = time.monotonic() - killed_at
    assert told.all == [("begins",)]
    assert took < 2


def test_a_worker_that_is_cut_off_begins_no_last_call_of_a_coroutine() -> None:
    told = Told("no last calls")
    worker = Worker(plan_topology(_topology(told), {}), 0, side_by_side=True)
    worker.open()
    try:
        worker.cut_off()
        worker.close()
        heard = threading.Event()
        worker.services.event_loop().call(heard.set)
        assert heard.wait(runs._MOST_SECS)
        assert told.all == []
    finally:
        worker.abandon()
