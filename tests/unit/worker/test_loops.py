"""Tuples that go round for ever: batches end, spouts have their turn, nothing grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.local import submit
from stormspark.local.topology import LocalTopology
from tests.conformance.cycle_components import Forward, Token
from tests.unit.worker.components import Call, Collect, Script
from tests.unit.worker.rig import Rig

_OFF = {"topology.enable.message.timeouts": False}


def endless(reliable: bool, numbers: Any, forwarders: int = 3) -> TopologyBuilder:
    """A token goes round among the tasks of one bolt; other messages go straight to another one."""
    builder = TopologyBuilder()
    builder.set_spout("token", Token(reliable))
    forward = builder.set_bolt("forward", Forward(), forwarders)
    forward.shuffle_grouping("token").shuffle_grouping("forward")
    builder.set_spout("numbers", numbers)
    builder.set_bolt("collect", Collect(), 2).shuffle_grouping("numbers")
    return builder


class OneABatch(Script):
    """Has one number when it is asked for the first time at a moment of the clock, which a test moves on."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.now_ms = context.now_ms
        self.last = -1

    def next_tuple(self) -> None:
        if self.now_ms() != self.last:
            self.last = self.now_ms()
            super().next_tuple()


@pytest.mark.parametrize("reliable", [False, True])
@pytest.mark.parametrize("workers", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3))])
def test_an_endless_token_lets_batches_end_and_nothing_grows(workers: int, reliable: bool) -> None:
    """A15, E30: spouts are asked and hear their acks meanwhile; sizes are the same after 10 batches and after 100."""
    builder = endless(reliable, OneABatch([(n,) for n in range(200)]))
    rig = Rig(builder, workers, topology_enable_message_timeouts=False)

    def sizes() -> tuple[Any, ...]:
        ledgers = [worker.statistics() for worker in rig.workers]
        return (  # wherever the token is
            sum(ledger.open for ledger in ledgers),
            sum(worker.backlog - worker.statistics().outgoing for worker in rig.workers),
            sum(task.waiting for task in rig.tasks("forward")) <= 1,
            sum(len(task.held()) for task in rig.tasks("forward")),
            sum(ledger.known_outside for ledger in ledgers) <= 1,
            sum(ledger.parts for ledger in ledgers) <= 1,
            all(ledger.outgoing <= 1 for ledger in ledgers),
        )

    def run(batches: int) -> None:
        for _ in range(batches):
            rig.advance(0.01)

    (numbers,) = rig.users("numbers")
    run(10)
    early, executed, heard = sizes(), forwarded(rig), len(numbers.heard)
    run(90)
    assert sizes() == early == (int(reliable), 1, True, 0, True, True, True)
    assert forwarded(rig) >= executed + 90, "it goes round all the time"
    assert heard >= 9 and len(numbers.heard) >= 99, "one message a batch is acked"
    assert {what for what, _ in numbers.heard} == {"ack"}
    assert rig.users("token")[0].heard == []


def forwarded(rig: Rig) -> int:
    return sum(task.read_counters().executed for task in rig.tasks("forward"))


def test_what_crosses_workers_goes_on_in_the_next_batch() -> None:
    """A15: a loop's edges count once, so a batch has room for so many rounds, and the message is open until the last."""

    def turn(bolt: Any, tup: Any) -> None:
        if tup["value"]:
            bolt.collector.emit((tup["value"] - 1,), anchors=[tup])
        bolt.collector.ack(tup)

    builder = TopologyBuilder()
    builder.set_spout("a", Script([(20,)]))
    builder.set_bolt("b", Call(turn)).shuffle_grouping("a").shuffle_grouping("c")
    builder.set_bolt("c", Call(turn)).shuffle_grouping("b")
    rig = Rig(builder, 2)
    homes = {task.component.id: worker.index for worker in rig.workers for task in worker.tasks.values()}
    assert homes["b"] != homes["c"]
    supersteps = rig.cluster.plan.last_superstep + 1
    rig.batches(2)
    executed = sum(task.read_counters().executed for name in "bc" for task in rig.tasks(name))
    assert executed <= 2 * supersteps and rig.users("a")[0].heard == []
    rig.batches(20)
    executed = sum(task.read_counters().executed for name in "bc" for task in rig.tasks(name))
    assert executed == 21 and rig.users("a")[0].heard == [("ack", 0)]
    assert all(worker.statistics().open == 0 and worker.backlog == 0 for worker in rig.workers)


