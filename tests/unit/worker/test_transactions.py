"""What a batch that is a transaction means to spouts, bolts and rows, in workers without an engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from stormspark import (
    BasicBolt,
    Bolt,
    FailedException,
    Fields,
    OutputFieldsDeclarer,
    TaskHook,
    TopologyBuilder,
    Tuple,
)
from stormspark.api import SourceSpout
from stormspark.api.state import StatefulBolt, StatefulComponent, TwoPhaseStatefulComponent
from stormspark.errors import ComponentError, InvalidTopologyError
from stormspark.plan import plan_topology
from stormspark.worker.round_orders import RoundOrders
from tests.unit.worker.components import Script
from tests.unit.worker.rig import Rig, two


class Replays(Script):
    """A queue: what has failed is emitted again."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.again: list[int] = []

    def next_tuple(self) -> None:
        if self.again:
            id = self.again.pop(0)
            self.collector.emit(self.rows[id], message_id=id)
        else:
            super().next_tuple()

    def fail(self, message_id: Any) -> None:
        super().fail(message_id)
        self.again.append(message_id)


class Sum(StatefulBolt[Any]):
    """Adds up; fails or raises at what it is told to, so many times."""

    def __init__(self, fails: dict[int, int] | None = None, raises: dict[int, int] | None = None) -> None:
        self.fails, self.raises = fails or {}, raises or {}

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.calls = collector, ["prepare"]

    def init_state(self, state: Any) -> None:
        self.state = state
        self.calls.append("init_state")

    def execute(self, tup: Tuple) -> None:
        (n,) = tup.values
        self.state["sum"] = self.state.get("sum", 0) + n
        if self.raises and _trouble(self.raises, n):
            msg = f"{n} is not liked"
            raise ValueError(msg)
        if _trouble(self.fails, n):
            self.collector.fail(tup)
        else:
            self.collector.ack(tup)

    def pre_prepare(self, txid: int) -> None:
        self.calls.append(f"pre_prepare {txid}")

    def pre_commit(self, txid: int) -> None:
        self.calls.append(f"pre_commit {txid}")


#: How often there was trouble with a number, over all instances.
had: dict[int, int] = {}


def _trouble(times: dict[int, int], n: int) -> bool:
    had[n] = had.get(n, 0) + 1
    return had[n] <= times.get(n, 0)


@pytest.fixture(autouse=True)
def nothing_had() -> None:
    had.clear()


def total(rig: Rig) -> int:
    return sum(task.state.store.get("sum", 0) for task in rig.tasks("b"))


@pytest.mark.parametrize("workers", [1, 2])
def test_acks_come_when_the_batch_is_committed(workers: int) -> None:
    """C39: held back until then; the next batch is the first to know."""
    rig = Rig(two(Sum(), [(1,), (2,)]), workers)
    rig.batches(1)
    (spout,) = rig.users("a")
    assert spout.heard == [] and total(rig) == 3
    rig.batches(1)
    assert spout.heard == [("ack", 0), ("ack", 1)]
    (bolt,) = rig.users("b")
    assert bolt.calls[:4] == ["prepare", "init_state", "pre_prepare 0", "pre_commit 0"]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("trouble", ["fails", "raises"])
def test_a_batch_that_fails_is_taken_back_as_a_whole(workers: int, trouble: str) -> None:
    """C35, C44: a spout without state hears that all of it failed, and emits again; nothing is added twice."""
    rows = [(1,), (2,), (4,)]
    rig = Rig(two(Sum(**{trouble: {4: 2}}), Replays(rows)), workers)
    rig.batches(3)
    (spout,) = rig.users("a")
    assert total(rig) == 7
    assert [said[0] for said in spout.heard].count("ack") == 3
    assert [said[0] for said in spout.heard].count("fail") == 6
    assert all("taken back" in said[2] for said in spout.heard if said[0] == "fail")


def test_what_a_stateless_bolt_remembers_is_forgotten_with_the_batch() -> None:
    """C44: it begins anew, so that what it counted in its attributes is not counted twice."""

    class Counts(BasicBolt):
        def prepare(self, conf: Any, context: Any) -> None:
            self.seen: list[int] = []

        def execute(self, tup: Tuple, collector: Any) -> None:
            self.seen.append(tup[0])
            if _trouble({2: 1}, tup[0]):
                raise FailedException

    rig = Rig(two(Counts(), Replays([(1,), (2,)])), 1, stormspark_exactly_once=True)
    rig.batches(2)
    (bolt,) = rig.users("b")
    assert bolt.seen == [1, 2]


