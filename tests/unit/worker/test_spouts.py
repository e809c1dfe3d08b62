"""Spouts that emit too much at once, groups of emits, activation."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import Mock

import pytest

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.errors import EmitError
from stormspark.local import submit
from tests.unit.worker.components import Call, Collect, Script
from tests.unit.worker.rig import Rig, two


class Flood(Spout):
    """Emits ``n`` tuples, or without end, inside one next_tuple; notes what it hears and when it was unwound."""

    def __init__(self, n: int | None, reliable: bool) -> None:
        self.n, self.reliable = n, reliable

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.emitted, self.inside = collector, 0, False
        self.heard: list[Any] = []

    def next_tuple(self) -> None:
        self.inside = True
        try:
            while self.n is None or self.emitted < self.n:
                self.collector.emit((self.emitted,), message_id=self.emitted if self.reliable else None)
                self.emitted += 1
        finally:
            self.inside = False

    def ack(self, message_id: Any) -> None:
        self.heard.append((message_id, self.inside))

    def deactivate(self) -> None:
        self.heard.append(("deactivate", self.inside))

    def close(self) -> None:
        self.heard.append(("close", self.inside))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


def marks(high: int) -> dict[str, int]:
    """Settings of the water marks."""
    return {"stormspark.queue.high.mark.tuples": high, "stormspark.queue.low.mark.tuples": 10}


def flood(n: int | None, reliable: bool) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("a", Flood(n, reliable))
    builder.set_bolt("b", Collect()).shuffle_grouping("a")
    return builder


def test_a_long_next_tuple_is_suspended_in_emit_and_hears_its_acks_when_it_has_returned() -> None:
    """B1, B3, E27: bolts have their turn meanwhile; nothing is lost, and no ack comes inside the call."""
    rig = Rig(
        flood(10_000, reliable=True),
        1,
        **marks(20_000),
    )
    rig.batches(4)
    (spout,), (collect,) = rig.users("a"), rig.users("b")
    assert [n for _, n in collect.seen] == list(range(10_000))
    assert sorted(spout.heard) == [(n, False) for n in range(10_000)]
    (task,) = rig.tasks("b")
    assert task.waiting == 0


@pytest.mark.slow
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.long), 2])
def test_a_next_tuple_without_end_ends_no_batch_and_keeps_the_queues_short(workers: int) -> None:
    """B1, B4: a spout that emits for ever inside one call is asked like any other."""
    conf = {
        "stormspark.queue.high.mark.tuples": 5000,
        "stormspark.queue.low.mark.tuples": 10,
        "stormspark.batch.target.ms": 50,
    }
    builder = flood(None, reliable=False)
    running = submit(builder.create_topology("flood"), conf={"topology.workers": workers, **conf})
    try:
        deadline = time.monotonic() + 120
        while running.statistics().components["b"].executed < 50_000:
            assert time.monotonic() < deadline
            assert running.statistics().total("queued") < 10_000
            time.sleep(0.02)
        spout = running.workers.workers[0].tasks
        (flooding,) = [t.spout for t in spout.values() if t.component.id == "a"]  # type: ignore[attr-defined]
        assert flooding.inside
    finally:
        running.stop()
    assert flooding.heard == [("deactivate", False), ("close", False)]  # unwound first


def test_an_endless_next_tuple_that_waits_for_acks_is_reported_and_stopped() -> None:
    """B3: acks wait for the call's return, so there is a limit, and a clear error."""
    rig = Rig(
        flood(None, reliable=True),
        1,
        **marks(5000),
    )
    rig.batches(20)
    (task,) = rig.tasks("a")
    report = rig.errors[0]
    assert "next_tuple has emitted" in report and "acks and fails wait for its return" in report
    assert "Emit fewer tuples in one call" in report and "test_spouts.py" in report
    assert 5000 <= task.read_counters().emitted <= 5000 + 2 * 1024
    (collect,) = rig.users("b")
    assert len(collect.seen) == task.counters.emitted


