"""Emits, acks and fails in threads of users' own."""

from __future__ import annotations

import queue
import threading
import time
from functools import partial
from typing import Any

import pytest

from stormspark import BasicBolt, Bolt, Fields, Spout, TopologyBuilder
from stormspark.errors import EmitError
from stormspark.worker import foreign_calls
from stormspark.worker.foreign_calls import Mailbox
from tests.unit.worker.components import Collect, InAThread, Script
from tests.unit.worker.rig import Rig, two


class Background(Bolt):
    """Works in a thread: doubles, emits anchored, acks; 13 is failed there."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.work: queue.Queue[Any] = queue.Queue()
        self.returned: list[Any] = []
        self.raised: list[BaseException] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while (tup := self.work.get()) is not None:
            try:
                if tup.values[0] == 13:
                    self.collector.fail(tup, "unlucky")
                    continue
                self.returned.append(self.collector.emit((2 * tup.values[0],), anchors=[tup]))
                self.collector.ack(tup)
            except BaseException as error:
                self.raised.append(error)

    def execute(self, tup: Any) -> None:
        self.work.put(tup)

    def cleanup(self) -> None:
        self.work.put(None)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


def until(what: Any, rig: Rig) -> None:
    deadline = time.monotonic() + 120
    while not what():
        assert time.monotonic() < deadline
        rig.batches(1)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_bolt_may_emit_ack_and_fail_in_its_own_thread(workers: int) -> None:
    """C1, E4, W26: order, anchors and verdicts are as if the task's thread had done it; task ids are not known."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Script([(n,) for n in range(500)]))
    builder.set_bolt("double", Background()).shuffle_grouping("numbers")
    builder.set_bolt("collect", Collect()).shuffle_grouping("double")
    rig = Rig(builder, workers)
    (spout,), (bolt,), (collected,) = rig.users("numbers"), rig.users("double"), rig.users("collect")
    until(lambda: len(spout.heard) == 500, rig)
    ((_, failed, reason),) = (said for said in spout.heard if said[0] == "fail")
    assert (failed, reason.endswith("unlucky")) == (13, True)
    assert [value for _, value in collected.seen] == [2 * n for n in range(500) if n != 13]
    assert set(map(tuple, bolt.returned)) == {()}
    assert rig.errors == []
    bolt.cleanup()


class Reader(Spout):
    """Emits in a thread of its own, and says nothing in next_tuple."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.heard: list[Any] = []
        self.done = False
        threading.Thread(target=self.run, args=(collector,), daemon=True).start()

    def run(self, collector: Any) -> None:
        for n in range(1000):
            collector.emit((n,), message_id=n)
        self.done = True

    def next_tuple(self) -> None:
        pass

    def ack(self, message_id: Any) -> None:
        self.heard.append(message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


def waits_for(task: Any, calls: int) -> None:
    """Wait until so many calls of its thread wait for it."""
    deadline = time.monotonic() + 120
    while len(task.mailbox) < calls:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_thread_that_emits_without_end_is_held_and_loses_nothing(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W26: no more than the cap wait; who is held is told; all of it comes through, in order."""
    monkeypatch.setattr(foreign_calls.Mailbox.__init__, "__defaults__", (50,))
    monkeypatch.setattr(foreign_calls, "_PATIENCE_SECS", 0.05)
    builder = TopologyBuilder()
    builder.set_spout("a", Reader())
    builder.set_bolt("b", Collect()).shuffle_grouping("a")
    rig = Rig(builder, workers)
    (task,), (spout,), (bolt,) = rig.tasks("a"), rig.users("a"), rig.users("b")
    waits_for(task, 50)
    time.sleep(0.3)
    assert len(task.mailbox) == 50
    assert not spout.done
    until(lambda: len(spout.heard) == 1000, rig)
    assert [value for _, value in bolt.seen] == list(range(1000))
    assert (
        "a[0]: one of its threads emits faster than the topology takes the calls: 50 calls wait"
        in rig.errors[0]
    )


def test_a_limit_holds_a_spouts_thread_too() -> None:
    """F3, W26: what backpressure lets the spout emit is for its threads as well."""
    builder = TopologyBuilder()
    builder.set_spout("a", Reader())
    builder.set_bolt("b", Collect()).shuffle_grouping("a")
    rig = Rig(builder, 1)
    (task,) = rig.tasks("a")
    waits_for(task, 1000)
    rig.cluster.run_batch({task.id: 0})
    assert task.read_counters().emitted == 0
    rig.cluster.run_batch({task.id: 10_000})
    assert task.read_counters().emitted == 1000