def test_a_batch_that_always_fails_ends_the_topology() -> None:
    """W22: after so many attempts, with the reason."""
    rig = Rig(two(Sum(fails={1: 10**6}), Replays([(1,)])), 1, stormspark_max_attempts=4)
    with pytest.raises(ComponentError, match=r"batch 0 failed 4 times .*b\[0\]|a\[0\]: message 0 failed"):
        rig.batches(1)


def test_attributes_are_state_where_they_are_asked_for() -> None:
    """W22, C36: a bolt that knows nothing of state; what can't be pickled is named with the component's line."""

    class Remembers(BasicBolt):
        def __init__(self, lock: bool) -> None:
            self.lock = lock

        def prepare(self, conf: Any, context: Any) -> None:
            import threading

            self.context, self.seen = context, 0
            if self.lock:
                self.held = threading.Lock()

        def execute(self, tup: Tuple, collector: Any) -> None:
            self.seen += 1

    for lock in (False, True):
        builder = TopologyBuilder()
        builder.set_spout("a", Replays([(1,), (2,)]))
        declarer = builder.set_bolt("b", Remembers(lock)).shuffle_grouping("a")
        declarer.add_configuration("topology.state.pickle", True)
        rig = Rig(builder, 1, stormspark_max_attempts=2)
        if lock:
            with pytest.raises(ComponentError, match=r"can't keep 'held'.*__getstate__"):
                rig.batches(1)
        else:
            rig.batches(2)
            (task,) = rig.tasks("b")
            task.state._saved = task.state.store["attributes"]
            task.begin_anew()
            assert task.bolt.seen == 2 and task.bolt.context is not None


def test_what_can_not_be_is_refused_before_it_runs() -> None:
    """J5, C43: state without transactions, and tuples dropped inside of one."""
    topology = two(Sum(), [(1,)]).create_topology("t")
    with pytest.raises(
        InvalidTopologyError, match=r"test_transactions|rig.*'b' has state, but stormspark.exactly.once"
    ):
        plan_topology(topology, {"stormspark.exactly.once": False})
    with pytest.raises(InvalidTopologyError, match="set it to slow"):
        plan_topology(topology, {"stormspark.backpressure.strategy": "drop"})
    assert plan_topology(topology).exactly_once
    stateless = TopologyBuilder()
    stateless.set_spout("a", Script([(1,)]))
    plain = stateless.create_topology("t")
    assert not plan_topology(plain).exactly_once
    assert plan_topology(plain, {"topology.reliability.mode": "EFFECTIVELY_ONCE"}).exactly_once


class Loop(StatefulBolt[Any]):
    """Sends each number round until it is zero (A15)."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Tuple) -> None:
        (n,) = tup.values
        self.state["sum"] = self.state.get("sum", 0) + 1
        if n:
            self.collector.emit((n - 1,), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_batch_ends_when_all_that_goes_round_has_come_to_its_end(workers: int) -> None:
    """A15, C44: tuples in flight in a loop, across workers too, belong to their batch."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(5,), (9,)]))
    builder.set_bolt("b", Loop(), 2).shuffle_grouping("a").shuffle_grouping("b")
    rig = Rig(builder, workers)
    rig.batches(1)
    assert total(rig) == 16
    rig.batches(1)
    (spout,) = rig.users("a")
    assert sorted(spout.heard) == [("ack", 0), ("ack", 1)]


def test_every_batch_ends_with_a_checkpoint() -> None:
    """C37, C38: prepared and committed one after the other, with numbers that follow each other, and no interval."""
    rig = Rig(two(Sum(), [(1,), (2,)]), 2)
    rig.batches(4)
    (bolt,) = rig.users("b")
    assert bolt.calls[2:8] == [f"pre_{what} {n}" for n in range(3) for what in ("prepare", "commit")]


#: The worker that is watched, and what it was busy with.
watched: list[Any] = []
busy_with: list[tuple[str, str]] = []


class Sink(TwoPhaseStatefulComponent, BasicBolt):
    """Looks at who its worker says is at work."""

    def init_state(self, state: Any) -> None:
        pass

    def execute(self, tup: Tuple, collector: Any) -> None:
        pass

    def pre_save(self, checkpoint_id: int) -> None:
        busy_with.append(("pre_save", watched[0].under_way.busy().task))

    def post_save(self, checkpoint_id: int) -> None:
        busy_with.append(("post_save", watched[0].under_way.busy().task))

    def pre_restore(self, checkpoint_id: int) -> None:
        pass


