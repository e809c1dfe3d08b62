"""All tasks of a worker share one pool of threads, also if several executors ask for it at once (A28)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.worker import services
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running


class Slow(ThreadPoolExecutor):
    """A pool that takes its time to begin."""

    def __init__(self, *args: Any) -> None:
        time.sleep(0.05)
        super().__init__(*args)


class Asks(Repeat):
    """Asks for the pool in ``prepare``."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Ask."""
        super().prepare(conf, context, collector)
        self.told(id(context.shared_executor))


def test_it_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "SharedPool", Slow)
    told = Told("pools")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("verdicts of pools")))
    builder.set_bolt("asks", Asks(told), 5).shuffle_grouping("numbers")
    with running(builder.create_topology("pools")):
        assert len(told.all) == 5
        assert len(set(told.all)) == 1
