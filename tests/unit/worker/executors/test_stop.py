"""The end of a topology whose executors have threads."""

from __future__ import annotations

import gc
import os
from threading import Event, Thread
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.local import submit
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


@pytest.mark.slow
def test_a_call_that_never_returns_keeps_no_other_executor_from_its_cleanup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executors, "STOP_SECS", 2.0)
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
            limit_waiting = executors.Executors.limit_waiting

            def limit_and_tell(self: executors.Executors, *, works_off: bool) -> None:
                limit_waiting(self, works_off=works_off)
                _stops.set()

            monkeypatch.setattr(executors.Executors, "limit_waiting", limit_and_tell)
        assert told.all[-1] == ("cleanup",)
    finally:
        _released.set()


class StuckSpout(Numbers):
    """One of its last calls never returns."""

    def __init__(self, stuck: str) -> None:
        super().__init__([1], Told(f"verdicts of a spout stuck in {stuck}"))
        self.stuck = stuck

    def deactivate(self) -> None:
        """Wait, perhaps."""
        if self.stuck == "deactivate":
            _wait()

    def close(self) -> None:
        """Wait, perhaps."""
        if self.stuck == "close":
            _wait()


class StuckBolt(Repeat):
    """Its ``cleanup`` never returns, perhaps."""

    def __init__(self, stuck: str) -> None:
        self.stuck = stuck

    def cleanup(self) -> None:
        """Wait, perhaps."""
        if self.stuck == "cleanup":
            _wait()


class Cleans(Repeat):
    """Tells of its ``cleanup``."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def cleanup(self) -> None:
        """Tell."""
        self.told("cleanup")


@pytest.mark.slow
@pytest.mark.parametrize(("stuck", "task"), [("deactivate", "a[0]"), ("close", "a[0]"), ("cleanup", "b[0]")])
def test_a_last_call_that_never_returns_holds_up_a_stop_for_some_seconds_only(
    stuck: str, task: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B1, C1: and the stop waits once, and not once for each executor."""
    monkeypatch.setattr(executors, "STOP_SECS", 1.0)
    told = Told(f"cleanups beside {stuck}")
    builder = TopologyBuilder()
    builder.set_spout("a", StuckSpout(stuck), 5)
    builder.set_bolt("b", StuckBolt(stuck), 5).shuffle_grouping("a")
    builder.set_bolt("c", Cleans(told)).shuffle_grouping("b")
    _released.clear()
    try:
        topology = submit(builder.create_topology("stuck"), conf={"stormspark.executor.threads": "always"})
        stopping = Thread(target=topology.stop, daemon=True)
        stopping.start()
        stopping.join(30)
        assert not stopping.is_alive()
        assert told.all == [("cleanup",)]
        warnings = [
            one.getMessage()
            for one in caplog.records
            if "and the topology stops without it" in one.getMessage()
        ]
        assert len(warnings) == 5
        assert warnings[0].startswith(f"{task} has not returned from its {stuck} ({__file__}:")
    finally:
        _released.set()


def test_an_error_in_deactivate_takes_no_close_from_a_spout() -> None:
    """B1."""
    told = Told("a deactivate that raises")

    class Raises(Numbers):
        def deactivate(self) -> None:
            raise KeyError("deactivate")

        def close(self) -> None:
            self.told("closed")

    for threads in ("always", "never"):
        builder = TopologyBuilder()
        builder.set_spout("a", Raises([], told))
        with running(builder.create_topology("raises"), **{"stormspark.executor.threads": threads}):
            pass
    assert told.all == [("closed",), ("closed",)]


@pytest.mark.slow
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
