"""A topology is not idle while a spout that has just emitted waits in its next call (J25)."""

from __future__ import annotations

import time

import pytest

from stormspark import TopologyBuilder
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running

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
