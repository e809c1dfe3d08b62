"""The end of a topology whose executors have threads."""

from __future__ import annotations

import gc
import os
from threading import Event
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.worker.executors import executors
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, until

_released = Event()


class Stuck(Repeat):
    """Waits until the test has ended."""

    def execute(self, tup: Any) -> None:
        """Wait."""
        _wait()


class Many(Repeat):
    """Emits more than the notes of one instance may be, once the topology stops."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def execute(self, tup: Any) -> None:
        """Emit."""
        self.told("begins")
        _wait_for_stop()
        for n in range(20_000):
            self.collector.emit((n,))
        super().execute(tup)

    def cleanup(self) -> None:
        """Tell."""
        self.told("cleanup")


_stops = Event()


def _wait() -> None:
    _released.wait(60)


def _wait_for_stop() -> None:
    _stops.wait(60)


def test_a_call_that_never_returns_keeps_no_other_executor_from_its_cleanup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executors, "_STOP_SECS", 2.0)
    told = Told("cleanups at the stop")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1], Told("verdicts at the stop")))
    builder.set_bolt("a-stuck", Stuck()).all_grouping("numbers")
    builder.set_bolt("many", Many(told)).all_grouping("numbers")
    _released.clear()
    _stops.clear()
    try:
        with running(builder.create_topology("stuck")):
            until(lambda: ("begins",) in told.all)
            finish = executors.Executors.finish

            def finish_and_tell(self: executors.Executors) -> None:
                _stops.set()
                finish(self)

            monkeypatch.setattr(executors.Executors, "finish", finish_and_tell)
        assert told.all[-1] == ("cleanup",)
    finally:
        _released.set()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors as Linux shows them")
def test_a_topology_that_has_stopped_leaves_no_descriptors_open() -> None:
    def run() -> None:
        builder = TopologyBuilder()
        builder.set_spout("numbers", Numbers([1], Told("verdicts of descriptors")))
        builder.set_bolt("repeat", Repeat()).shuffle_grouping("numbers")
        with running(builder.create_topology("descriptors")) as topology:
            topology.run_until_idle()

    run()
    gc.collect()  # what earlier tests have left
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run()
    assert len(os.listdir("/proc/self/fd")) <= before