def test_a_suspended_call_goes_on_after_deactivate_which_the_spout_hears_when_it_has_returned() -> None:
    """B3, B13: as in Storm. Otherwise its acks would wait until the spout is active again."""
    rig = Rig(flood(6000, reliable=True), 1, **marks(20_000))
    (task,), (spout,) = rig.tasks("a"), rig.users("a")
    task.ask(1, 1.0)
    assert task.calls.suspended and spout.emitted
    rig.cluster.set_active(False)
    assert spout.heard == [], "nothing comes inside the call"
    rig.batches(4)
    assert not task.calls.suspended and spout.emitted == 6000
    assert spout.heard[0] == ("deactivate", False) and len(spout.heard) == 1 + 6000
    rig.cluster.set_active(True)
    rig.batches(1)
    rig.cluster.close()
    assert [what for what, _ in spout.heard[-2:]] == ["deactivate", "close"]


def test_a_spout_that_is_deactivated_and_activated_during_a_suspended_call_hears_of_neither() -> None:
    rig = Rig(flood(6000, reliable=False), 1, **marks(20_000))
    (task,), (spout,) = rig.tasks("a"), rig.users("a")
    task.ask(1, 1.0)
    rig.cluster.set_active(False)
    rig.cluster.set_active(True)
    rig.batches(4)
    assert spout.emitted == 6000 and spout.heard == []


def test_a_topology_that_stops_during_a_suspended_call_of_a_deactivated_spout_calls_deactivate_and_close() -> (
    None
):
    rig = Rig(flood(6000, reliable=False), 1, **marks(20_000))
    (task,), (spout,) = rig.tasks("a"), rig.users("a")
    task.ask(1, 1.0)
    rig.cluster.set_active(False)
    rig.cluster.close()
    assert spout.heard == [("deactivate", False), ("close", False)]


def test_an_error_in_a_deactivate_that_came_later_stops_the_topology() -> None:
    rig = Rig(flood(6000, reliable=False), 1, **marks(20_000))
    (task,), (spout,) = rig.tasks("a"), rig.users("a")
    task.ask(1, 1.0)
    rig.cluster.set_active(False)
    spout.deactivate = Mock(side_effect=OSError("no"))
    rig.batches(4)
    assert task.fatal is not None and "raised in deactivate: OSError: no" in task.fatal.text


class Grouped(Spout):
    """Emits one message of several tuples; ``error`` ends the block, and it is caught."""

    def __init__(self, tuples: int, error: bool = False) -> None:
        self.tuples, self.error = tuples, error

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.done = collector, False
        self.heard: list[Any] = []

    def next_tuple(self) -> None:
        if self.done:
            return
        self.done = True
        try:
            with self.collector.group("order") as group:
                for number in range(self.tuples):
                    group.emit((number,))
                    group.emit((number,), stream="more")
                if self.error:
                    raise KeyError("no price")
        except KeyError:
            pass
        try:
            group.emit((0,))
        except EmitError as error:
            self.heard.append(str(error))

    def ack(self, message_id: Any) -> None:
        self.heard.append(("ack", message_id))

    def fail(self, message_id: Any) -> None:
        self.heard.append(("fail", message_id, self.collector.verdict.reason))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))
        declarer.declare_stream("more", Fields("n"))


def grouped(spout: Spout, bolt: Any, more: Any, workers: int, **conf: Any) -> Rig:
    builder = TopologyBuilder()
    builder.set_spout("a", spout)
    builder.set_bolt("b", bolt, 2).shuffle_grouping("a")
    builder.set_bolt("c", more, 2).shuffle_grouping("a", "more")
    return Rig(builder, workers, **conf)


