"""Max spout pending is never exceeded, by any schedule of rounds over several workers (B4)."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from hypothesis import event, given
from hypothesis import strategies as st

from stormspark import Bolt, Fields, Spout, TopologyBuilder
from stormspark.grouping import (
    FieldsGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    ShuffleGrouping,
)
from stormspark.local import SimulatedClock
from stormspark.plan import plan_topology
from stormspark.wire.frames import Frame
from stormspark.worker.core import Worker
from stormspark.worker.round_orders import RoundOrders
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.step import Step
from tests.fuzz.attempts import exchange

GROUPINGS: list[Grouping] = [
    ShuffleGrouping(),
    FieldsGrouping("value"),
    LocalOrShuffleGrouping(),
    NoneGrouping(),
]
#: How far the clock moves with a call of user code: 0, or so far that few calls fit into a round.
STEPS = (0.0, 0.01, 0.3)


class World:
    """What all components of one example share."""

    clock: Any = None
    step = 0.0
    limit = 0
    #: The greatest number of open messages that a spout has had when it was called.
    most_open = 0
    #: Each message that a spout has emitted, acked and heard a fail of.
    emitted: list[Any]
    acked: list[Any]
    failed: list[Any]


class Limited(Spout):
    """Emits 60 messages, and notes at each call how many of them are open."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.task = collector, context.this_task_id
        self.number, self.open_messages = 0, set[int]()

    def next_tuple(self) -> None:
        World.clock.advance(World.step)
        World.most_open = max(
            World.most_open, len(self.open_messages)
        )  # an assertion here would only begin the task anew
        if self.number == 60:
            return
        self.open_messages.add(self.number)
        World.emitted.append((self.task, self.number))
        self.collector.emit((self.number,), message_id=self.number)
        self.number += 1

    def ack(self, message_id: Any) -> None:
        self.open_messages.remove(message_id)
        World.acked.append((self.task, message_id))

    def fail(self, message_id: Any) -> None:
        self.open_messages.remove(message_id)
        World.failed.append((self.task, message_id))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class Pass(Bolt):
    """Passes on what it gets, and fails every seventh tuple."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        World.clock.advance(World.step)
        if tup["value"] % 7 == 6:
            self.collector.fail(tup)
        else:
            self.collector.emit(tup.values, anchors=[tup])
            self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class Round(NamedTuple):
    """One round: whether tuples stay local, whether spouts are called, their limit, and where all frames are lost, if so."""

    stays: bool
    asks: bool
    limit: int | None
    lost_after: int | None
    step: float


rounds = st.lists(
    st.builds(
        Round,
        st.booleans(),
        st.sampled_from([True, True, True, False]),
        st.sampled_from([None, None, 1, 5]),
        st.sampled_from([None, None, None, 0, 1, 2]),
        st.sampled_from(STEPS),
    ),
    min_size=1,
    max_size=8,
)


def workers_of(groupings: list[Grouping], workers: int, tasks: int) -> list[Worker]:
    builder = TopologyBuilder()
    builder.set_spout("a", Limited(), tasks)
    before = "a"
    for number, grouping in enumerate(groupings):
        builder.set_bolt(f"b{number}", Pass(), workers).grouping(before, grouping)
        before = f"b{number}"
    conf = {
        "topology.workers": workers,
        "topology.max.spout.pending": World.limit,
        "topology.message.timeout.secs": 3600,
    }
    plan = plan_topology(builder.create_topology("limited"), conf)
    made = [Worker(plan, index, clock=World.clock, random=Random(index)) for index in range(workers)]
    for worker in made:
        worker.open()
    return made


def run_round(workers: list[Worker], batch: int, attempt: int, one: Round) -> int:
    """Run a round, and return the attempt that goes on: another one if all frames were lost on the way."""
    plan, World.step = workers[0].plan, one.step
    spouts = plan.components["a"].tasks
    orders = RoundOrders(
        limits=None if one.limit is None else dict.fromkeys(spouts, one.limit),
        staying_local=frozenset({"a"}) if one.stays else frozenset(),
        asks_spouts=one.asks,
    )
    inbound: list[list[Frame]] = [[] for _ in workers]
    for superstep in range(plan.last_superstep + 1):
        step = Step(batch, attempt, superstep, orders)
        replies = [worker.run(step, inbound[worker.index]) for worker in workers]
        for worker in workers:
            check(worker)
        if superstep == one.lost_after and superstep < plan.last_superstep:
            for worker in workers:
                worker.begin_attempt("its frames were lost", batch)
            event("frames lost")
            return attempt + 1
        inbound = exchange(replies, len(workers))
    return attempt


def check(worker: Worker) -> None:
    worker.validate()
    for task in worker.wiring.spouts:
        assert isinstance(task, SpoutTask)
        assert task.fatal is None and task.counters.restarts == 0
        assert task.account.pending <= World.limit


@given(
    groupings=st.lists(st.sampled_from(GROUPINGS), min_size=1, max_size=3),
    workers=st.integers(2, 3),
    tasks=st.integers(1, 3),
    limit=st.integers(1, 9),
    schedule=rounds,
)
def test_no_schedule_has_more_open_trees_than_the_limit_and_each_ends_once(
    groupings: list[Grouping], workers: int, tasks: int, limit: int, schedule: list[Round]
) -> None:
    """Whatever is lost, late, local or limited: the limit is exact, and each message is acked or failed once (E1)."""
    World.clock, World.limit, World.most_open = SimulatedClock(), limit, 0
    World.emitted, World.acked, World.failed = [], [], []
    made = workers_of(groupings, workers, tasks)
    attempt = 0
    for batch, one in enumerate(schedule):
        attempt = run_round(made, batch, attempt, one)
    completing = Round(stays=False, asks=False, limit=None, lost_after=None, step=0.0)
    for batch in range(len(schedule), len(schedule) + 2):
        attempt = run_round(made, batch, attempt, completing)
    assert World.most_open < limit
    assert sorted(World.acked + World.failed) == sorted(World.emitted)
    assert not any(spout.account.pending for worker in made for spout in worker.wiring.spouts)
    late = any(worker.round_clock.emitted_late for worker in made)
    assert not late, "no spout is called in a round that only completes"
    event(f"emitted {min(len(World.emitted) // 50 * 50, 500)}")
