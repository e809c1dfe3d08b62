"""Small print of Storm's semantics, on one and two workers."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.config import Settings
from stormspark.wire.frames import FrameKind
from stormspark.worker.core import Worker
from stormspark.worker.random_ids import edge_ids
from stormspark.worker.step import Step
from tests.unit.worker.components import Call, Collect, Script
from tests.unit.worker.rig import Rig, two


@pytest.mark.parametrize("workers", [1, 2])
def test_values_are_passed_by_reference_inside_a_worker_and_copied_between_workers(workers: int) -> None:
    """C7: a list that one bolt changes is changed for its neighbours, and for nobody else; None is a value."""

    def change(bolt: Any, tup: Any) -> None:
        tup["value"].append("changed")
        bolt.collector.ack(tup)

    builder = TopologyBuilder()
    builder.set_spout("a", Script([(["row"], None)], fields=("value", "nothing")))
    builder.set_bolt("b", Call(change)).shuffle_grouping("a")
    builder.set_bolt("c", Collect()).shuffle_grouping("a")
    rig = Rig(builder, workers)
    rig.batches(3)
    (collect,) = rig.users("c")
    ((_, row, nothing),) = collect.seen
    homes = {task.component.id: worker.index for worker in rig.workers for task in worker.tasks.values()}
    assert row == (["row", "changed"] if homes["b"] == homes["c"] else ["row"])
    assert nothing is None


def test_a_replay_goes_to_the_same_task_by_fields_grouping() -> None:
    """C10, D17: while the number of tasks is the same; by shuffle it goes anywhere."""
    tries: Counter[Any] = Counter()
    went: dict[str, list[int]] = {"fields": [], "shuffle": []}

    class Replays(Script):
        def fail(self, message_id: Any) -> None:
            self.collector.emit(self.rows[message_id], message_id=message_id)

    def fail_three_times(bolt: Any, tup: Any) -> None:
        me = bolt.context.this_component_id
        went[me].append(bolt.context.this_task_id)
        tries[me, tup["value"]] += 1
        (bolt.collector.fail if me == "fields" and tries[me, tup["value"]] < 4 else bolt.collector.ack)(tup)

    builder = TopologyBuilder()
    builder.set_spout("a", Replays([("key",)]))
    builder.set_bolt("fields", Call(fail_three_times), 5).fields_grouping("a", Fields("value"))
    builder.set_bolt("shuffle", Call(fail_three_times), 5).shuffle_grouping("a")
    rig = Rig(builder, 1)
    # In this process components that are pickled by value keep their own globals: look at what they hold instead.
    rig.batches(6)
    bolts = rig.users("fields")
    executed = {task.id: task.read_counters().executed for task in rig.tasks("fields")}
    assert sorted(executed.values()) == [0, 0, 0, 0, 4]
    assert sorted(task.read_counters().executed for task in rig.tasks("shuffle")) == [0, 1, 1, 1, 1]
    assert len(bolts) == 5


def test_a_tree_has_one_random_edge_of_64_bits_a_frame() -> None:
    """E2, E13: so many numbers are drawn, whatever the tuples of the tree in the frame; collisions are not to be expected."""
    drawn: list[int] = []

    class Drawing(Random):
        def randbytes(self, n: int) -> bytes:
            drawn.append(n // 8)
            return super().randbytes(n)

    def fan_out(bolt: Any, tup: Any) -> None:
        for _ in range(10):
            bolt.collector.emit((1,), anchors=[tup])
        bolt.collector.ack(tup)

    builder = two(Call(fan_out), [(n,) for n in range(7)])
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    plan = Rig(builder, 2).cluster.plan
    homes = {plan.tasks[task].component: plan.tasks[task].worker for task in plan.tasks}
    assert homes["a"] == homes["c"] != homes["b"]
    workers = [Worker(plan, index, clock=lambda: 0.0, random=Drawing(index)) for index in range(2)]
    for worker in workers:
        worker.open()
    drawn.clear()
    sent = [frame for worker in workers for frame in worker.run(Step(0, 0, 0), [])]
    assert [frame.count for frame in sent if frame.kind == FrameKind.TUPLES] == [7]
    assert drawn == [7, 7]  # root ids and edges
    drawn.clear()
    back = workers[homes["b"]].run(Step(0, 0, 1), sent)
    assert [frame.count for frame in back if frame.kind == FrameKind.TUPLES] == [70]
    assert drawn == [0, 7]
    ids = edge_ids(Random(0), 100_000)
    assert len(set(ids)) == 100_000 and 0 < min(ids) < 2**48 < 2**63 < max(ids) < 2**64


@pytest.mark.parametrize("workers", [1, 2])
def test_complete_latency_is_from_emit_to_the_last_ack(workers: int) -> None:
    """E18, J15: by the clock of the spout's worker, exactly."""

    def hold(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup)

    rig = Rig(two(Call(hold), [(1,)]), workers)
    rig.batches(2)
    rig.clock.advance(2.5)
    (bolt,), (spout,) = rig.users("b"), rig.tasks("a")
    bolt.collector.ack(bolt.kept.pop())
    rig.batches(2)
    assert spout.counters.latency.count == 1
    assert spout.counters.latency.seconds == pytest.approx(2.5)


