"""A rebalance that can't start is taken back. Layouts and the checkpoint are doubles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark.checkpoint.redistribution import NotDealtOutError
from stormspark.errors import (
    ComponentError,
    FencedError,
    StatusError,
    StormsparkError,
    UnsupportedEnvironmentError,
)
from stormspark.plan import plan_topology
from stormspark.plan.rebalance import rebalanced
from stormspark.spark import topology as topology_module
from stormspark.spark.assignments import Assignments
from stormspark.spark.layout_changes import LayoutChanges
from stormspark.spark.topology import SparkTopology
from stormspark.worker.host.link import Endpoint
from stormspark.worker.host.messages import ProcessId
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import two

PLAN = plan_topology(two(Collect(), Script([])).create_topology("words"), {"topology.workers": 1})
MORE = rebalanced(PLAN, workers=2)


class Rig:
    """A topology whose layouts do what ``starts`` says, one after the other: None begins and ends at once, an error ends a layout
    that has not begun, and a function is called in a layout that has not begun.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *starts: BaseException | Callable[[], None] | None
    ) -> None:
        self.starts, self.laid_out = list(starts), []
        self.refusals: list[str] = []
        running = self.running = SparkTopology.__new__(SparkTopology)
        for name in ("_end_wanted", "_killed", "_ended", "_wake", "_stirred"):
            setattr(running, name, threading.Event())
        for name in ("_premises", "_fence", "_session", "_shared_session", "_claim", "_close_server"):
            setattr(running, name, MagicMock())
        running._session.sparkContext._jsc.sc().isStopped.return_value = False  # type: ignore[union-attr]
        running._tally = MagicMock(plan=PLAN, has_reports=True)
        running._tally.lay_out = self.count_anew  # type: ignore[method-assign]
        running._changing, running._changes = threading.Lock(), LayoutChanges(PLAN)
        running._active, running._input_ended, running._levels = True, False, {}
        running._earlier_restarts, running._error, running._commands = 0, None, None
        running._tidy_up = MagicMock()
        running._layout = self.layout(None, PLAN, active=True, is_first=True)
        monkeypatch.setattr(topology_module, "Layout", self.layout)

    def layout(self, _: object, plan: Any, **__: object) -> Any:
        layout = MagicMock(plan=plan, error=None, planned_restarts=0)
        layout.end_of_input.is_done = False
        layout.nimbus.has_begun = False

        def run() -> None:
            self.laid_out.append(plan.workers)
            start = self.starts.pop(0)
            if start is None:
                layout.nimbus.has_begun = True
                return
            if callable(start):
                start()
                return
            layout.error = start
            if isinstance(start, ComponentError):
                raise start

        layout.run = run
        return layout

    def count_anew(self, plan: Any, _: object) -> None:
        tally: Any = self.running._tally
        tally.plan, tally.has_reports = plan, plan is PLAN

    def asks(self, plan: Any = MORE) -> Callable[[], None]:
        """Return what asks for a rebalance, as `SparkTopology.lay_out` does."""

        def ask() -> None:
            self.change = self.running._changes.ask(plan)

        return ask

    def supervise(self) -> BaseException | None:
        self.running._supervise()
        assert not self.starts, "more layouts were to come"
        return self.running.error


def begins_and(monkeypatch: pytest.MonkeyPatch, *starts: Any) -> Rig:
    """A topology that has begun, and is rebalanced then."""
    rig = Rig(monkeypatch, None, *starts)
    rig.asks()()
    return rig