def test_a_message_that_goes_round_for_ever_times_out_and_its_token_goes_on() -> None:
    """A15, E10, E11: with timeouts, as in Storm; the parts of the ended tree do not gather."""
    rig = Rig(endless(True, Script([])), 2, topology_message_timeout_secs=1)
    for _ in range(100):
        rig.advance(0.25)
    assert rig.users("token")[0].heard == ["token"]
    before = forwarded(rig)
    for _ in range(20):
        rig.advance(0.25)
    assert forwarded(rig) >= before + 20
    for worker in rig.workers:
        statistics = worker.statistics()
        assert (statistics.open, statistics.known_outside) == (0, 0)
        assert statistics.parts <= 2 and statistics.outgoing <= 2


class Steady(Script):
    """Has a number whenever it is asked."""

    def next_tuple(self) -> None:
        self.next += 1
        self.collector.emit((self.next,), message_id=self.next)


#: A machine that gives its time to others makes batches longer and never shorter: it is asked again for so long.
_PATIENCE_SECS = 60.0


def runs_well(running: LocalTopology, seconds: float, most: float) -> bool:
    """Whether it does, after a while: batches of less than ``most`` seconds, in which numbers are acked and the loop goes on."""
    deadline = time.monotonic() + _PATIENCE_SECS
    while True:
        batch, acked, executed = pace(running, seconds)
        if batch < most and acked > 0 and executed > 0:
            return True
        if time.monotonic() > deadline:
            return False


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECS
    while not done():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def pace(running: LocalTopology, seconds: float) -> tuple[float, int, int]:
    """Let it run for so long: seconds a batch, acks of numbers, executions of the loop."""
    before, began = running.statistics(), time.monotonic()
    time.sleep(seconds)
    after, took = running.statistics(), time.monotonic() - began
    batches = after.batches - before.batches
    return (
        took / (batches or 0.5),
        after.components["numbers"].acked - before.components["numbers"].acked,
        after.components["forward"].executed - before.components["forward"].executed,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "reliable"), [pytest.param(1, True, marks=pytest.mark.long), (3, False)])
def test_on_real_time_a_batch_with_a_token_ends_soon_and_so_does_the_topology(
    workers: int, reliable: bool
) -> None:
    """A15, B13: batches are about as long as their target; it is deactivated, activated and stopped at once."""
    conf = {"topology.workers": workers, "stormspark.batch.target.ms": 200, **_OFF}
    running = submit(endless(reliable, Steady([])).create_topology("endless"), conf=conf)
    try:
        assert runs_well(running, 1.0, 0.2 * 3)
        running.deactivate()
        before = running.statistics().batches
        until(lambda: running.statistics().batches >= before + 2)  # one may have begun before
        acked = running.statistics().components["numbers"].acked
        executed = running.statistics().components["forward"].executed
        until(lambda: running.statistics().components["forward"].executed > executed)
        assert running.statistics().components["numbers"].acked == acked
        running.activate()
        assert runs_well(running, 1.0, 0.2 * 3)
    finally:
        began = time.monotonic()
        running.stop()
    assert time.monotonic() - began < 30, "it waits for no end of the loop"
    assert running.error is None


@pytest.mark.slow
def test_the_supersteps_of_a_batch_share_the_time_of_loops() -> None:
    """A15: a token that stays in its worker does not fill every superstep of a batch, nor take the spouts' time."""
    builder = TopologyBuilder()
    builder.set_spout("token", Token(), 2)
    forward = builder.set_bolt("forward", Forward(), 2)
    forward.local_or_shuffle_grouping("token").local_or_shuffle_grouping("forward")
    builder.set_spout("numbers", Steady([]))
    source = "numbers"
    for position in range(4):  # so many exchanges
        name = f"b{position}"
        builder.set_bolt(name, Call(pass_on), 2).fields_grouping(source, Fields("value"))
        source = name
    conf = {
        "topology.workers": 2,
        "stormspark.batch.target.ms": 200,
        "topology.max.spout.pending": 50,
        **_OFF,
    }
    running = submit(builder.create_topology("shared"), conf=conf)
    try:
        assert runs_well(running, 2.0, 0.2 * 2.5)
    finally:
        running.kill()


def pass_on(bolt: Any, tup: Any) -> None:
    bolt.collector.emit(tup.values, anchors=[tup])
    bolt.collector.ack(tup)


@pytest.mark.slow
def test_a_token_leaves_busy_spouts_their_share() -> None:
    """A15, W1: the spouts' quantum does not shrink because something goes round."""
    conf = {"stormspark.batch.target.ms": 100, "stormspark.superstep.deadline.ms": 5000, **_OFF}
    running = submit(endless(False, Steady([]), forwarders=1).create_topology("share"), conf=conf)
    try:
        time.sleep(1.0)
        (worker,) = running.workers.workers
        until(lambda: worker.round_clock.quantum.seconds > 0.1 / 4)
    finally:
        running.kill()