def test_a_sink_that_does_not_return_has_a_name() -> None:
    """B1, C42: whose code runs is known at the end of a batch too, and when it is committed."""
    busy_with.clear()
    rig = Rig(two(Sink(), [(1,)]), 1)
    watched[:] = rig.workers
    rig.batches(2)
    assert busy_with == [("pre_save", "b[0]"), ("post_save", "b[0]"), ("pre_save", "b[0]")]
    assert rig.workers[0].under_way.busy() is None


class Stages(TwoPhaseStatefulComponent, Bolt):
    """Puts in place what a batch has brought after its commit, or in its next life; the first time that raises."""

    placed: ClassVar[dict[int, list[int]]] = {}
    raised: ClassVar[bool]

    def init_state(self, state: Any) -> None:
        self.state = state
        self.rows: list[int] = []
        if state.get("batch") is not None:
            self.placed[state["batch"]] = state["rows"]

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        self.rows.append(tup[0])
        self.collector.ack(tup)

    def pre_save(self, checkpoint_id: int) -> None:
        self.state["batch"], self.state["rows"] = checkpoint_id, self.rows
        self.rows = []

    def post_save(self, checkpoint_id: int) -> None:
        if not Stages.raised:
            Stages.raised = True
            raise OSError("no room")
        self.placed[checkpoint_id] = self.state["rows"]

    def pre_restore(self, checkpoint_id: int) -> None:
        self.rows = []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_component_whose_post_save_raises_restarts_from_the_committed_state(workers: int) -> None:
    """C42, W22: as Heron's container that dies there; what the batch brought is put in place by `init_state`."""
    Stages.placed.clear()
    Stages.raised = False
    rig = Rig(two(Stages(), [(n,) for n in range(3)]), workers, stormspark_exactly_once=True)
    rig.batches(4)
    assert sorted(n for rows in Stages.placed.values() for n in rows) == [0, 1, 2]
    assert [task.counters.restarts for task in rig.tasks("b")] == [1]


class Rows(SourceSpout):
    """A source whose rows the test gives; where it is told to, its ``ack``, or its hook's, raises once."""

    def __init__(self, raises_in: str = "") -> None:
        super().__init__(["value"])
        self.raises_in = raises_in

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def open(self, conf: Any, context: Any) -> None:
        if self.raises_in == "hook":
            context.add_task_hook(RaisesOnce())

    def ack(self, message_id: Any) -> None:
        if self.raises_in == "ack" and _trouble({-1: 1}, -1):
            raise OSError


class RaisesOnce(TaskHook):
    def spout_ack(self, info: Any) -> None:
        if _trouble({-1: 1}, -1):
            raise OSError


class Times(StatefulBolt[Any]):
    """How often each value came. Those that are ``held`` it acks, or ``fails``, with the next ``release``."""

    def __init__(self, held: tuple[Any, ...] = (), *, fails: bool = False) -> None:
        self.held, self.fails = held, fails

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.holds: list[Tuple] = []

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Tuple) -> None:
        value = tup[0]
        if value == "release":
            for held in self.holds:
                (self.collector.fail if self.fails else self.collector.ack)(held)
            self.holds.clear()
        elif value in self.held and not self.state.get(value):
            self.holds.append(tup)
        self.state[value] = self.state.get(value, 0) + 1
        if tup not in self.holds:
            self.collector.ack(tup)


def times(rig: Rig) -> dict[Any, int]:
    return {key: n for task in rig.tasks("b") for key, n in task.state.store.items()}


def rows_to_times(rows: Rows, bolt: Times, workers: int) -> Rig:
    builder = TopologyBuilder()
    builder.set_spout("a", rows)
    builder.set_bolt("b", bolt).global_grouping("a")
    return Rig(builder, workers)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", ["ack", "hook"])
def test_rows_are_done_with_by_the_commit_and_not_by_the_ack(workers: int, where: str) -> None:
    """C39: while the spout hears of them a callback raises, and it begins anew; they don't come again."""
    rig = rows_to_times(Rows(where), Times(), workers)
    rig.cluster.add_rows(rig.tasks("a")[0].id, 0, [(n,) for n in range(6)])
    rig.batches(3)
    assert times(rig) == dict.fromkeys(range(6), 1)
    assert rig.tasks("a")[0].counters.restarts == 1
    (spout,) = rig.tasks("a")
    assert not list(spout.source.rows.open_ids())