def test_counters_mean_what_storms_mean() -> None:
    """J15: emitted = emit calls, transferred = copies, executed, acked and failed of a bolt = its tuples, of a spout = trees."""

    def emit_twice(bolt: Any, tup: Any) -> None:
        bolt.collector.emit((1,), anchors=[tup])
        bolt.collector.emit((2,), anchors=[tup])
        (bolt.collector.ack if tup["value"] else bolt.collector.fail)(tup)

    builder = two(Call(emit_twice), [(0,), (1,), (2,)])
    builder.set_bolt("c", Collect(), 3).all_grouping("b")
    builder.set_bolt("d", Collect()).shuffle_grouping("b")
    rig = Rig(builder, 2)
    rig.batches(4)

    def counts(component: str) -> tuple[int, ...]:
        counters = [task.read_counters() for task in rig.tasks(component)]
        names = ("emitted", "transferred", "executed", "acked", "failed")
        return tuple(sum(getattr(counter, name) for counter in counters) for name in names)

    assert counts("a") == (3, 3, 0, 2, 1)
    assert counts("b") == (6, 24, 3, 2, 1)
    assert counts("c") == (0, 0, 18, 18, 0)
    assert counts("d") == (0, 0, 6, 6, 0)


def test_there_is_one_acker_a_worker_unless_the_topology_says_otherwise() -> None:
    """E12: null means as many as workers; 0 turns acking off."""
    assert Settings.read({"topology.workers": 3}).acker_executors == 3
    assert Settings.read({"topology.workers": 3, "topology.acker.executors": 1}).acker_executors == 1
    assert not Settings.read({"topology.acker.executors": 0}).acking


def test_the_tree_is_kept_by_the_worker_of_its_spout() -> None:
    """E19: as by Heron's stream manager; the other workers keep a part while they hold something of it."""

    def hold(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup)

    rig = Rig(two(Call(hold), [(1,), (2,)]), 2)
    rig.batches(2)
    homes = {task.component.id: worker for worker in rig.workers for task in worker.tasks.values()}
    spouts, bolts = homes["a"].statistics(), homes["b"].statistics()
    assert (spouts.open, spouts.known_outside, spouts.parts) == (2, 2, 0)
    assert (bolts.open, bolts.known_outside, bolts.parts) == (0, 0, 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_ack_or_fail_of_an_unanchored_tuple_sends_nothing_and_changes_no_table(workers: int) -> None:
    """E34: no part goes home, whether the spout gave no id or a bolt did not anchor."""

    def emit_unanchored(bolt: Any, tup: Any) -> None:
        bolt.collector.emit(tup.values)
        bolt.collector.ack(tup)

    def ack_some(bolt: Any, tup: Any) -> None:
        (bolt.collector.fail if tup["value"] % 2 else bolt.collector.ack)(tup)

    class WithoutIds(Script):
        def next_tuple(self) -> None:
            if self.next < len(self.rows):
                self.next += 1
                self.collector.emit(self.rows[self.next - 1])

    builder = two(Call(emit_unanchored), WithoutIds([(n,) for n in range(6)]))
    builder.set_bolt("c", Call(ack_some)).shuffle_grouping("b")
    plan = Rig(builder, workers).cluster.plan
    cores = [Worker(plan, index, clock=lambda: 0.0) for index in range(workers)]
    for core in cores:
        core.open()
    frames: list[Any] = []
    kinds: Counter[FrameKind] = Counter()
    for superstep in range(plan.last_superstep + 1):
        step = Step(0, 0, superstep)
        frames = [
            sent for core in cores for sent in core.run(step, [f for f in frames if f.target == core.index])
        ]
        kinds.update(frame.kind for frame in frames)
        for core in cores:
            statistics = core.statistics()
            assert (statistics.open, statistics.known_outside) == (0, 0)
            assert (statistics.parts, statistics.outgoing) == (0, 0)
    assert kinds[FrameKind.ACKS] == 0 and (kinds[FrameKind.TUPLES] > 0) == (workers == 2)
    (last,) = [task for core in cores for task in core.tasks.values() if task.component.id == "c"]
    counters = last.read_counters()
    assert (counters.acked, counters.failed) == (3, 3), "it did ack and fail them"
    assert [t.spout.heard for core in cores for t in core.wiring.spouts] == [[]]  # type: ignore[attr-defined]
