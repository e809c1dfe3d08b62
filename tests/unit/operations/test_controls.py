"""States and waits as Storm's nimbus has them (J2)."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.errors import InvalidTopologyError, StatusError
from stormspark.metrics import Durations, LatencySummary, TopologyStatistics
from stormspark.operations.controls import Controls
from stormspark.operations.status import Action, Status, after
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.plan.rebalance import rebalanced
from stormspark.testing import FixedTupleSpout, TestWordCounter
from tests.waiting import wait_for


class Running:
    """A topology that notes what it is told."""

    name = "words"
    error: BaseException | None = None

    def __init__(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("lines", FixedTupleSpout([], Fields("line")), parallelism=2)
        builder.set_bolt("count", TestWordCounter(), parallelism=3).set_num_tasks(5).shuffle_grouping("lines")
        self.plan = plan_topology(builder.create_topology("words"), {"topology.workers": 2})
        self.told: list[str] = []
        self.levels: list[Mapping[str, int]] = []
        self.restarted: list[list[int]] = []
        self.waiting = ""
        self.ended = threading.Event()

    def waits_for(self) -> str:
        return self.waiting

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        self.levels.append(dict(levels))

    def restart(self, workers: Collection[int]) -> None:
        self.restarted.append([*workers])

    def statistics(self) -> TopologyStatistics:
        return TopologyStatistics(self.name, "local", 1.0, 0, LatencySummary(), {})

    def durations(self) -> Durations:
        return Durations()

    def activate(self) -> None:
        self.told.append("activate")

    def deactivate(self) -> None:
        self.told.append("deactivate")

    def stop(self) -> None:
        self.told.append("stop")
        self.ended.set()

    def rebalanced(
        self, *, workers: int | None = None, executors: Mapping[str, int] | None = None
    ) -> PhysicalPlan:
        return rebalanced(self.plan, workers=workers, executors=executors)

    def lay_out(self, plan: PhysicalPlan) -> None:
        self.told.append(f"lay out {plan.workers}")
        self.plan = plan
        if self.ended.is_set():
            msg = "topology 'words' ends, so it can't be rebalanced now"
            raise StatusError(msg)


@pytest.mark.parametrize("status", [Status.ACTIVE, Status.INACTIVE])
@pytest.mark.parametrize("action", Action)
def test_everything_is_allowed_in_a_topology_that_lives(status: Status, action: Action) -> None:
    assert (
        after("words", status, action).value.startswith(action.value.upper()[:4])
        or action is Action.DEACTIVATE
    )


@pytest.mark.parametrize("action", [Action.ACTIVATE, Action.DEACTIVATE, Action.REBALANCE])
def test_a_killed_topology_can_only_be_killed(action: Action) -> None:
    assert after("words", Status.KILLED, Action.KILL) is Status.KILLED
    with pytest.raises(
        StatusError, match=f"topology 'words' is KILLED: {action.value} is not possible any more"
    ):
        after("words", Status.KILLED, action)


def test_an_inactive_topology_becomes_active_again() -> None:
    running = Running()
    controls = Controls(running, 30.0)
    controls.deactivate()
    assert controls.status is Status.INACTIVE
    controls.activate()
    assert controls.status is Status.ACTIVE
    assert running.told == ["deactivate", "activate"]


def test_what_starts_inactive_is_inactive() -> None:
    assert Controls(Running(), 30.0, active=False).status is Status.INACTIVE


def test_a_kill_deactivates_at_once_and_stops_after_its_wait() -> None:
    running = Running()
    controls = Controls(running, 30.0)
    assert controls.kill() == 30.0
    assert (controls.status, running.told) == (Status.KILLED, ["deactivate"])
    with pytest.raises(StatusError):
        controls.activate()
    assert not running.ended.wait(0.1)
    controls.kill(0.0)  # sets the wait anew
    assert running.ended.wait(10)
    assert running.told == ["deactivate", "stop"]


def test_a_longer_wait_takes_the_place_of_a_shorter_one() -> None:
    running, now = Running(), [100.0]
    controls = Controls(running, 30.0, clock=lambda: now[0])
    controls.kill(5.0)
    controls.kill(500.0)
    now[0] = 110.0
    time.sleep(0.05)
    assert running.told == ["deactivate"]
    now[0] = 700.0
    controls.kill(0.0)
    wait_for(running.ended.is_set, 10)


def test_the_longest_wait_ends_if_it_is_set_anew() -> None:
    """More seconds than a lock of the system can wait."""
    running = Running()
    controls = Controls(running, 30.0)
    controls.kill(1e300)
    assert not running.ended.wait(0.1)
    controls.kill(0.0)
    assert running.ended.wait(10)


@pytest.mark.parametrize("active", [True, False])
def test_a_rebalance_waits_and_returns_to_the_state_that_was(active: bool) -> None:
    running = Running()
    controls = Controls(running, 30.0, active=active)
    assert controls.rebalance(0.2, workers=3) == 0.2
    assert (controls.status, running.told) == (Status.REBALANCING, ["deactivate"])
    before = Status.ACTIVE if active else Status.INACTIVE
    wait_for(lambda: controls.status is before, 10)
    assert running.told == ["deactivate", "lay out 3", *(["activate"] if active else [])]


def test_a_kill_ends_the_wait_of_a_rebalance() -> None:
    running = Running()
    controls = Controls(running, 30.0)
    controls.rebalance(workers=3)
    with pytest.raises(StatusError, match="is REBALANCING: rebalance is not possible until that is done"):
        controls.rebalance(workers=1)
    controls.kill(0.0)
    assert running.ended.wait(10)
    time.sleep(0.05)
    assert (controls.status, running.told) == (Status.KILLED, ["deactivate", "deactivate", "stop"])


def test_a_rebalance_that_can_not_be_changes_nothing() -> None:
    running = Running()
    controls = Controls(running, 30.0)
    with pytest.raises(InvalidTopologyError, match="no component 'x'"):
        controls.rebalance(0.0, executors={"x": 2})
    assert (controls.status, running.told) == (Status.ACTIVE, [])


def test_a_topology_that_ends_before_it_is_laid_out_ends() -> None:
    running = Running()
    controls = Controls(running, 30.0)
    running.ended.set()
    controls.rebalance(0.0)
    wait_for(lambda: len(running.told) > 1, 10)
    assert running.told[:2] == ["deactivate", "lay out 2"]


@pytest.mark.parametrize("active", [True, False])
def test_a_topology_that_can_not_be_laid_out_returns_to_the_state_that_was(
    active: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise its spouts would stay deactivated, and every command but a kill would be refused, for ever."""

    class Refusing(Running):
        def lay_out(self, plan: PhysicalPlan) -> None:
            raise RuntimeError("JVM is away")

    running = Refusing()
    controls = Controls(running, 30.0, active=active)
    controls.rebalance(0.0)
    wait_for(lambda: controls.status is (Status.ACTIVE if active else Status.INACTIVE), 10)
    assert running.told == ["deactivate", *(["activate"] if active else [])]
    assert "topology words could not be laid out anew" in caplog.text and "JVM is away" in caplog.text


def test_a_wait_longer_than_any_is_followed_by_a_shorter_one() -> None:
    running = Running()
    controls = Controls(running, 30.0)
    controls.kill(1e300)
    assert not running.ended.wait(0.1)
    controls.kill(0)
    assert running.ended.wait(5)
