"""A spout on a thread of its own that is activated or deactivated while an instance starts (B2, B13)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stormspark import Fields, Spout, StatefulComponent, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.executors.spout_task import ThreadedSpoutTask
from tests.unit.worker.executors.runs import Repeat, Told, until

PATIENCE = 120
#: Set while ``open`` need not wait.
may_open = threading.Event()


class Watched(Spout):
    """Tells of each call, the first call of ``next_tuple`` included."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.told("open")
        assert may_open.wait(PATIENCE)
        self.called = False

    def activate(self) -> None:
        self.told("activate")

    def deactivate(self) -> None:
        self.told("deactivate")

    def next_tuple(self) -> None:
        if not self.called:
            self.called = True
            self.told("next_tuple")

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class WatchedWithState(StatefulComponent, Watched):
    """Has a state, so it starts anew if a batch is rolled back."""

    def init_state(self, state: Any) -> None:
        pass

    def pre_save(self, checkpoint_id: Any) -> None:
        pass


@contextmanager
def _worker(spout: Spout, *, active: bool, tasks: int = 1, **conf: Any) -> Iterator[tuple[Worker, list[Any]]]:
    """A worker whose thread is that of the test: it takes no note by itself."""
    may_open.set()
    builder = TopologyBuilder()
    builder.set_spout("watched", spout, tasks)
    builder.set_bolt("end", Repeat()).shuffle_grouping("watched")
    conf = {"stormspark.executor.threads": "always", **conf}
    worker = Worker(plan_topology(builder.create_topology("watched"), conf), 0, side_by_side=True)
    worker.open(active)
    try:
        yield worker, [spout for spout in worker.wiring.spouts if isinstance(spout, ThreadedSpoutTask)]
    finally:
        may_open.set()
        worker.close()


def _begins(worker: Worker, spouts: list[Any]) -> None:
    """Let the worker hear that the instances have started, and wait for the calls that follow."""

    def have_begun() -> bool:
        worker._executors.take_in()
        return not any(spout.is_starting for spout in spouts)

    until(have_begun)
    _returns(spouts)


def _returns(spouts: list[Any]) -> None:
    """Wait until all calls have returned. The worker does not hear of it."""
    until(lambda: all(spout.executor.is_idle for spout in spouts))


def _restart(spout: Any) -> None:
    """Let a new instance start after an error. It waits in ``open``."""
    may_open.clear()
    spout.raised("a test", ValueError("planned"))


def _ask(worker: Worker, spouts: list[Any]) -> bool:
    """Let the worker call its spouts; see `Turns.ask_spouts`."""
    return worker.turns.ask_spouts(worker.clock() + 600, spouts)


def test_a_spout_that_is_activated_after_its_open_and_before_the_worker_knows_of_it() -> None:
    told = Told("activated")
    with _worker(Watched(told), active=True) as (worker, spouts):
        _restart(*spouts)
        worker.set_active(False)
        may_open.set()
        _returns(spouts)
        told.all.clear()
        worker.set_active(True)
        _returns(spouts)
        _begins(worker, spouts)
        assert told.all == [("activate",)]
        until(lambda: _ask(worker, spouts) or ("next_tuple",) in told.all)


def test_a_spout_that_is_deactivated_after_its_open_and_before_the_worker_knows_of_it() -> None:
    told = Told("deactivated early")
    with _worker(Watched(told), active=True) as (worker, spouts):
        _restart(*spouts)
        may_open.set()
        _returns(spouts)
        told.all.clear()
        worker.set_active(False)
        _returns(spouts)
        _begins(worker, spouts)
        assert told.all == [("deactivate",)]


def test_the_first_activation_waits_for_no_open() -> None:
    told = Told("first")
    with _worker(Watched(told), active=False, tasks=3) as (worker, spouts):
        may_open.clear()
        worker.set_active(True)
        until(lambda: told.all == 3 * [("open",)])  # all at once, as none may return
        worker.set_active(True)
        may_open.set()
        _begins(worker, spouts)
        assert told.all == 3 * [("open",)] + 3 * [("activate",)]
        assert worker._executors.spouts_to_come == 3


def test_a_spout_that_is_deactivated_while_it_is_opened_first_hears_nothing() -> None:
    """In Storm, too, an inactive spout is only opened."""
    told = Told("never")
    with _worker(Watched(told), active=False) as (worker, spouts):
        may_open.clear()
        worker.set_active(True)
        assert worker._executors.spouts_to_come == 1, "it may emit soon"
        worker.set_active(False)
        assert worker._executors.spouts_to_come == 0
        may_open.set()
        _begins(worker, spouts)
        assert told.all == [("open",)]


@pytest.mark.parametrize("is_open", [False, True])
def test_a_batch_is_rolled_back_while_a_spout_with_state_is_opened_first(is_open: bool) -> None:
    """C42: another instance starts, and is activated."""
    told = Told("rolled back")
    conf = {"stormspark.exactly.once": True}
    with _worker(WatchedWithState(told), active=False, **conf) as (worker, spouts):
        may_open.clear()
        worker.set_active(True)
        until(lambda: told.all == [("open",)])
        if is_open:
            may_open.set()
            _returns(spouts)
        else:
            threading.Timer(0.05, may_open.set).start()  # the roll back waits for the call
        worker.roll_back(0, -1, "the test says so")
        _begins(worker, spouts)
        assert told.all == [("open",), ("open",), ("activate",)]
