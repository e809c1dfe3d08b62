"""What threads of users' own emit, where batches are transactions: it ends no promise, and keeps no batch from its end."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

import pytest

from stormspark import BasicBolt, Bolt, Fields, TopologyBuilder
from stormspark.api import SourceSpout
from stormspark.api.state import StatefulComponent
from stormspark.worker import foreign_calls
from tests.unit.worker.components import Collect, InAThread, Script
from tests.unit.worker.rig import Rig
from tests.unit.worker.test_windows_as_state import rows

ONCE = {"stormspark.exactly.once": True}


#: Whose thread is to emit once more, and an event for when it has.
wanted: list[queue.Queue[threading.Event]] = []
#: What `Flaky` has done.
raised: list[int] = []


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    wanted.clear()
    raised.clear()


class Talks(Bolt):
    """Its thread emits once more whenever it is asked to, whatever the bolt itself does."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.emitted = collector, 0
        wanted[:] = [queue.Queue()]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            done = wanted[0].get()
            self.collector.emit((self.emitted,))
            self.emitted += 1
            done.set()

    def execute(self, tup: Any) -> None:
        self.collector.emit(tup.values, anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class Asks(Collect):
    """Has that thread emit for each tuple it is given: there is always a call that waits."""

    def execute(self, tup: Any, collector: Any) -> None:
        super().execute(tup, collector)
        done = threading.Event()
        wanted[0].put(done)
        assert done.wait(120)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_thread_that_never_pauses_keeps_no_batch_from_its_end(workers: int) -> None:
    """C42, W26: what comes while a batch is worked off is for the next one, and none of it is lost."""
    builder = TopologyBuilder()
    builder.set_spout("once", Script([(-1,)]))
    builder.set_bolt("talks", Talks()).shuffle_grouping("once")
    builder.set_bolt("asks", Asks()).shuffle_grouping("talks")
    rig = Rig(builder, workers, **ONCE)
    (asks,) = rig.users("asks")
    for batch in range(1, 51):
        rig.batches(1)
        assert len(asks.seen) <= batch, "a batch went on as long as the thread did"
    assert [value for _, value in asks.seen] == list(range(-1, 49))
    assert rig.errors == []


class Parallel(Bolt):
    """Has a thread emit for each tuple, waits for it, and acks."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        thread = threading.Thread(target=self.collector.emit, args=(tup.values,), kwargs={"anchors": [tup]})
        thread.start()
        thread.join()
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class Rows(SourceSpout):
    def __init__(self) -> None:
        super().__init__(["value"])

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class Sums(StatefulComponent, BasicBolt):
    """How often each value came."""

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Any, collector: Any) -> None:
        self.state[tup[0]] = self.state.get(tup[0], 0) + 1

    def pre_save(self, checkpoint_id: int) -> None:
        pass


class Flaky(BasicBolt):
    """Raises once, for row 3."""

    def execute(self, tup: Any, collector: Any) -> None:
        if tup[0] == 3 and not raised:
            raised.append(3)
            raise ValueError("once")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_what_a_thread_emits_while_its_bolt_waits_for_it_belongs_to_the_batch(workers: int) -> None:
    """C42, E5: it is not lost when the next batch is taken back, and the tuple's tree does not end before it has begun there."""
    builder = TopologyBuilder()
    builder.set_spout("a", Rows())
    builder.set_bolt("b", Parallel()).shuffle_grouping("a")
    builder.set_bolt("sum", Sums()).global_grouping("b")
    builder.set_bolt("flaky", Flaky()).global_grouping("a")
    rig = Rig(builder, workers, **ONCE)
    (source,) = rig.tasks("a")
    for n in range(6):
        rig.cluster.add_rows(source.id, 0, rows(n))
        rig.batches(1)
        assert not any(worker.ledger.statistics().open for worker in rig.workers)
    assert raised == [3]
    (sums,) = rig.users("sum")
    assert dict(sums.state.items()) == dict.fromkeys(range(6), 1)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_all_of_a_batch_is_there_when_it_has_ended(workers: int) -> None:
    """W26: however many calls wait."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(500)]))
    builder.set_bolt("b", Parallel()).shuffle_grouping("a")
    builder.set_bolt("sum", Sums()).global_grouping("b")
    rig = Rig(builder, workers, **ONCE)
    rig.batches(1)
    (sums,) = rig.users("sum")
    assert len(dict(sums.state.items())) == 500


class Bounded(Bolt):
    """At most so many tuples are with its thread at a time."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.work: queue.Queue[Any] = queue.Queue()
        self.room = threading.Semaphore(100)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            tup = self.work.get()
            self.collector.emit(tup.values, anchors=[tup])
            self.collector.ack(tup)
            self.room.release()

    def execute(self, tup: Any) -> None:
        assert self.room.acquire(timeout=30)
        self.work.put(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_bolt_that_bounds_what_its_thread_has_does_not_wait_for_ever(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W26: in a batch of many times the calls that may wait."""
    monkeypatch.setattr(foreign_calls.Mailbox.__init__, "__defaults__", (2000,))
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(8000)]))
    builder.set_bolt("b", Bounded()).shuffle_grouping("a")
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, workers, **ONCE)
    (collect,) = rig.users("c")
    deadline = time.monotonic() + 120
    while len(collect.seen) < 8000:
        assert time.monotonic() < deadline
        rig.batches(1)
    assert sorted(value for _, value in collect.seen) == list(range(8000))


class Position(StatefulComponent, InAThread):
    """Its thread emits, and moves the position that is its state."""

    def init_state(self, state: Any) -> None:
        self.state = state

    def work(self) -> None:
        self.collector.emit((1,))

    def pre_save(self, checkpoint_id: int) -> None:
        self.state["position"] = 1


def test_a_spout_with_state_emits_on_its_own_thread_only() -> None:
    """C37, C42: a position and the tuple before it could come into different batches; the thread hears why."""
    builder = TopologyBuilder()
    builder.set_spout("a", Position())
    builder.set_bolt("b", Collect()).shuffle_grouping("a")
    rig = Rig(builder, 1, **ONCE)
    rig.batches(3)
    (spout,), (bolt,) = rig.users("a"), rig.users("b")
    (raised,) = spout.raised
    assert "a[0]: a thread of its own has emitted" in str(raised) and "queue.Queue" in str(raised)
    assert [str(raised) in error for error in rig.errors] == [True]
    assert bolt.seen == []


class OnTime(Bolt):
    """A timer of it has a thread emit what it has, and waits for that."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.values = collector, []
        context.set_timer(1.0, self.fire)

    def fire(self) -> None:
        values, self.values = self.values, []
        for value in values:
            thread = threading.Thread(target=self.collector.emit, args=((value,),))
            thread.start()
            thread.join()

    def execute(self, tup: Any) -> None:
        self.values.append(tup[0])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_thread_emits_while_a_timer_waits_for_it_belongs_to_the_batch(workers: int) -> None:
    """C42: the next batch may be taken back."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(5)]))
    builder.set_bolt("b", OnTime()).shuffle_grouping("a")
    builder.set_bolt("sum", Sums()).global_grouping("b")
    rig = Rig(builder, workers, **ONCE)
    rig.batches(1)
    rig.advance(1.5)
    (sums,) = rig.users("sum")
    assert dict(sums.state.items()) == dict.fromkeys(range(5), 1)


class RaisesLater(Parallel):
    """Acks ten tuples, of each of which a thread has emitted, and raises for the next."""

    def execute(self, tup: Any) -> None:
        if tup[0] == 10:
            raise ValueError("no more")
        super().execute(tup)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_what_is_acked_stays_so_when_the_bolt_raises(workers: int) -> None:
    """E5, W22: at least once; only the tuple at hand fails."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(11)]))
    builder.set_bolt("b", RaisesLater()).shuffle_grouping("a")
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, workers)
    rig.batches(5)
    (spout,), (collect,) = rig.users("a"), rig.users("c")
    assert sorted(said[:2] for said in spout.heard) == [*(("ack", n) for n in range(10)), ("fail", 10)]
    assert sorted(value for _, value in collect.seen) == list(range(10))
