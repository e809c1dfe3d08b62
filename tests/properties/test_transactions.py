"""Batches as transactions, with workers and drivers that die anywhere between two supersteps: all happens once (C35, C44, G8)."""

from __future__ import annotations

import pickle
import tempfile
from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormspark import (
    Fields,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from stormspark.api.components import Bolt
from stormspark.api.state import KeyValueState, StatefulBolt, TwoPhaseStatefulComponent
from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.checkpoint.ordered_keys import decode_key
from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.checkpoint.state_table import StateTable
from stormspark.driver.batch_driver import BatchDriver
from stormspark.driver.failed_rows import FailedRows
from stormspark.driver.transaction import Transaction
from stormspark.local import SimulatedClock
from stormspark.plan import plan_topology
from stormspark.plan.physical import PhysicalPlan
from stormspark.wire.frames import Frame
from stormspark.worker.core import Worker
from stormspark.worker.round_orders import NO_EARLIER_ATTEMPTS, RoundOrders
from stormspark.worker.state.batch_state import StateAccess
from stormspark.worker.step import Step, WorkerReport
from tests.repeatable_spouts import NumbersFromState

MESSAGES, KEYS = 40, 3
#: What components did outside of their state; cleared for each example.
acked: Counter[int] = Counter()
saved: list[tuple[int, int]] = []
dice = Random()
clock = SimulatedClock()
#: Longer than a superstep may take, so that what waits stays queued.
LONG_SECS = 6.0


class Numbers(NumbersFromState):
    """Some of them a batch."""

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        super().open(conf, context, collector)
        self.left = 0

    def next_tuple(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.left = dice.randrange(5)
        elif self.n < MESSAGES:
            self.emit_next()

    def ack(self, message_id: Any) -> None:
        acked[message_id] += 1

    def fail(self, message_id: Any) -> None:
        raise AssertionError("a spout with state hears of nothing that is taken back")


class Choose(StatefulBolt[KeyValueState[Any, Any]]):
    """Draws a number, which nobody could draw again."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        self.state = state

    def execute(self, tup: Tuple) -> None:
        assert tup["n"] not in self.state
        if dice.random() < 0.1:
            clock.advance(LONG_SECS)
        if dice.random() < 0.03:
            self.collector.fail(tup)
            return
        if dice.random() < 0.02:
            msg = "an accident"
            raise ValueError(msg)
        number = self.state[tup["n"]] = dice.randrange(10**9)
        self.collector.emit((tup["n"] % KEYS, number), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key", "number"))


class Total(TwoPhaseStatefulComponent, Bolt):
    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.task = collector, context.this_task_id

    def execute(self, tup: Tuple) -> None:
        key, number = tup.values
        count, total = self.state.get(key, (0, 0))
        self.state[key] = count + 1, total + number
        self.collector.ack(tup)

    def pre_save(self, checkpoint_id: int) -> None:
        pass

    def post_save(self, checkpoint_id: int) -> None:
        saved.append((self.task, checkpoint_id))

    def pre_restore(self, checkpoint_id: int) -> None:
        pass


class LostError(Exception):
    """A worker, or the driver (None), is gone."""

    def __init__(self, worker: int | None) -> None:
        self.worker = worker


class Engine:
    """What Spark's engine does, one call after another, with something that dies now and then."""

    def __init__(self, plan: PhysicalPlan, folder: Path, random: Random, deaths: float) -> None:
        self.plan, self.folder, self.random, self.deaths = plan, folder, random, deaths
        self.offsets, self.generation, self.died = -1, -1, 0
        self.driver = BatchDriver(plan, self, FailedRows(0))
        self.begin()

    def begin(self) -> None:
        """A driver begins: all workers are new."""
        self.generation += 1
        self.attempt = 0
        self.commits = BatchCommits(self.plan, str(self.folder), self.generation)
        self.commits.open(self.offsets)
        self.workers = [self.worker(index) for index in range(self.plan.workers)]

    def worker(self, index: int) -> Worker:
        self.died += 1
        access = StateAccess(str(self.folder), self.generation, self.commits.last)
        worker = Worker(
            self.plan,
            index,
            incarnation=self.died,
            clock=clock,
            random=Random(self.random.random()),
            state=access,
        )
        worker.open()
        return worker

    def batch(self) -> None:
        """Run the next batch, however often that takes."""
        number = self.offsets + 1
        while self.commits.last < number:
            try:
                self.transact(number)
            except LostError as lost:
                if lost.worker is None:
                    self.begin()
                    continue
                self.next_attempt(f"worker {lost.worker} is gone", number, lost.worker)
        self.offsets = number

    def transact(self, number: int) -> None:
        self.number = number
        self.driver.attempt(number, NO_EARLIER_ATTEMPTS)
        transaction = self.driver.transaction
        assert transaction is not None
        if transaction.aborts is not None:
            self.next_attempt(transaction.aborts, number)
            return
        self.commits.tidy()
        self.may_die()

    def plain_orders(self) -> RoundOrders:
        return RoundOrders(committed=self.commits.last)

    def announce(self, batch: int, announcement: Mapping[str, bytes]) -> None:
        raise AssertionError("there are no committers")

    def round_ended(self, transaction: Transaction) -> None:
        pass

    def commit(self, batch: int, files: Sequence[FileDescription | ChangedRows | None]) -> None:
        self.may_die()
        self.commits.commit(batch, files)

    def next_attempt(self, reason: str, number: int, lost: int | None = None) -> None:
        self.attempt += 1
        self.commits.reopen()
        for index, worker in enumerate(self.workers):
            if index == lost:
                self.workers[index] = self.worker(index)
            else:
                worker.begin_attempt(reason, number)

    def run_round(self, orders: RoundOrders) -> list[WorkerReport]:
        inbound: list[list[Frame]] = [[] for _ in self.workers]
        for phase in range(self.plan.last_superstep + 1):
            replies = []
            for worker in self.workers:
                self.may_die()
                superstep = orders.round * (self.plan.last_superstep + 1) + phase
                step = Step(self.number, self.attempt, superstep, orders)
                replies.append(worker.run(step, inbound[worker.index]))
            inbound = [[f for reply in replies for f in reply if f.target == w.index] for w in self.workers]
        return [pickle.loads(frame.payload) for frames in inbound for frame in frames]

    def may_die(self) -> None:
        if self.random.random() < self.deaths:
            raise LostError(self.random.choice([None, *range(self.plan.workers)]))

    def state(self, component: str) -> dict[Any, Any]:
        table = StateTable(self.folder)
        rows = table.as_arrow(component).read_all().to_pylist()
        return {decode_key(row["key"]): pickle.loads(row["value"]) for row in rows}


@pytest.mark.slow
@settings(max_examples=min(25, settings().max_examples // 4), deadline=None)
@given(st.integers(1, 3), st.integers(0, 2**32), st.sampled_from([0.0, 0.005, 0.02]))
def test_all_happens_once(workers: int, seed: int, deaths: float) -> None:
    """C35, C42, C44: state, what was drawn at random, and acks, whatever dies between two steps; acks come after the commit."""
    random = Random(seed)
    dice.seed(seed)
    acked.clear()
    saved.clear()
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("choose", Choose(), 2).fields_grouping("numbers", Fields("n"))
    builder.set_bolt("total", Total(), 2).fields_grouping("choose", Fields("key"))
    plan = plan_topology(
        builder.create_topology("t"), {"topology.workers": workers, "topology.message.timeout.secs": 1000}
    )
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(plan, Path(folder) / "state", random, deaths)
        for _ in range(200):
            engine.batch()
            committed = engine.state("numbers").get("n", 0)
            assert set(acked) <= set(range(committed)), "an ack before its commit"
            if committed == MESSAGES:
                break
        engine.batch()
        for one in engine.workers:
            one.validate()
            left = one.ledger.statistics()
            assert not one.backlog and left.open == left.parts == 0
        drawn, totals = engine.state("choose"), engine.state("total")
        assert sorted(drawn) == list(range(MESSAGES))
        for key in range(KEYS):
            mine = [number for n, number in drawn.items() if n % KEYS == key]
            assert totals[key] == (len(mine), sum(mine))
        assert max(acked.values(), default=1) == 1
        assert len(set(saved)) == len(saved), "post_save of one checkpoint twice"
        if not deaths:
            assert set(acked) == set(range(MESSAGES))
