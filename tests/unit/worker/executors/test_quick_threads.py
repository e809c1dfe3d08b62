"""Spouts whose calls return before the worker's thread looks again (A16, B1)."""

from __future__ import annotations

import time
from collections.abc import Mapping, MutableMapping
from typing import Any

import pytest

from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.api.state import StatefulComponent
from stormspark.worker.executors.spout_task import ThreadedSpoutTask
from tests.unit.worker.executors.runs import Told, running, until

TOTAL = 200


class Position(StatefulComponent, Spout):
    """Emits the numbers from 0 on, one per call, without message ids; its position is its state."""

    waits = True  # so it has a thread, and the bolt behind it has none

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.next = state.get("next", 0)
        self.state = state

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        time.sleep(0.001)
        if self.next < TOTAL:
            self.collector.emit((self.next,))
            self.next += 1

    def pre_save(self, checkpoint_id: int) -> None:
        self.state["next"] = self.next

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Tell(BasicBolt):
    def __init__(self, told: Told) -> None:
        self.told = told

    def execute(self, tup: Any, collector: Any) -> None:
        self.told(tup["n"])


@pytest.mark.slow
def test_a_quick_spout_fills_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """C44: a turn that begins and ends between two looks of the worker's thread does not end the batch's time for spouts."""
    ask = ThreadedSpoutTask.ask

    def ask_and_wait(task: Any, calls: int, deadline: float) -> bool:
        emitted = ask(task, calls, deadline)
        if (
            not emitted
        ):  # the worker's thread has found nothing new, and the call returns before it looks again
            until(lambda: not task._turn_is_open)
        return emitted

    monkeypatch.setattr(ThreadedSpoutTask, "ask", ask_and_wait)
    told = Told("quick")
    builder = TopologyBuilder()
    builder.set_spout("position", Position())
    builder.set_bolt("end", Tell(told)).shuffle_grouping("position")
    conf = {"stormspark.exactly.once": True, "topology.workers": 2, "stormspark.executor.threads": "auto"}
    with running(builder.create_topology("quick"), **conf) as local:
        until(lambda: len(told.all) == TOTAL)
        batches = local.statistics().batches
    assert sorted(told.all) == [(n,) for n in range(TOTAL)]
    assert batches < TOTAL / 8  # one call per batch would be TOTAL
