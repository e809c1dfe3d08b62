"""Tuples that wait in our own queues do not time out; those that users' code has do."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import BasicBolt, Bolt, TopologyBuilder
from tests.conformance.cycle_components import Forward, Token
from tests.unit.worker.components import Call, Script
from tests.unit.worker.rig import Rig, two

TIMEOUT = {"topology.message.timeout.secs": 10, "stormspark.clock.gap.ms": 60_000}


class Slow(BasicBolt):
    """A tuple takes a second of its worker's clock, which tests drive."""

    clock: Any = None

    def execute(self, tup: Any, collector: Any) -> None:
        assert Slow.clock is not None
        Slow.clock.advance(1.0)


class ForgetsOdd(Bolt):
    """A second a tuple; what is odd is never acked."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        Slow.clock.advance(1.0)
        if tup.values[0] % 2 == 0:
            self.collector.ack(tup)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(builder: TopologyBuilder, workers: int) -> Rig:
        rig = Rig(builder, workers, **TIMEOUT)
        monkeypatch.setattr(Slow, "clock", rig.clock)
        return rig

    return make


@pytest.mark.parametrize("workers", [1, 2])
def test_what_waits_for_a_slow_bolt_does_not_time_out(workers: int, slow: Any) -> None:
    """W2, W3: the last of 200 tuples waits for 20 timeouts, and is acked; here and in another worker."""
    rig = slow(two(Slow(), [(n,) for n in range(200)]), workers)
    rig.batches(120)
    (spout,) = rig.users("a")
    assert rig.clock() > 190
    assert spout.heard == [("ack", n) for n in range(200)]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_the_bolt_forgot_times_out_while_others_wait(workers: int, slow: Any) -> None:
    """E10, W2: only waiting spares a tuple; once a bolt has it, its time counts."""
    rig = slow(two(ForgetsOdd(), [(n,) for n in range(60)]), workers)
    rig.batches(40)
    for _ in range(3):
        rig.advance(11.0)
    (spout,) = rig.users("a")
    outcome = {said[1]: said[0] for said in spout.heard}
    assert {n for n, said in outcome.items() if said == "ack"} == set(range(0, 60, 2))
    assert {n for n, said in outcome.items() if said == "fail"} == set(range(1, 60, 2))
    heard = [said[1] for said in spout.heard]
    assert heard.index(1) < heard.index(58), "it did not have to wait for the queue's end"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_what_goes_round_in_a_loop_times_out(workers: int) -> None:
    """A15, E10: it waits again and again, but never long."""
    builder = TopologyBuilder()
    builder.set_spout("token", Token(True))
    builder.set_bolt("forward", Forward(), 2).shuffle_grouping("token").shuffle_grouping("forward")
    rig = Rig(builder, workers, **TIMEOUT)
    rig.batches(2)
    for _ in range(100):
        rig.advance(0.25)
    (task,) = rig.tasks("token")
    assert task.read_counters().timed_out == 1


def test_one_tree_with_a_tuple_that_waits_and_one_that_is_lost_lives_as_long_as_one_waits(slow: Any) -> None:
    """W2: as Storm's own reset of a timeout does, waiting spares the whole tree."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(30)]))
    builder.set_bolt("b", Slow()).shuffle_grouping("a")
    builder.set_bolt("c", Call(lambda bolt, tup: None)).shuffle_grouping("a")
    rig = slow(builder, 1)
    rig.batches(9)
    (spout,) = rig.users("a")
    assert rig.clock() >= 25
    assert len(spout.heard) < 30
    rig.advance(25.0, 3)
    assert sorted(said[1] for said in spout.heard) == list(range(30))
    assert {said[0] for said in spout.heard} == {"fail"}