@pytest.mark.parametrize(
    "error",
    [
        NotDealtOutError("the key 7 is with task 1"),
        ComponentError("bolt 'count' raised"),
        UnsupportedEnvironmentError("no executor"),
    ],
)
def test_a_layout_that_can_not_start_is_taken_back(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """J3: with the plan that it had, whatever the way in which a layout ends."""
    rig = begins_and(monkeypatch, error, None)
    assert rig.supervise() is None
    assert rig.laid_out == [1, 2, 1]
    assert rig.running._layout is not None and rig.running._layout.plan is PLAN
    assert isinstance(rig.change.refusal, StatusError)
    assert str(rig.change.refusal) == (
        f"topology 'words' could not start with 2 workers and {MORE.executors} executors, and runs with 1 and {PLAN.executors} "
        f"as before: {type(error).__name__}: {error}"
    )
    assert f"goes back to 1 worker and {PLAN.executors} executors: {type(error).__name__}" in caplog.text


def test_whoever_asks_for_a_rebalance_hears_that_it_was_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only once the topology runs as before."""
    rig = Rig(monkeypatch, None, ComponentError("no such table"), lambda: None)
    running = rig.running
    assert running._layout is not None

    def ends() -> None:
        supervisor.start()

    supervisor = threading.Thread(target=running._run_layouts)
    monkeypatch.setattr(running._layout, "end", ends)
    with pytest.raises(
        StatusError, match=r"could not start with 2 workers.*as before: ComponentError: no such"
    ):
        running.lay_out(MORE)
    assert running._changes.next is None
    supervisor.join(10)
    assert rig.laid_out == [1, 2, 1]


def test_a_way_back_that_fails_too_ends_the_topology_with_both_reasons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = begins_and(monkeypatch, ComponentError("no room for 2"), UnsupportedEnvironmentError("no executor"))
    error = rig.supervise()
    assert rig.laid_out == [1, 2, 1]
    assert type(error) is StormsparkError
    assert "no room for 2" in str(error) and "could not go back to 1 worker" in str(error)
    assert "no executor" in str(error)


def test_a_layout_that_has_begun_is_not_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batches may be committed. That holds for the way back, too, once it has begun."""
    lost = StormsparkError("batch 7 failed 10 times")

    def fails_later() -> None:
        rig.running._now.nimbus.has_begun = True  # type: ignore[misc]
        rig.running._now.error = lost

    rig = begins_and(monkeypatch, fails_later)
    assert rig.supervise() is lost
    rig = begins_and(monkeypatch, ComponentError("no room for 2"), fails_later)
    assert rig.supervise() is lost


@pytest.mark.parametrize("error", [FencedError("another driver"), ComponentError("no such table")])
def test_a_first_layout_and_one_that_is_fenced_off_end_the_topology(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(error, FencedError):
        assert begins_and(monkeypatch, error).supervise() is error
    rig = Rig(monkeypatch, error)
    rig.asks()()
    assert rig.supervise() is error


def test_a_stop_or_a_kill_meanwhile_ends_the_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_stopped() -> None:
        rig.running._end_wanted.set()
        rig.running._now.error = ComponentError("no room for 2")

    rig = begins_and(monkeypatch, is_stopped)
    assert isinstance(rig.supervise(), ComponentError)
    assert rig.laid_out == [1, 2]


def test_a_second_rebalance_meanwhile_is_refused_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asked for a change of the layout that could not start."""

    def is_rebalanced_again() -> None:
        first.append(rig.running._changes.present)
        rig.asks(rebalanced(MORE, executors={"b": 3}))()
        rig.running._now.error = ComponentError("no room for 2")

    first: list[Any] = []
    rig = begins_and(monkeypatch, is_rebalanced_again, None)
    assert rig.supervise() is None
    assert rig.laid_out == [1, 2, 1]
    assert rig.change.refusal is first[0].refusal is not None


def test_what_the_driver_itself_can_not_make_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as for lack of file descriptors. But storage that is away would be away for the layout before, too."""
    rig = begins_and(monkeypatch, None)
    monkeypatch.setattr("stormspark.spark.retrying._FIRST_DELAY_SECS", 0.0)

    def make(premises: object, plan: Any, **more: object) -> Any:
        if plan.workers == 2:
            msg = "needs 9000 file descriptors"
            raise UnsupportedEnvironmentError(msg)
        return rig.layout(premises, plan, **more)

    monkeypatch.setattr(topology_module, "Layout", make)
    assert rig.supervise() is None
    assert rig.laid_out == [1, 1]
    assert "needs 9000 file descriptors" in str(rig.change.refusal)


def test_a_layout_has_begun_once_all_its_workers_are_ready_at_the_same_time() -> None:
    seats = Assignments(workers=2)
    here = Endpoint("/socket")

    def starts(attempt: int, worker: int) -> None:
        seats.locate(attempt, worker)
        incarnation = seats.seats[worker].incarnation
        assert seats.hello(worker, incarnation, ProcessId("host", 7, 1))
        seats.ready(worker, incarnation, here)

    starts(0, 0)
    seats.lost(0, 0, "killed")
    seats.begin_attempt(1)
    starts(1, 1)
    assert not seats.has_begun
    starts(1, 0)
    assert seats.has_begun
    seats.lost(0, 1, "killed")
    assert seats.has_begun
