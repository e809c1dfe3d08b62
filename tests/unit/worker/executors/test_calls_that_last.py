"""Calls that take long on threads of executors: what becomes of the tuples that wait behind them (E10, W2)."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.local import SimulatedClock
from tests.unit.worker.components import Script, acks_of, fails_of
from tests.unit.worker.executors.runs import Repeat
from tests.unit.worker.rig import Rig

TIMEOUT = 30
TUPLES = 5
_MOST_SECS = 20.0
_released = Event()


def _wait() -> None:
    _released.wait(60)
    _released.clear()


class Waits(Repeat):
    """Waits in each call until the test lets it go on."""

    def execute(self, tup: Any) -> None:
        """Wait, and ack."""
        _wait()
        self.collector.ack(tup)


class Ticking:
    """A clock that the test drives. It also moves a little whenever it is read, so waits on it come to an end."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.003
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class ThreadedRig(Rig):
    """Workers whose executors have threads of their own."""

    def new_clock(self) -> SimulatedClock:
        return Ticking()  # type: ignore[return-value]

    def pass_seconds(self, seconds: int) -> None:
        """Let time pass, with a batch at least once per second."""
        ends = self.clock() + seconds
        while self.clock() < ends:
            self.advance(0.5)

    def until(self, condition: Callable[[], object]) -> None:
        """Run batches until ``condition`` holds, for seconds at most."""
        deadline = monotonic() + _MOST_SECS
        while not condition():
            assert monotonic() < deadline, "it has not come true"
            self.batches(1)

    def hears(self, verdicts: int) -> None:
        """Run batches until the spout has heard so many verdicts."""
        (spout,) = self.users("a")
        self.until(lambda: len(spout.heard) >= verdicts)


@pytest.fixture(params=[1, 2, 3])
def rig(request: pytest.FixtureRequest) -> Any:
    _released.clear()
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(TUPLES)]))
    builder.set_bolt("b", Waits()).shuffle_grouping("a")
    rig = ThreadedRig(
        builder,
        request.param,
        topology_message_timeout_secs=TIMEOUT,
        stormspark_executor_threads="always",
    )
    (bolt,) = rig.tasks("b")
    rig.until(lambda: bolt.under_way and bolt.waiting == TUPLES - 1)
    yield rig
    rig.cluster.abandon()
    _released.set()


@pytest.mark.slow
def test_tuples_behind_a_call_that_never_returns_time_out(rig: ThreadedRig) -> None:
    """As in Storm. They count as late once the call itself has lasted longer than the timeout."""
    (spout,) = rig.users("a")
    # They were spared at the latest when the call had lasted for three quarters of a timeout, and fail a timeout after that.
    rig.pass_seconds(TIMEOUT + TIMEOUT // 2)
    assert all(fail.message == 0 for fail in fails_of(spout)), (
        "the others may still hope for the return of the call"
    )
    rig.pass_seconds(2 * TIMEOUT)
    rig.hears(TUPLES)
    assert sorted(fail.message for fail in fails_of(spout)) == list(range(TUPLES))


@pytest.mark.slow
def test_tuples_behind_calls_that_are_merely_slow_do_not(rig: ThreadedRig) -> None:
    """The last tuple waits for four calls, which take twice as long as the timeout."""
    (spout,) = rig.users("a")
    for number in range(TUPLES):
        rig.pass_seconds(TIMEOUT // 2)
        _released.set()
        rig.hears(number + 1)
    assert acks_of(spout) == list(range(TUPLES))
