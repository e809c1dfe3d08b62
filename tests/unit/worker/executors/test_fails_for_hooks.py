"""Task hooks hear of failed tuples on the executor's thread, and what waits for them is bounded (J21, X51)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import BasicBolt, TaskHook, TopologyBuilder
from tests.unit.worker.executors.runs import Numbers, Told, running, tasks, until

_begun, _released = threading.Event(), threading.Event()
MOST, NUMBERS = 10, 500


class TellsFails(TaskHook):
    """Tells each fail, and on which thread it hears of it."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def bolt_fail(self, info: Any) -> None:
        """Tell."""
        self.told(info.tuple[0], threading.current_thread().name)


class Waits(BasicBolt):
    """Waits until the test says so."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def prepare(self, conf: Any, context: Any) -> None:
        """Add the hook."""
        context.add_task_hook(TellsFails(self.told))

    def execute(self, tup: Any, collector: Any) -> None:
        """Wait."""
        _begun.set()
        _released.wait(60)


class AfterTheFirst(Numbers):
    """Emits one number, and the others once the bolt is in its call."""

    def next_tuple(self) -> None:
        """Emit."""
        if len(self.left) == NUMBERS or _begun.is_set():
            super().next_tuple()


def test_what_waits_for_hooks_is_bounded_while_tuples_are_shed(caplog: pytest.LogCaptureFixture) -> None:
    """The executor does not return, and each tuple that does not fit fails. The hooks hear of as many as fit into the queue."""
    told, verdicts = Told("fails for hooks"), Told("verdicts of shed tuples")
    builder = TopologyBuilder()
    builder.set_spout("numbers", AfterTheFirst(list(range(NUMBERS)), verdicts))
    builder.set_bolt("waits", Waits(told)).shuffle_grouping("numbers")
    conf = {"stormspark.backpressure.strategy": "fail", "stormspark.queue.high.mark.tuples": MOST}
    _begun.clear()
    _released.clear()
    try:
        with running(builder.create_topology("fails"), **conf) as topology:
            (bolt,) = tasks(topology, "waits")
            until(lambda: bolt.counters.shed == NUMBERS - MOST - 1)
            assert len(bolt.executor._calls) == 1
            assert len(bolt._fails) == MOST
            assert not told.all
            _released.set()
            until(lambda: len(verdicts.all) == NUMBERS)
            until(lambda: len(told.all) == MOST)
    finally:
        _released.set()
    assert {thread for _, thread in told.all} == {"waits:0"}
    warnings = [one.getMessage() for one in caplog.records if "task hooks" in one.getMessage()]
    assert len(warnings) == 1
    assert f"execute of waits[0] ({__file__}:" in warnings[0] and " has not returned" in warnings[0]
    assert f"{MOST} fails already wait" in warnings[0]
