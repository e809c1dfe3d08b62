"""A worker that has nothing to do looks around while no batch comes."""

from __future__ import annotations

from typing import Any

from stormspark import Bolt, Fields, Spout, TopologyBuilder
from tests.unit.worker.components import Collect, fails_of
from tests.unit.worker.rig import Rig, two
from tests.unit.worker.test_time import Ticked


class Door(Spout):
    """Emits what was put before it."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.waiting, self.heard = collector, [], []

    def next_tuple(self) -> None:
        if self.waiting:
            value = self.waiting.pop()
            self.collector.emit((value,), message_id=value)

    def ack(self, message_id: Any) -> None:
        self.heard.append(message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


def door(workers: int, **conf: Any) -> Rig:
    builder = TopologyBuilder()
    builder.set_spout("a", Door())
    builder.set_bolt("b", Collect()).shuffle_grouping("a")
    return Rig(builder, workers, **conf)


def test_only_a_round_in_which_nothing_happened_is_idle() -> None:
    rig = door(1)
    rig.batches(2)
    (worker,), (spout,) = rig.workers, rig.users("a")
    assert worker.was_idle
    spout.waiting.append(1)
    rig.batches(1)
    assert not worker.was_idle and spout.heard == [1]
    rig.batches(1)
    assert worker.was_idle


def test_a_spout_that_emits_between_two_batches_asks_for_the_next_one() -> None:
    """Also where the tuple has to leave the worker: it waits for the batch, and nothing of it is lost."""
    for workers in (1, 2):
        rig = door(workers)
        rig.batches(2)
        (spout,), (bolt,) = rig.users("a"), rig.users("b")
        home = next(w for w in rig.workers if any(t.component.id == "a" for t in w.tasks.values()))
        assert not home.spare_time.stirs()
        spout.waiting.extend((2, 1))
        assert home.spare_time.stirs()
        assert (spout.waiting, spout.heard) == ([2], []), "one call, and bolts wait for the batch"
        for worker in rig.workers:
            worker.validate()
        rig.batches(2)
        assert (sorted(spout.heard), len(bolt.seen)) == ([1, 2], 2)


class Held(Bolt):
    """Acks a tuple when the next one comes."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.held = collector, None

    def execute(self, tup: Any) -> None:
        if self.held is not None:
            self.collector.ack(self.held)
        self.held = tup


def test_a_worker_is_at_rest_when_nothing_is_open() -> None:
    """E10: as long as a tree is, its timeout has to be looked after."""
    rig = Rig(two(Held(), [(1,)]), 1)
    rig.batches(2)
    (report,) = rig.cluster.run_batch()
    assert report.idle and not report.at_rest
    for _ in range(61):
        rig.advance(1)
    (spout,) = rig.users("a")
    assert len(spout.heard) == len(fails_of(spout)) == 1
    (report,) = rig.cluster.run_batch()
    assert report.idle and report.at_rest


def test_a_timer_that_is_due_asks_for_a_batch() -> None:
    rig = Rig(two(Ticked(), []), 1)
    rig.batches(2)
    (worker,) = rig.workers
    rig.clock.advance(1.9)
    assert not worker.spare_time.stirs()
    rig.clock.advance(0.2)
    assert worker.spare_time.stirs()


def test_a_spout_that_is_not_active_is_not_asked() -> None:
    rig = door(1)
    rig.batches(2)
    (worker,), (spout,) = rig.workers, rig.users("a")
    rig.cluster.set_active(False)
    spout.waiting.append(1)
    assert not worker.spare_time.stirs()