def ack(bolt: Any, tup: Any) -> None:
    bolt.collector.ack(tup)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_group_of_emits_under_one_id_gets_one_verdict(workers: int) -> None:
    """X68, beside B6: acked when all of its tuples are."""
    rig = grouped(Grouped(3), Call(ack), Call(ack), workers)
    rig.batches(3)
    (spout,) = rig.users("a")
    closed, verdict = spout.heard
    assert verdict == ("ack", "order")
    assert "the group of message 'order' is not open" in closed
    assert rig.tasks("a")[0].account.pending == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_one_failed_tuple_fails_the_whole_group_once(workers: int) -> None:
    """When one tuple of a group fails, the group's message fails once (X68, E24)."""

    def fail_one(bolt: Any, tup: Any) -> None:
        (bolt.collector.fail if tup["n"] == 1 else bolt.collector.ack)(tup)

    rig = grouped(Grouped(3), Call(ack), Call(fail_one), workers)
    rig.batches(3)
    (spout,) = rig.users("a")
    assert spout.heard[1:] == [("fail", "order", None)]


def test_a_group_whose_block_raises_fails_with_the_reason() -> None:
    """X68: half a message is no message."""
    rig = grouped(Grouped(2, error=True), Call(ack), Call(ack), 1)
    rig.batches(2)
    (spout,) = rig.users("a")
    assert spout.heard[1:] == [("fail", "order", "its group of emits ended with KeyError: 'no price'")]


def test_an_empty_group_is_acked_and_without_ackers_the_ack_comes_at_its_end() -> None:
    """An empty group is acked, and without ackers the ack comes at the end of the group (X68, B7, B8)."""
    rig = grouped(Grouped(0), Call(ack), Call(ack), 1)
    rig.batches(2)
    assert rig.users("a")[0].heard[1:] == [("ack", "order")]
    rig = grouped(Grouped(2), Call(ack), Call(ack), 1, **{"topology.acker.executors": 0})
    rig.batches(1)
    assert rig.users("a")[0].heard[0] == ("ack", "order")


class Watched(Script):
    """Notes the order of its life."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.heard.append("open")

    def activate(self) -> None:
        self.heard.append("activate")

    def deactivate(self) -> None:
        self.heard.append("deactivate")

    def close(self) -> None:
        self.heard.append("close")


def test_a_topology_submitted_inactive_opens_its_spouts_when_it_is_activated() -> None:
    """B2, J4: activate comes right after open, and after each deactivate."""
    rig = Rig(two(Collect(), Watched([(1,)])), 1, active=False)
    rig.batches(2)
    (task,) = rig.tasks("a")
    assert not task.life.is_open
    rig.cluster.set_active(True)
    (spout,) = rig.users("a")
    assert spout.heard == ["open", "activate"]
    rig.cluster.set_active(False)
    rig.cluster.set_active(False)
    rig.cluster.set_active(True)
    rig.cluster.close()
    assert spout.heard == ["open", "activate", "deactivate", "activate", "deactivate", "close"]


def test_a_topology_that_was_never_active_closes_nothing() -> None:
    """B2: what was not opened is not closed."""
    rig = Rig(two(Collect(), Watched([(1,)])), 1, active=False)
    rig.batches(1)
    rig.cluster.close()
    assert not rig.tasks("a")[0].life.is_open


def test_acks_and_timeouts_go_on_while_inactive() -> None:
    """B13: deactivate stops next_tuple only."""

    def hold(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup)

    rig = Rig(
        two(Call(hold), [(1,), (2,)]),
        1,
        **{"topology.message.timeout.secs": 5, "stormspark.clock.gap.ms": 60_000},
    )
    rig.batches(1)
    rig.cluster.set_active(False)
    (spout,), (bolt,) = rig.users("a"), rig.users("b")
    bolt.collector.ack(bolt.kept[0])
    rig.batches(1)
    assert spout.heard == [("ack", 0)]
    for _ in range(3):
        rig.advance(5.0)
    assert [heard[:2] for heard in spout.heard] == [("ack", 0), ("fail", 1)]
