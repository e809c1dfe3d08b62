"""Batches that are transactions, where workers have unequal amounts of work: no tuple of a batch comes after ``pre_save``."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import BasicBolt, Bolt, FailedException, Fields, OutputFieldsDeclarer, TopologyBuilder, Tuple
from stormspark.api.state import TwoPhaseStatefulComponent
from stormspark.local import SimulatedClock
from tests.unit.worker.components import Script
from tests.unit.worker.rig import Rig

#: What sinks were told, in order: the task, and a tuple's number or the batch that ends.
calls: list[tuple[int, str, int]] = []
#: What sinks delivered, by the batch that did.
delivered: list[tuple[int, int]] = []
clock: list[SimulatedClock] = []
failed_once: set[int] = set()


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    for memory in (calls, delivered, clock, failed_once):
        memory.clear()


class Slow(BasicBolt):
    """Takes ``seconds`` for each tuple in its second task, and no time in the first; fails what it is told to, once."""

    def __init__(self, seconds: float, fails: int = -1) -> None:
        self.seconds, self.fails = seconds, fails

    def prepare(self, conf: Any, context: Any) -> None:
        self.slow = context.this_task_index == 1

    def execute(self, tup: Tuple, collector: Any) -> None:
        (n,) = tup.values
        if self.slow and clock:
            clock[0].advance(self.seconds)
        if n == self.fails and n not in failed_once:
            failed_once.add(n)
            raise FailedException("once")
        collector.emit((n,))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class Sink(TwoPhaseStatefulComponent, Bolt):
    """Delivers what a batch brought when it is committed, as connectors do."""

    def init_state(self, state: Any) -> None:
        self.state, self.rows = state, []

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.task, self.collector = context.this_task_id, collector

    def execute(self, tup: Tuple) -> None:
        (n,) = tup.values
        calls.append((self.task, "execute", n))
        self.rows.append(n)
        self.collector.ack(tup)

    def pre_save(self, checkpoint_id: int) -> None:
        calls.append((self.task, "pre_save", checkpoint_id))
        self.state["outbox"], self.rows = self.rows, []

    def post_save(self, checkpoint_id: int) -> None:
        delivered.extend((checkpoint_id, n) for n in self.state["outbox"])

    def pre_restore(self, checkpoint_id: int) -> None:
        self.rows = []


class Again(Script):
    """Emits what has failed again."""

    def fail(self, message_id: Any) -> None:
        super().fail(message_id)
        self.todo.insert(0, message_id)

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.todo = list(range(len(self.rows)))

    def next_tuple(self) -> None:
        if self.todo:
            id = self.todo.pop(0)
            self.collector.emit(self.rows[id], message_id=id)


def uneven(rows: int, seconds: float, fails: int = -1) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Again([(n,) for n in range(rows)]))
    builder.set_bolt("slow", Slow(seconds, fails), 2).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink(), 2).fields_grouping("slow", Fields("n"))
    return builder


def run(builder: TopologyBuilder, rows: int, workers: int) -> Rig:
    rig = Rig(
        builder,
        workers,
        stormspark_exactly_once=True,
        stormspark_batch_target_ms=100,
        topology_message_timeout_secs=10_000,
    )
    clock.append(rig.clock)
    for _ in range(20):
        rig.advance(0.01)
        if len(delivered) >= rows:
            break
    rig.batches(2)
    return rig


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.3, 3.0])
def test_every_row_is_delivered_once_however_work_is_spread(workers: int, seconds: float) -> None:
    """C42: a worker that is done waits for one that is not, and prepares once for each batch."""
    run(uneven(100, seconds), 100, workers)
    assert sorted(n for _, n in delivered) == list(range(100))
    for task in {task for task, _, _ in calls}:
        saved = [batch for one, what, batch in calls if one == task and what == "pre_save"]
        assert saved == sorted(set(saved)), "pre_save of one batch twice"


@pytest.mark.parametrize("workers", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 5))])
@pytest.mark.parametrize("seconds", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("fails", [0, 1, 98, 99])
def test_a_batch_with_a_failed_tree_is_taken_back_however_late_the_fail_comes(
    workers: int, seconds: float, fails: int
) -> None:
    """C44: a fail that a deadline holds back fails the batch that it belongs to, so nothing comes twice."""
    run(uneven(100, seconds, fails), 100, workers)
    assert failed_once == {fails}
    assert sorted(n for _, n in delivered) == list(range(100))


def test_an_even_batch_needs_one_round() -> None:
    """The workers agree within the round that nothing is left."""
    rig = run(uneven(100, 0.0), 100, 3)
    steps: list[Any] = []
    for worker in rig.workers:

        def run_and_note(step: Any, frames: Any, run: Any = worker.run) -> Any:
            steps.append(step)
            return run(step, frames)

        worker.run = run_and_note
    rig.batches(5)
    assert len(steps) == 5 * 3 * (rig.cluster.plan.last_superstep + 1)