@pytest.mark.parametrize("where", ["", "ack"])
def test_a_row_that_is_held_over_the_end_of_its_batch_is_emitted_by_a_new_instance(where: str) -> None:
    """C39: what came of it is committed in part; the new instance has no tree of it, and without one it would be lost."""
    rig = rows_to_times(Rows(where), Times(held=(1,)), 1)
    (spout,) = rig.tasks("a")
    rig.cluster.add_rows(spout.id, 0, [(0,), (1,), (2,)])
    rig.batches(3)
    open_rows = list(spout.source.rows.open_ids())
    assert times(rig) == {0: 1, 1: 2 if where else 1, 2: 1}
    assert open_rows == ([] if where else [(0, 0, 1)])


def test_a_row_that_is_failed_after_its_batch_is_emitted_again() -> None:
    """A bolt has held it over the end; a new instance after that knows of it, since it belongs to a later batch."""
    rig = rows_to_times(Rows(), Times(held=(1,), fails=True), 1)
    (spout,) = rig.tasks("a")
    rig.cluster.add_rows(spout.id, 0, [(0,), (1,)])
    rig.batches(1)
    rig.cluster.add_rows(spout.id, 0, [("release",)])
    rig.batches(2)
    rig.advance(60)
    rig.batches(1)
    assert times(rig) == {0: 1, 1: 2, "release": 1}


class InOneCall(Replays):
    """Emits all of its rows in one call of ``next_tuple``."""

    def next_tuple(self) -> None:
        if self.again:
            super().next_tuple()
        while self.next < len(self.rows):
            super().next_tuple()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_committed_stays_so_where_the_spout_can_not_hear_of_it_yet(workers: int) -> None:
    """C39, C44: ``next_tuple`` is suspended when its batch is committed, and the next one is taken back."""
    rows = [(n,) for n in range(3000)]
    rig = Rig(two(Times(), InOneCall(rows)), workers)
    (spout,) = rig.tasks("a")
    rig.cluster.run_batch({spout.id: 1500})
    assert spout.calls.suspended and len(times(rig)) == 1500
    rig.tasks("b")[0].abort("a test")
    rig.batches(3)
    assert rig.cluster._attempt == 1
    assert times(rig) == dict.fromkeys(range(3000), 1)
    heard = [said[0] for said in spout.spout.heard]
    assert heard.count("ack") == 3000 and heard.count("fail") == 1500


class EmitsIn(Replays):
    """Emits one row in the callback that is named, and again after it has failed; if that is ``fail``, in there."""

    def __init__(self, callback: str) -> None:
        super().__init__([("row",)])
        self.callback = callback

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        if self.callback == "timer":
            context.set_timer(5, self.emit)
        if self.callback == "open":
            self.emit()

    def emit(self) -> None:
        if not self.next:
            super().next_tuple()

    def activate(self) -> None:
        if self.callback == "activate":
            self.emit()

    def next_tuple(self) -> None:
        if self.again or self.callback in ("next_tuple", "fail"):
            super().next_tuple()

    def fail(self, message_id: Any) -> None:
        super().fail(message_id)
        if self.callback == "fail":
            self.next_tuple()


