"""A topology is not idle while a spout that has just emitted waits in its next call (J25)."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import pytest

from stormspark import TopologyBuilder
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, tasks, until

pytestmark = pytest.mark.slow


class Slow(Numbers):
    """Waits for a while in each call."""

    def next_tuple(self) -> None:
        time.sleep(0.05)
        super().next_tuple()


def test_run_until_idle_waits_for_what_a_waiting_spout_emits() -> None:
    """Until it has been called once in vain."""
    told = Told("slow")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Slow([*range(8)], told))
    builder.set_bolt("end", Repeat()).shuffle_grouping("numbers")
    with running(builder.create_topology("slow")) as local:
        local.run_until_idle()
        assert sorted(told.all) == [("ack", str(n)) for n in range(8)]


class Stuck(Numbers):
    """Its second call does not return before the test lets it."""

    def next_tuple(self) -> None:
        if not self.left:
            while self.told.all[-1] != ("go on",):
                time.sleep(0.01)
        super().next_tuple()


def test_but_not_for_ever() -> None:
    """A call that does nothing for some seconds is not waited for."""
    told = Told("stuck")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Stuck([1], told))
    builder.set_bolt("end", Repeat()).shuffle_grouping("numbers")
    told("started")
    with running(builder.create_topology("stuck")) as local:
        local.run_until_idle()
        told("go on")


_ticks, _go_on = Event(), Event()


class Ticks(Repeat):
    """Each call for a tick waits."""

    waits = True

    def execute(self, tup: Any) -> None:
        """Wait, or repeat."""
        if tup.is_tick:
            _ticks.set()
            _go_on.wait(60)
        else:
            super().execute(tup)

    def get_component_configuration(self) -> dict[str, Any]:
        """Return the settings of the bolt."""
        return {"topology.tick.tuple.freq.secs": 1}


def test_a_call_for_a_tick_is_no_call_under_way() -> None:
    """Otherwise a bolt whose ticks take a while would never be idle (``--until-idle``)."""
    for event in (_ticks, _go_on):
        event.clear()
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("nothing")))
    builder.set_bolt("ticks", Ticks()).shuffle_grouping("numbers")
    with running(builder.create_topology("ticks")) as local:
        (task,) = tasks(local, "ticks")
        assert _ticks.wait(60)
        until(lambda: task.executor.busy.seconds > 0.01)
        assert task.under_way and task.in_calls()[1] == 0.0
        _go_on.set()
        until(lambda: task.counters.latency.count)
        assert task.in_calls()[1] == pytest.approx(0.0, abs=1e-6)
