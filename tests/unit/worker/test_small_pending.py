"""A small max spout pending costs as little as it can: spouts go on as soon as acks come, and trees may stay local (B4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.backpressure import SpoutLoad
from stormspark.grouping import fields_task_index
from stormspark.local import submit
from stormspark.worker.step import WorkerReport
from tests.unit.worker.components import Collect, Script, acks_of
from tests.unit.worker.rig import Rig
from tests.waiting import wait_for

LIMIT = 7


class PassOn(Collect):
    def execute(self, tup: Any, collector: Any) -> None:
        super().execute(tup, collector)
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class TwoStreams(Collect):
    """Emits nothing, on either of its streams."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare_stream("more", Fields("value"))


def topology(rows: int = 1000) -> TopologyBuilder:
    """Make a -> near, in the spout's worker -> keyed -> far. ``far`` needs one more exchange, but gets no tuples."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(rows)]))
    builder.set_bolt("near", PassOn(), 2).local_or_shuffle_grouping("a")
    builder.set_bolt("keyed", TwoStreams(), 2).fields_grouping("near", Fields("value"))
    builder.set_bolt("far", Collect(), 2).fields_grouping("keyed", Fields("value"), "more")
    return builder


def limited(**conf: Any) -> Rig:
    return Rig(topology(), 2, topology_max_spout_pending=LIMIT, **conf)


def home(reports: Sequence[WorkerReport], rig: Rig) -> WorkerReport:
    (spout,) = rig.tasks("a")
    return next(report for report in reports if spout.id in report.loads)


def emitted(report: WorkerReport, rig: Rig) -> int:
    load = report.loads[rig.tasks("a")[0].id]
    assert isinstance(load, SpoutLoad)
    return load.emitted


def remote_only(rig: Rig) -> None:
    """Have the spout emit values whose ``keyed`` task is in the other worker only."""
    (spout,) = rig.tasks("a")
    here = next(worker for worker in rig.workers if spout.id in worker.tasks)
    targets = rig.cluster.plan.components["keyed"].tasks
    away = [value for value in range(10_000) if targets[fields_task_index([value], 2)] not in here.tasks]
    rig.users("a")[0].rows = [(value,) for value in away]


def test_a_held_spout_goes_on_in_the_superstep_in_which_its_acks_come() -> None:
    """Trees that end before their round's last superstep make room for others in the same round."""
    rig = limited()
    remote_only(rig)
    assert rig.cluster.plan.last_superstep == 3
    first, second = (home(rig.cluster.run_batch(), rig) for _ in range(2))
    assert (emitted(first, rig), emitted(second, rig)) == (2 * LIMIT, 2 * LIMIT)
    assert first.emitted_late and second.emitted_late


def test_a_spout_that_no_limit_holds_is_called_in_superstep_0_only() -> None:
    rig = limited()
    rig.users("a")[0].rows = [(n,) for n in range(LIMIT - 1)]
    report = home(rig.cluster.run_batch(), rig)
    assert not report.emitted_late and emitted(report, rig) == LIMIT - 1


def test_no_spout_is_called_again_if_the_round_calls_none() -> None:
    """A round that completes what is under way begins nothing new (`RoundOrders.asks_spouts`)."""
    rig = limited()
    remote_only(rig)
    rig.cluster.run_batch()
    before = rig.users("a")[0].next
    rig.cluster.complete()
    assert rig.users("a")[0].next == before
    assert len(acks_of(rig.users("a")[0])) == before, "and all trees have ended"
    assert rig.cluster.complete() == ()


def test_the_time_for_spouts_is_that_of_one_round() -> None:
    """However often they are called in a round, they get no more than the quantum."""
    rig = limited(stormspark_batch_target_ms=100)
    remote_only(rig)
    (spout,) = rig.tasks("a")
    here = next(worker for worker in rig.workers if spout.id in worker.tasks)
    quantum = here.round_clock.quantum.seconds

    class Slow(type(rig.users("a")[0])):  # type: ignore[misc]
        def next_tuple(self) -> None:
            rig.clock.advance(quantum / 3)
            super().next_tuple()

    rig.users("a")[0].__class__ = Slow
    report = home(rig.cluster.run_batch(), rig)
    assert emitted(report, rig) == 3


def test_the_time_that_the_limit_holds_a_spout_ends_when_acks_come() -> None:
    """F6: the counter has the time until the spout was called again, not until the next round."""
    rig = limited()
    remote_only(rig)
    (spout,) = rig.tasks("a")
    for worker in rig.workers:

        def run(step: Any, frames: Any, run: Any = worker.run) -> Any:
            rig.clock.advance(0.5)  # for each of the two workers
            return run(step, frames)

        worker.run = run  # type: ignore[method-assign]
    report = home(rig.cluster.run_batch(), rig)
    assert report.counters[spout.id].skipped_max_spout_ms == 2000, "from superstep 0 to superstep 2"


def shuffled() -> Rig:
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(1000)]), 2)
    builder.set_bolt("b", PassOn(), 4).shuffle_grouping("a")
    builder.set_bolt("c", Collect(), 4).none_grouping("b")
    return Rig(builder, 2, topology_max_spout_pending=LIMIT)


def test_tuples_stay_in_their_workers_in_the_rounds_for_which_the_driver_says_so() -> None:
    """Trees that stay local end at once, so the spout is held by the limit no more."""
    rig = shuffled()
    rig.cluster.run_batch()
    assert {spout.next for spout in rig.users("a")} != {1000}
    rig.batches(3)
    before = [len(bolt.seen) for bolt in rig.users("b")]
    rig.cluster.run_batch(staying_local=frozenset({"a"}))
    assert [spout.next for spout in rig.users("a")] == [1000, 1000]
    assert all(len(bolt.seen) > some for bolt, some in zip(rig.users("b"), before, strict=True)), "in turn"
    assert not any(spout.account.pending for spout in rig.tasks("a"))
    rig.batches(3)
    assert [sorted(acks_of(spout)) for spout in rig.users("a")] == [list(range(1000))] * 2


@pytest.mark.slow
def test_a_topology_that_stops_completes_what_its_spouts_emitted_late() -> None:
    """A graceful end leaves no tree open, as without a limit."""
    conf = {"topology.workers": 2, "topology.max.spout.pending": LIMIT}
    running = submit(topology(10**6).create_topology("demo"), conf=conf)
    wait_for(lambda: running.statistics().components["a"].acked > 100)
    running.stop()
    spout = running.statistics().components["a"]
    assert spout.pending == 0 and spout.acked == spout.emitted


class KnowsItsSources(Collect):
    def prepare(self, conf: Any, context: Any) -> None:
        super().prepare(conf, context)
        self.groupings = [grouping.kind for grouping in context.sources(context.this_component_id).values()]


def test_components_see_the_groupings_that_their_users_declared() -> None:
    """I2: a child in another language gets them in its handshake."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(1,)]), 2)
    builder.set_bolt("b", KnowsItsSources(), 2).shuffle_grouping("a")
    builder.set_bolt("c", KnowsItsSources(), 2).none_grouping("a")
    rig = Rig(builder, 2, topology_max_spout_pending=LIMIT)
    assert [bolt.groupings for bolt in rig.users("b") + rig.users("c")] == [["shuffle"]] * 2 + [["none"]] * 2