def test_errors_come_out_where_the_call_is() -> None:
    """A12, E14: wrong values raise in the thread that emits; an ack that comes twice is told as ever."""

    class Wrong(Background):
        def run(self) -> None:
            tup = self.work.get()
            for call in (
                lambda: self.collector.emit((1, 2, 3)),
                lambda: self.collector.emit((1,), "nowhere"),
            ):
                try:
                    call()
                except Exception as error:
                    self.raised.append(error)
            self.collector.ack(tup)
            self.collector.ack(tup)

    builder = two(Wrong(), [(1,)])
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, 1)
    (spout,), (bolt,) = rig.users("a"), rig.users("b")
    until(lambda: spout.heard == [("ack", 0)] and len(bolt.raised) == 2, rig)
    assert "wrong number of fields" in str(bolt.raised[0])
    assert "Unknown stream ID 'nowhere'" in str(bolt.raised[1])
    until(lambda: rig.errors, rig)
    assert "acked or failed already" in rig.errors[0]


class Basic(BasicBolt):
    """Emits in a thread, which it may not."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.raised: list[str] = []

    def execute(self, tup: Any, collector: Any) -> None:
        def emit() -> None:
            for call in partial(collector.emit, tup.values), partial(collector.emit_direct, 1, tup.values):
                try:
                    call()
                except Exception as error:
                    self.raised.append(str(error))

        thread = threading.Thread(target=emit)
        thread.start()
        thread.join()
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


def test_a_basic_bolt_emits_inside_execute_only() -> None:
    """C5, W26: its emits are anchored to the tuple at hand, which a thread knows nothing of."""
    rig = Rig(two(Basic(), [(1,), (2,)]), 1)
    rig.batches(2)
    (spout,), (bolt,) = rig.users("a"), rig.users("b")
    assert spout.heard == [("ack", 0), ("ack", 1)]
    assert len(bolt.raised) == 4
    assert all(error.startswith("b[0]: a BasicBolt may emit only in execute") for error in bolt.raised)


def test_without_threads_collectors_are_the_plain_ones() -> None:
    """A28: nobody pays for threads that has none; the first one that a task starts changes that, for all tasks of the worker."""
    rig = Rig(two(Collect(), [(1,)]), 1)
    rig.batches(1)
    threading.Thread(target=lambda: None).start()  # not a task's
    assert not rig.workers[0].services.guarded
    rig = Rig(two(Background(), [(1,)]), 1)
    assert rig.workers[0].services.guarded


def test_a_mailbox_of_an_ended_instance_takes_nothing_and_holds_nobody() -> None:
    """B10, W26: a thread of an instance that has ended is not held."""
    mailbox = Mailbox("b[0]", lambda text: None, most=1)
    mailbox.post(lambda: None)
    thread = threading.Thread(target=mailbox.post, args=(lambda: None,))
    thread.start()
    mailbox.close()
    thread.join(5)
    assert not thread.is_alive()
    mailbox.post(lambda: None)
    assert len(mailbox) == 0


class Grouping(InAThread):
    """Its thread asks for a group."""

    def work(self) -> None:
        self.collector.group("order")


def test_a_group_belongs_to_the_thread_that_calls_next_tuple() -> None:
    """X68, W26: its tree would begin at the wrong time, and between two calls of another thread."""
    builder = TopologyBuilder()
    builder.set_spout("a", Grouping())
    rig = Rig(builder, 1)
    rig.batches(1)
    (spout,) = rig.users("a")
    (raised,) = spout.raised
    assert isinstance(raised, EmitError) and "a[0]: a thread of its own" in str(raised)


class SharesAPool(BasicBolt):
    """Asks for the pool of its worker."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.pool = context.shared_executor

    def execute(self, tup: Any, collector: Any) -> None:
        pass


def test_whoever_asks_for_the_shared_pool_is_guarded() -> None:
    """A28, W26: another task may have started the threads of the pool already, unnoticed."""
    rig = Rig(two(SharesAPool(), [(1,)]), 1)
    assert rig.workers[0].services.guarded
