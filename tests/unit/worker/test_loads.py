"""How choosers that follow load hear of it, in one worker and over several (D6, D7, D13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from stormspark import CustomStreamGrouping, TopologyBuilder
from stormspark.wire.frames import FrameKind
from stormspark.worker.step import Step
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import Rig

#: What choosers were told, whichever worker they are in.
told: list[dict[int, float]] = []


class Listens(CustomStreamGrouping):
    """Sends everything to the last of the targets; keeps the loads."""

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        self.last = target_tasks[-1]

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        return [self.last]

    def refresh_load(self, loads: Mapping[int, float]) -> None:
        told.append(dict(loads))


class Slow(Collect):
    """A tuple takes two seconds of its worker's clock, which tests drive."""

    clock: Any = None

    def execute(self, tup: Any, collector: Any) -> None:
        super().execute(tup, collector)
        Slow.clock.advance(2.0)


def flood(
    tuples: int, grouping: str, *arguments: Any, bolt: Any = None, parallelism: int = 2
) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(tuples)]))
    declarer = builder.set_bolt("b", bolt or Collect(), parallelism)
    getattr(declarer, grouping)("a", *arguments)
    return builder


def kinds(frames: list[Any]) -> Counter[int]:
    return Counter(frame.kind for frame in frames)


def home(rig: Rig, task: Any) -> Any:
    """The worker that a task lives in."""
    return next(worker for worker in rig.workers if task.id in worker.tasks)


def test_a_load_is_what_waits_by_the_queues_capacity() -> None:
    """D6, D13: topology.executor.receive.buffer.size tuples are a load of 1, and more are not more."""
    told.clear()
    rig = Rig(flood(0, "custom_grouping", Listens()), 1, topology_executor_receive_buffer_size=40)
    (spout,) = rig.tasks("a")
    first, last = (task.id for task in rig.tasks("b"))
    for waiting in (10, 50, 0):
        for n in range(waiting):
            spout.outlets["default"].send((n,), None)
        rig.batches(1)
    assert told == [{first: 0.0, last: 0.25}, {first: 0.0, last: 1.0}, {first: 0.0, last: 0.0}]


def apart(rows: list[tuple[Any, ...]], bolt: Any) -> TopologyBuilder:
    """A spout whose only target lives in the other one of two workers."""
    builder = TopologyBuilder()
    builder.set_bolt("b", bolt).custom_grouping("a", Listens())
    builder.set_spout("a", Script(rows))
    return builder


def test_what_waits_in_a_lane_counts_too() -> None:
    """D6: what the last superstep of a batch has left for another worker."""
    told.clear()
    rig = Rig(apart([], Collect()), 2, topology_executor_receive_buffer_size=40)
    (spout,), (bolt,) = rig.tasks("a"), rig.tasks("b")
    assert home(rig, spout) is not home(rig, bolt)
    for n in range(10):
        spout.outlets["default"].send((n,), None)
    home(rig, spout).run(Step(0, 0, 0), [])
    home(rig, spout).run(Step(0, 0, 1), [])
    assert told == [{bolt.id: 0.25}, {bolt.id: 0.0}]


def test_workers_tell_each_other_with_the_frames_of_a_superstep() -> None:
    """D6: at the beginning of the next one the sender knows what waits elsewhere."""
    told.clear()
    rig = Rig(apart([(n,) for n in range(3000)], Slow()), 2, topology_executor_receive_buffer_size=4000)
    Slow.clock = rig.clock
    (spout,), (bolt,) = rig.tasks("a"), rig.tasks("b")
    here, there = home(rig, spout), home(rig, bolt)
    assert here is not there
    sent = here.run(Step(0, 0, 0), [])
    assert FrameKind.LOADS not in kinds(sent)  # it has no target to tell of
    there.run(Step(0, 0, 0), [])
    answer = there.run(Step(0, 0, 1), sent)
    assert kinds(answer)[FrameKind.LOADS] == 1
    here.run(Step(0, 0, 1), answer)
    assert 0 < bolt.waiting < 3000
    assert told == [{bolt.id: 0.0}, {bolt.id: bolt.waiting / 4000}]


@pytest.mark.parametrize("grouping", ["shuffle_grouping", "local_or_shuffle_grouping", "none_grouping"])
def test_a_plan_without_such_an_edge_sends_no_loads(grouping: str) -> None:
    """W17, D6: it costs nothing."""
    rig = Rig(flood(30, grouping), 2)
    for worker in rig.workers:
        assert FrameKind.LOADS not in kinds(worker.run(Step(0, 0, 0), []))


def test_only_workers_with_a_sender_hear_and_only_those_with_a_target_tell() -> None:
    """D6: here the third worker has neither, and the second one no sender."""
    builder = TopologyBuilder()
    builder.set_bolt("b", Collect()).custom_grouping("a", Listens())
    builder.set_spout("z", Script([]))
    builder.set_spout("a", Script([(1,)]))
    builder.set_bolt("other", Collect(), 2).shuffle_grouping("z")
    rig = Rig(builder, 3)
    worker_of = {task.component.id: w.index for w in rig.workers for task in w.tasks.values()}
    told_by = {
        (frame.sender, frame.target)
        for worker in rig.workers
        for frame in worker.run(Step(0, 0, 0), [])
        if frame.kind == FrameKind.LOADS
    }
    assert worker_of["b"] != worker_of["a"]
    assert told_by == {(worker_of["b"], worker_of["a"])}


@pytest.mark.slow
@pytest.mark.parametrize("grouping", ["load_aware_shuffle_grouping", "local_first_grouping"])
def test_a_sender_leaves_its_worker_when_that_does_not_keep_up(grouping: str) -> None:
    """D6, D7: and with a bound that is never reached everything stays with the nearest task."""
    shares = []
    for bound in (0.5, 1.5):
        rig = Rig(
            flood(600, grouping, bolt=Slow()),
            2,
            topology_executor_receive_buffer_size=100,
            topology_localityaware_higher_bound=bound,
        )
        Slow.clock = rig.clock
        rig.batches(200)
        (spout,) = rig.tasks("a")
        shares.append({home(rig, task) is home(rig, spout): len(task.bolt.seen) for task in rig.tasks("b")})
    followed, stayed = shares
    assert followed[True] > 0 and followed[False] > 0 and sum(followed.values()) == 600
    assert stayed == {True: 600, False: 0}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_nothing_is_lost_nor_sent_twice_while_loads_change(workers: int) -> None:
    """While loads change, each tuple still arrives once (D6, E20)."""
    rig = Rig(
        flood(300, "load_aware_shuffle_grouping", bolt=Slow(), parallelism=3),
        workers,
        topology_executor_receive_buffer_size=8,
    )
    Slow.clock = rig.clock
    rig.batches(200)
    assert sorted(n for bolt in rig.users("b") for _, n in bolt.seen) == list(range(300))
