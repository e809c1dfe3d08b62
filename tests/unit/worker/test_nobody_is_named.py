"""While the worker's thread waits for others, it is in nobody's code (B1)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from stormspark import AsyncBolt, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from tests.unit.worker.executors.runs import Numbers, Repeat, Told


class Coroutines(AsyncBolt):
    """Waits."""

    async def execute(self, tup: Any) -> None:
        await asyncio.sleep(0.02)


class OnThread(Repeat):
    """Waits on a thread of its own."""

    waits = True

    def execute(self, tup: Any) -> None:
        time.sleep(0.02)
        super().execute(tup)


class OnWorkersThread(Numbers):
    """Never waits."""

    waits = False


@pytest.mark.parametrize("bolt", [Coroutines(), OnThread()], ids=["async bolt", "bolt on a thread"])
def test_an_innocent_task_is_not_said_to_run_while_the_worker_waits(
    bolt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder, told = TopologyBuilder(), Told("innocent")
    builder.set_spout("numbers", OnWorkersThread([1], told))
    builder.set_bolt("waits", bolt).shuffle_grouping("numbers")
    worker = Worker(plan_topology(builder.create_topology("innocent"), {}), 0, side_by_side=True)
    turns, waited = worker.turns, []
    for part in (turns._outside, turns._executors):
        wait = part.wait

        def noting(until: float, wait: Any = wait) -> bool:
            waited.append(worker.call.at)
            return bool(wait(until))

        monkeypatch.setattr(part, "wait", noting)
    worker.open()
    try:
        waited.clear()
        while ("ack", "1") not in told.all:
            turns.ask_spouts(worker.clock() + 1, worker.wiring.spouts)
            turns.work(worker.clock() + 1, worker.clock() + 1)
        assert waited and set(waited) == {None}
    finally:
        worker.close()
