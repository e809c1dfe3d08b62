"""A call of ``next_tuple`` that emits much, on a thread of its own: it comes to its end, as in Storm (B3, B4, B13)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import Fields, Spout, StatefulComponent, TopologyBuilder
from tests.unit.worker.executors.runs import Repeat, Told, running, tasks, until

pytestmark = pytest.mark.slow
#: More than a spout may emit before the worker's thread grants more.
MANY = 2500
PENDING = {"topology.max.spout.pending": 10}


class Page(Spout):
    """Emits ``many`` tuples in its first call, and tells when that call has returned."""

    def __init__(self, many: int, told: Told) -> None:
        self.many, self.told = many, told

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.called = collector, False

    def next_tuple(self) -> None:
        if self.called:
            return
        self.called = True
        for n in range(self.many):
            self.collector.emit((n,), message_id=n)
        self.told("returned")

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class PageFromState(StatefulComponent, Page):
    """Remembers in its state that it has emitted its page."""

    def init_state(self, state: Any) -> None:
        self.state = state

    def pre_save(self, checkpoint_id: Any) -> None:
        pass

    def next_tuple(self) -> None:
        if not self.state.get("done"):
            self.state["done"] = True
            super().next_tuple()


class Join(Repeat):
    """Acks nothing before it has ``many`` tuples."""

    def __init__(self, many: int) -> None:
        self.many, self.held = many, list[Any]()

    def execute(self, tup: Any) -> None:
        self.held.append(tup)
        if len(self.held) == self.many:
            for held in self.held:
                self.collector.ack(held)


@pytest.mark.parametrize(
    ("page", "conf"),
    [(Page, {}), (PageFromState, {"stormspark.exactly.once": True})],
    ids=["at least once", "exactly once"],
)
def test_max_spout_pending_does_not_hold_a_call_that_is_under_way(
    page: type[Page], conf: dict[str, Any]
) -> None:
    """It is looked at before each call. No ack comes before the last tuple of this call (B4)."""
    told = Told("page")
    builder = TopologyBuilder()
    builder.set_spout("page", page(MANY, told))
    builder.set_bolt("join", Join(MANY)).shuffle_grouping("page")
    with running(builder.create_topology("page"), **PENDING, **conf) as local:
        until(lambda: told.all == [("returned",)])
        (task,) = tasks(local, "page")
        until(lambda: task.counters.acked == MANY)


class Deactivated(Page):
    """Waits in its call until the test lets it go on."""

    is_under_way, may_go_on = threading.Event(), threading.Event()

    def next_tuple(self) -> None:
        self.is_under_way.set()
        self.may_go_on.wait()
        super().next_tuple()

    def deactivate(self) -> None:
        self.told("deactivated")


def test_a_call_goes_on_after_the_spout_was_deactivated() -> None:
    """All that it emits leaves, and ``deactivate`` follows it (B13)."""
    Deactivated.is_under_way.clear()
    Deactivated.may_go_on.clear()
    told = Told("deactivated")
    builder = TopologyBuilder()
    builder.set_spout("page", Deactivated(MANY, told))
    builder.set_bolt("end", Repeat()).shuffle_grouping("page")
    with running(builder.create_topology("deactivated")) as local:
        try:
            (task,) = tasks(local, "page")
            assert Deactivated.is_under_way.wait(120)
            local.deactivate()
            until(lambda: not task.life.is_active)
            Deactivated.may_go_on.set()
            until(lambda: len(told.all) == 2)
            assert told.all == [("returned",), ("deactivated",)]
            until(lambda: task.counters.acked == MANY)
        finally:
            Deactivated.may_go_on.set()
