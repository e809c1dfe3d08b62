"""A spout's life, and its trees."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark.compat.heronpy.components import Bolt, Spout
from stormspark.compat.heronpy.topology import TopologyBuilder
from tests.unit.compat.heronpy.rig import run

CALLS: list[Any] = []


class Calls(Spout):
    outputs = ("n",)

    def initialize(self, config: dict[str, Any], context: Any) -> None:
        CALLS.append("initialize")
        self.config = config
        self.n = 0

    def next_tuple(self) -> None:
        if self.n < self.config["n"]:
            self.n += 1
            tup_id = {"id": self.n} if self.config.get("unhashable") else self.n
            self.emit([self.n], tup_id=tup_id)

    def ack(self, tup_id: Any) -> None:
        CALLS.append(("ack", tup_id))

    def fail(self, tup_id: Any) -> None:
        CALLS.append(("fail", tup_id))

    def activate(self) -> None:
        CALLS.append("activate")

    def deactivate(self) -> None:
        CALLS.append("deactivate")

    def close(self) -> None:
        CALLS.append("close")


class Hold(Bolt):
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        self.held: list[Any] = []

    def process(self, tup: Any) -> None:
        self.held.append(tup)


class Fails(Hold):
    def process(self, tup: Any) -> None:
        self.fail(tup)


class Oblivious(Spout):
    outputs = ("n",)


class Wrong(Spout):
    outputs = ("n",)

    def next_tuple(self) -> None:
        (self.emit([1, 2]) if self.delegate.collector.pending_count == 0 else None)


def built(bolt: Any = Hold, spout: Any = Calls, **config: Any) -> TopologyBuilder:
    CALLS.clear()
    builder = TopologyBuilder("t")
    numbers = builder.add_spout("numbers", spout, 1)
    builder.add_bolt("bolt", bolt, 1, [numbers])
    builder.set_config({"n": 3, **{key.replace("__", "."): value for key, value in config.items()}})
    return builder


MODE = "topology__reliability__mode"


def test_the_order_of_calls() -> None:
    """B21: initialize, then what it emits; activate only after deactivate; close at the end."""
    rig = run(built(n=1))
    rig.batches(1)
    assert CALLS == ["initialize", ("ack", 1)]
    rig.cluster.set_active(False)
    rig.batches(1)
    rig.cluster.set_active(True)
    rig.batches(1)
    assert CALLS[2:] == ["deactivate", "activate"]
    rig.cluster.close()
    assert CALLS[4:] == ["deactivate", "close"]


def test_timeouts_are_exact() -> None:
    """B25, E19: a tree fails between one timeout and a tenth more, where Storm's takes up to two."""
    rig = run(built(**{MODE: "ATLEAST_ONCE", "topology__message__timeout__secs": 30}))
    rig.batches(1)
    began = rig.clock()
    while len(CALLS) == 1 and rig.clock() < began + 60:
        rig.advance(0.1)
    # The tuple waits in the bolt's hands, so nothing resets its timeout.
    assert CALLS[1:] == [("fail", 1), ("fail", 2), ("fail", 3)]
    assert 30 <= rig.clock() - began <= 33.2


def test_timeouts_can_be_off() -> None:
    """A43, B25: topology.enable.message.timeouts."""
    rig = run(built(**{MODE: "ATLEAST_ONCE", "topology__enable__message__timeouts": False}))
    rig.advance(1)
    for _ in range(20):
        rig.advance(60)
    assert CALLS == ["initialize"]


def test_max_spout_pending() -> None:
    """A43, B24: so many trees are open at most, where they are tracked; emitting nothing is no harm."""
    rig = run(built(n=1000, **{MODE: "ATLEAST_ONCE"}))
    rig.batches(5)
    (spout,) = [task for task in rig.workers[0].tasks.values() if task.component.kind == "spout"]
    assert spout.read_counters().emitted == 100
    rig = run(built(n=1000))
    rig.batches(5)
    (spout,) = [task for task in rig.workers[0].tasks.values() if task.component.kind == "spout"]
    assert spout.read_counters().emitted == 1000


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "ATMOST_ONCE"])
def test_any_object_is_an_id(mode: str) -> None:
    """B21: also one that is no key of a dict."""
    rig = run(built(Fails, unhashable=True, n=1, **{MODE: mode}))
    rig.batches(2)
    assert CALLS[1:] == [("fail" if mode == "ATLEAST_ONCE" else "ack", {"id": 1})]


def test_next_tuple_is_needed() -> None:
    """B21: NotImplementedError that names the class."""
    rig = run(built(spout=Oblivious))
    rig.batches(1)
    assert any("Oblivious has no next_tuple()" in error for error in rig.errors)


def test_what_does_not_fit_is_reported() -> None:
    """B22: RuntimeError with the component, the stream, and what was expected."""
    rig = run(built(spout=Wrong))
    rig.batches(1)
    assert any(
        "numbers: Number of fields emitted in stream 'default' does not match what's expected. Expected: 1, Observed: 2"
        in e
        for e in rig.errors
    )
