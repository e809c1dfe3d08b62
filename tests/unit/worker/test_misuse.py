"""Bolts that use their collector in ways that make no sense: a clear word, and no harm to anybody's trees."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import BasicBolt, TopologyBuilder
from tests.unit.worker.components import Call, Script, fails_of
from tests.unit.worker.rig import Rig, two

KEPT: list[Any] = []


class Keep(BasicBolt):
    """Keeps what it was given, where others find it."""

    def execute(self, tup: Any, collector: Any) -> None:
        KEPT.append(tup)


class Hold(Call):
    """Keeps its tuples there too, and acks none."""

    def __init__(self) -> None:
        super().__init__(None)

    def execute(self, tup: Any) -> None:
        KEPT.append(tup)


class Meddle(Call):
    """Does something to what others keep, then acks its own."""

    def __init__(self, what: str) -> None:
        super().__init__(None)
        self.what = what

    def execute(self, tup: Any) -> None:
        for other in KEPT:
            if self.what == "anchor":
                self.collector.emit((1,), anchors=[other])
            else:
                getattr(self.collector, self.what)(other)
        self.collector.ack(tup)


@pytest.fixture(autouse=True)
def _keep_nothing() -> None:
    KEPT.clear()


def meddling(keeper: Any, what: str) -> Rig:
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(1,), (2,)]))
    builder.set_spout("later", Script([(3,)]))
    builder.set_bolt("keep", keeper).shuffle_grouping("a")
    builder.set_bolt("meddle", Meddle(what)).shuffle_grouping("later")
    rig = Rig(builder, 1)
    for worker in rig.workers:
        worker.validate()
    return rig


@pytest.mark.parametrize("what", ["ack", "fail"])
def test_a_tuple_that_another_task_holds_can_not_be_closed(what: str) -> None:
    """E14: acks what is not its own: reported; its tree stays open until its own bolt acks."""
    rig = meddling(Hold(), what)
    rig.batches(2)
    (spout,) = rig.users("a")
    assert spout.heard == [] and len(KEPT) == 2
    assert all(
        f"{what} of Tuple(" in error and "which another task was given" in error for error in rig.errors
    )
    assert len(rig.errors) == 2
    (keeper,) = rig.users("keep")
    for tup in KEPT:
        keeper.collector.ack(tup)
    rig.batches(1)
    assert sorted(spout.heard) == [("ack", 0), ("ack", 1)]


@pytest.mark.parametrize("what", ["ack", "fail"])
def test_a_tuple_that_a_basic_bolt_kept_is_acked_already(what: str) -> None:
    """A tuple that a basic bolt kept has its ack already, and a later verdict is an error (C5, E14)."""
    rig = meddling(Keep(), what)
    rig.batches(2)
    (spout,), (later,) = rig.users("a"), rig.users("later")
    assert sorted(spout.heard) == [("ack", 0), ("ack", 1)]
    assert later.heard == [("ack", 0)]
    assert all("which is acked or failed already" in error for error in rig.errors) and len(rig.errors) == 2


def test_an_emit_can_not_be_anchored_to_what_a_basic_bolt_kept() -> None:
    """C5, E14: it raises in the bolt that tries; the tuple it had at hand fails."""
    rig = meddling(Keep(), "anchor")
    rig.batches(2)
    (later,) = rig.users("later")
    (fail,) = fails_of(later)
    assert len(later.heard) == 1
    assert "is anchored to Tuple(" in fail.reason and "emit first, then ack" in fail.reason


@pytest.mark.parametrize("method", ["ack", "fail"])
def test_what_is_no_tuple_can_not_be_closed(method: str) -> None:
    """C2: the error says who did it and what came."""
    rig = Rig(two(Call(lambda bolt, tup: getattr(bolt.collector, method)(tup["value"])), [("x",)]), 1)
    rig.batches(1)
    assert (
        f"component 'b', task 3: {method} takes a tuple that execute was given, got 'x' of type str"
        in rig.errors[0]
    )


def test_what_is_no_tuple_can_not_be_an_anchor() -> None:
    """An anchor that is no tuple is an error, and fails the message (C2)."""
    rig = Rig(two(Call(lambda bolt, tup: bolt.collector.emit((1,), anchors=["x"])), [("x",)]), 1)
    rig.batches(1)
    assert "anchors are tuples that execute was given, got 'x' of type str" in rig.errors[0]
    assert len(fails_of(rig.users("a")[0])) == 1


def test_a_bolt_that_acks_everything_twice_harms_no_tree() -> None:
    """E14: reported, and each message is acked once."""

    def twice(bolt: Any, tup: Any) -> None:
        bolt.collector.ack(tup)
        bolt.collector.ack(tup)
        bolt.collector.fail(tup)

    rig = Rig(two(Call(twice), [(n,) for n in range(4)]), 2)
    rig.batches(3)
    (spout,), (task,) = rig.users("a"), rig.tasks("b")
    assert sorted(spout.heard) == [("ack", n) for n in range(4)]
    assert (task.counters.acked, task.counters.failed, task.counters.errors) == (4, 0, 8)