class Refuses(BasicBolt):
    """Fails so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def execute(self, tup: Tuple, collector: Any) -> None:
        if _trouble({-1: self.times}, -1):
            raise FailedException


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("callback", ["next_tuple", "open", "activate", "timer", "fail"])
def test_a_batch_with_a_failed_tree_is_taken_back_wherever_it_was_emitted(
    workers: int, callback: str
) -> None:
    """C44: by the number of the attempt. In ``fail``, after a roll back, it belongs to the attempt that is to come."""
    builder = TopologyBuilder()
    builder.set_spout("a", EmitsIn(callback))
    builder.set_bolt("b", Times()).shuffle_grouping("a")
    builder.set_bolt("c", Refuses(2)).shuffle_grouping("a")
    rig = Rig(builder, workers)
    whole = rig.cluster.run_round

    def takes_time(orders: RoundOrders) -> Any:
        rig.clock.advance(0.001)  # between two attempts, as it does
        return whole(orders)

    rig.cluster.run_round = takes_time  # type: ignore[method-assign]
    rig.advance(1)
    rig.advance(10, batches=3)
    assert rig.cluster._attempt == 2
    assert times(rig) == {"row": 1}
    (spout,) = rig.users("a")
    assert [said[0] for said in spout.heard] == ["fail", "fail", "ack"]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_emitted_after_the_batch_was_prepared_belongs_to_the_next(workers: int) -> None:
    """In ``activate``, before the workers have heard of the commit: its fail takes the next batch back."""
    builder = TopologyBuilder()
    builder.set_spout("a", EmitsIn("activate"))
    builder.set_bolt("b", Times()).shuffle_grouping("a")
    builder.set_bolt("c", Refuses(1)).shuffle_grouping("a")
    rig = Rig(builder, workers, active=False)
    rig.batches(1)
    rig.cluster.set_active(True)
    rig.batches(3)
    assert rig.cluster._attempt == 1
    assert times(rig) == {"row": 1}
    (spout,) = rig.users("a")
    assert [said[0] for said in spout.heard] == ["fail", "ack"]


class Counts(StatefulComponent, Script):
    """Emits numbers, ``at_once`` of them in each call of ``next_tuple``; its state is how far it has come."""

    def __init__(self, numbers: int, at_once: int) -> None:
        super().__init__([])
        self.numbers, self.at_once = numbers, at_once

    def init_state(self, state: Any) -> None:
        self.state = state

    def pre_save(self, checkpoint_id: Any) -> None:
        pass

    def next_tuple(self) -> None:
        for _ in range(min(self.at_once, self.numbers - self.state.get("next", 0))):
            number = self.state.get("next", 0)
            self.state["next"] = number + 1
            self.collector.emit((number,), message_id=number)


def rounds_of(rig: Rig, limit: int, *, deactivates_after: int | None = None, most: int = 30) -> list[int]:
    """The rounds of the cluster's batches, in which the spout may emit ``limit`` tuples: the list grows with them."""
    whole, rounds = rig.cluster.run_round, []
    (spout,) = rig.tasks("a")

    def limited(orders: RoundOrders) -> Any:
        rounds.append(rig.cluster._batch)
        transaction = rig.cluster._driver.transaction
        assert transaction is not None
        assert len(rounds) <= most, f"not committed after {most} rounds: {transaction.left} left"
        if len(rounds) - 1 == deactivates_after:
            rig.cluster.set_active(False)
        return whole(replace(orders, limits={spout.id: limit}))

    rig.cluster.run_round = limited  # type: ignore[method-assign]
    return rounds


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("aborts", [False, True])
def test_rows_of_the_batch_are_emitted_although_the_spout_is_not_active_any_more(
    workers: int, aborts: bool
) -> None:
    """B13: what the batch has begun with is in it; the rows of the next one wait."""
    rig = rows_to_times(Rows(), Times(), workers)
    (spout,) = rig.tasks("a")
    rig.cluster.add_rows(spout.id, 0, [(n,) for n in range(50)])
    rounds = rounds_of(rig, 10, deactivates_after=1)
    if aborts:
        rig.tasks("b")[0].abort("a test")
    rig.batches(1)
    assert times(rig) == dict.fromkeys(range(50), 1) and not spout.life.is_active
    assert rig.cluster._attempt == aborts
    rig.cluster.add_rows(spout.id, 0, [(50,)])
    begun = len(rounds)
    with pytest.raises(AssertionError, match="1 left"):
        rig.batches(1)
    assert begun < 20 and 50 not in times(rig)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_call_returns_although_the_spout_is_not_active_any_more(workers: int) -> None:
    """B13: its state can't be saved in the middle of one; there is no other call after it."""
    rig = Rig(two(Times(), Counts(10**6, at_once=3000)), workers)
    rounds_of(rig, 2500, deactivates_after=1)
    rig.batches(3)
    assert times(rig) == dict.fromkeys(range(3000), 1)
    assert [n for _, n in rig.users("a")[0].heard] == list(range(3000))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_call_that_emits_more_than_may_wait_returns(workers: int) -> None:
    """B3, B4: verdicts wait for the commit, and the commit for the call; only what is open holds it up."""
    marks = {"stormspark.queue.high.mark.tuples": 3000, "stormspark.queue.low.mark.tuples": 100}
    rig = Rig(two(Times(), Counts(20000, at_once=5000)), workers, **marks)
    rounds_of(rig, 10**6)
    rig.batches(6)
    assert times(rig) == dict.fromkeys(range(20000), 1)
    assert not rig.errors
