"""Calls of user code that take 20 s each, an LLM's for example: many of them in a row are not one that never returns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import BasicBolt, Bolt, TaskHook, TopologyBuilder
from stormspark.worker.busy import Busy
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import Rig, two

CALL = 20.0
ROWS = 3000
#: Tuples from this one on are slow.
SLOW_FROM = 2500


class Slow:
    """What a bolt does with a tuple; the host's other thread looks at the worker during each slow call."""

    def __init__(self) -> None:
        self.begin(SLOW_FROM)

    def begin(self, slow_from: int) -> None:
        self.rig: Rig | None = None
        self.seen: list[float] = []
        self.calls: list[int] = []
        self.slow_from = slow_from

    def work(self, number: int) -> None:
        assert self.rig is not None
        self.calls.append(number)
        if number < self.slow_from:
            return
        self.rig.clock.advance(CALL)
        thread = threading.Thread(target=self._look)
        thread.start()
        thread.join()

    def _look(self) -> None:
        assert self.rig is not None
        for worker in self.rig.workers:
            worker.under_way.look()
            busy = worker.under_way.busy()
            if busy is not None:
                self.seen.append(busy.seconds)


slow = Slow()  # the instances of components are made from pickles, so they share this


class SlowBasic(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        slow.work(tup[0])


class SlowPlain(Bolt):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        slow.work(tup[0])
        self.collector.ack(tup)


class Raising(SlowBasic):
    """The third slow call raises."""

    def execute(self, tup: Any, collector: Any) -> None:
        super().execute(tup, collector)
        if tup[0] == SLOW_FROM + 2:
            raise ValueError("the model is not there")


class Hooked(SlowBasic):
    def prepare(self, conf: Any, context: Any) -> None:
        context.add_task_hook(TaskHook())


@pytest.fixture
def run() -> Callable[..., Rig]:
    def make(builder: TopologyBuilder, workers: int = 1, slow_from: int = SLOW_FROM, **conf: Any) -> Rig:
        slow.begin(slow_from)
        rig = slow.rig = Rig(builder, workers, **conf)
        return rig

    return make


@pytest.mark.parametrize("bolt", [SlowBasic, SlowPlain, Raising, Hooked])
@pytest.mark.parametrize("slow_from", [pytest.param(0, marks=pytest.mark.slow), SLOW_FROM])
def test_each_slow_call_is_seen_alone(bolt: Any, slow_from: int, run: Callable[..., Rig]) -> None:
    """B1: also where all calls before were quick, so that a chunk has a thousand tuples."""
    rig = run(two(bolt(), [(n,) for n in range(ROWS)]), slow_from=slow_from)
    rig.batches(30)
    assert len(slow.seen) > 10, "it was slow"
    assert max(slow.seen) < 2 * CALL
    assert slow.calls == list(range(len(slow.calls))), "each once, in order"


def test_a_batch_ends_after_the_call_that_runs_at_its_deadline(run: Callable[..., Rig]) -> None:
    """What has become slow waits for the next batch."""
    rig = run(two(SlowBasic(), [(n,) for n in range(ROWS)]))
    while len(slow.calls) <= SLOW_FROM:
        rig.batches(1)
    before = rig.clock()
    rig.batches(1)
    assert rig.clock() - before <= 2 * CALL


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_no_message_times_out_behind_slow_calls(workers: int, run: Callable[..., Rig]) -> None:
    """E10, W2: a timeout of 30 s, calls of 20 s, two bolts one behind the other: what waits for a call is not late."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(40)]))
    builder.set_bolt("b", Passing()).shuffle_grouping("a")
    builder.set_bolt("c", SlowPlain()).shuffle_grouping("b")
    rig = run(builder, workers, slow_from=0, topology_message_timeout_secs=30)
    rig.batches(120)
    (spout,) = rig.users("a")
    assert [said for said in spout.heard if said[0] == "fail"] == []
    assert {said[1] for said in spout.heard} == set(range(40))


class Passing(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        slow.work(tup[0])
        collector.emit((tup[0],))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("n")


class SlowVerdicts(Script):
    """Hears of each verdict for 20 s."""

    def ack(self, message_id: Any) -> None:
        super().ack(message_id)
        slow.work(message_id)


def test_a_spout_that_is_slow_to_hear_is_seen_call_by_call(run: Callable[..., Rig]) -> None:
    """B1, B7: a thousand acks of 20 s are told in one go."""
    builder = TopologyBuilder()
    builder.set_spout("a", SlowVerdicts([(n,) for n in range(200)]))
    builder.set_bolt("b", Quick()).shuffle_grouping("a")
    rig = run(builder, slow_from=0)
    rig.batches(10)
    (spout,) = rig.users("a")
    assert len(spout.heard) == 200
    assert max(slow.seen) < 2 * CALL


class SlowAck(Script):
    """Each ack takes 20 s."""

    def ack(self, message_id: Any) -> None:
        slow.work(message_id)


def test_acks_inside_emits_are_seen_one_by_one(run: Callable[..., Rig]) -> None:
    """B8, W2: without ackers, one next_tuple may ack many messages."""

    class Burst(SlowAck):
        def next_tuple(self) -> None:
            while self.next < len(self.rows):
                super().next_tuple()

    builder = TopologyBuilder()
    builder.set_spout("a", Burst([(n,) for n in range(20)]))
    builder.set_bolt("b", Quick()).shuffle_grouping("a")
    run(builder, slow_from=0, topology_acker_executors=0).batches(2)
    assert len(slow.calls) == 20
    assert max(slow.seen) < 2 * CALL


def test_as_many_verdicts_as_were_counted_before_are_seen() -> None:
    """B7: a look must not take them for the old ones."""
    rig = Rig(two(Collect(), [(1,)]), 1)
    (spout,) = rig.tasks("a")
    delivery = spout._delivery
    delivery._latencies += [0.1] * 5
    assert delivery.has_moved()
    delivery.count_latencies()
    assert not delivery.has_moved()
    delivery._latencies += [0.1] * 5
    assert delivery.has_moved()


class Quick(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        """Acks."""


# -- instances that begin later than their worker ----------------------------------------------------------------

BEGINS = 400.0


class SlowToBegin:
    """What another thread sees of a worker when an instance has been beginning for long, and in a call after that."""

    def __init__(self) -> None:
        self.rig: Rig | None = None
        self.seen: list[tuple[str, Busy]] = []

    def takes(self, seconds: float, what: str) -> None:
        if self.rig is None:
            return  # its worker begins, too
        self.rig.clock.advance(seconds)
        for worker in self.rig.workers:
            busy = worker.under_way.busy()
            if busy is not None:
                assert busy.place is not None and "test_slow_calls.py:" in busy.place.line
                self.seen.append((what, busy._replace(place=None)))


begins = SlowToBegin()


@pytest.fixture
def beginning() -> SlowToBegin:
    begins.rig = None
    begins.seen = []
    return begins


class Model(BasicBolt):
    def prepare(self, conf: Any, context: Any) -> None:
        begins.takes(BEGINS, "prepare")

    def execute(self, tup: Any, collector: Any) -> None:
        if tup[0] == 3:
            raise ValueError("a bad tuple")
        begins.takes(CALL, "execute")


class SlowSpout(Script):
    def open(self, *args: Any) -> None:
        super().open(*args)
        begins.takes(BEGINS, "open")


def test_a_new_instance_after_an_exception_begins_and_is_not_stuck(beginning: SlowToBegin) -> None:
    """The call after it, of the same chunk, is measured from its own beginning."""
    rig = beginning.rig = Rig(two(Model(), [(n,) for n in range(6)]), 1)
    rig.batches(4)
    assert ("prepare", Busy("b[0]", BEGINS, opens=True)) in beginning.seen
    calls = [busy for what, busy in beginning.seen if what == "execute"]
    assert len(calls) == 5 and max(busy.seconds for busy in calls) < BEGINS
    assert not any(busy.opens for busy in calls)


def test_a_spout_that_is_opened_by_its_activation_is_not_stuck(beginning: SlowToBegin) -> None:
    builder = TopologyBuilder()
    builder.set_spout("a", SlowSpout([(1,)]), 3)
    builder.set_bolt("b", Quick()).shuffle_grouping("a")
    rig = beginning.rig = Rig(builder, 1, active=False)
    rig.workers[0].set_active(True)
    assert beginning.seen == [("open", Busy(f"a[{n}]", BEGINS, opens=True)) for n in range(3)], "each alone"


def test_a_batch_that_comes_again_to_new_instances_does_not_make_them_stuck(beginning: SlowToBegin) -> None:
    """G6: exactly once, every attempt that fails has every bolt begin anew, in workers that live."""
    rig = Rig(two(Model(), [(n,) for n in range(2)]), 1, stormspark_exactly_once=True)
    rig.batches(2)
    beginning.rig = rig
    rig.workers[0].roll_back(3, 2, "worker 1 was lost: killed")
    assert beginning.seen == [("prepare", Busy("b[0]", BEGINS, opens=True))]


def test_a_look_while_the_task_is_left_does_not_undo_that() -> None:
    """The thread of the tasks goes on while the other one looks: nobody is in user code then, and nobody must seem to be."""
    rig = Rig(two(Collect(), [(1,)]), 1)
    (worker,) = rig.workers
    (spout,) = rig.tasks("a")
    worker.call.enter(spout)
    rig.clock.advance(CALL)
    spout.counters.failed += 1
    reads = 0

    def now() -> float:
        nonlocal reads
        reads += 1
        if reads == 2:
            worker.call.enter(None)
        return rig.clock()

    worker.call._clock = now
    worker.under_way.look()
    worker.call._clock = rig.clock
    rig.clock.advance(CALL)
    assert reads >= 2 and worker.under_way.busy() is None
    worker.call.enter(spout)
    rig.clock.advance(CALL)
    busy = worker.under_way.busy()
    assert (
        busy is not None and busy.seconds == CALL
    )  # what was seen of the call before does not count for this one
