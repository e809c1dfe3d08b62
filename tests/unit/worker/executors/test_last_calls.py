"""The last calls of an instance may do what all other calls may, and end neither their thread nor the worker's."""

from __future__ import annotations

import sys
from threading import Thread

from stormspark import TopologyBuilder
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, until


class EmitsAtTheEnd(Numbers):
    """Emits in ``deactivate`` and in ``close``."""

    def deactivate(self) -> None:
        """Emit once more."""
        self.collector.emit((100,), message_id="100")
        self.told("deactivated")

    def close(self) -> None:
        """Emit once more."""
        self.collector.emit((101,))
        self.told("closed")


def test_deactivate_and_close_may_emit() -> None:
    told = Told("last emits")
    builder = TopologyBuilder()
    builder.set_spout("numbers", EmitsAtTheEnd([1], told))
    builder.set_bolt("repeat", Repeat()).shuffle_grouping("numbers")
    with running(builder.create_topology("last-emits")) as topology:
        until(lambda: ("ack", "1") in told.all)
        stopping = Thread(target=topology.stop, daemon=True)
        stopping.start()
        stopping.join(30)
        assert not stopping.is_alive()
        assert told.all[-2:] == [("deactivated",), ("closed",)]


class Exits(Repeat):
    """Ends the process in ``cleanup``, or tries to."""

    def cleanup(self) -> None:
        """Try it."""
        sys.exit(3)


class Cleans(Repeat):
    """Tells of its ``cleanup``."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def cleanup(self) -> None:
        """Tell."""
        self.told("cleanup")


def test_a_cleanup_that_exits_leaves_the_others_theirs() -> None:
    told = Told("cleanups")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], told))
    builder.set_bolt("exits", Exits()).shuffle_grouping("numbers")
    builder.set_bolt("cleans", Cleans(told)).shuffle_grouping("exits")
    with running(builder.create_topology("cleanups")):
        pass
    assert told.all == [("cleanup",)]


class ExitsLater(Numbers):
    """Exits in its second ``activate``."""

    def activate(self) -> None:
        """Exit, the second time."""
        self.told("activated")
        if len(self.told.all) == 2:
            sys.exit(3)


def test_an_activate_that_exits_stops_the_topology() -> None:
    told = Told("activations")
    builder = TopologyBuilder()
    builder.set_spout("numbers", ExitsLater([], told))
    with running(builder.create_topology("activations")) as topology:
        topology.deactivate()
        until(lambda: not topology._active)
        topology.activate()
        assert topology.wait(30)
        assert "raised in activate: SystemExit: 3" in str(topology.error)
