"""What a limit does to a spout in its worker, beside max spout pending, and what is told of it."""

from __future__ import annotations

from typing import Any

from stormspark.backpressure import SpoutLoad
from stormspark.worker.step import WorkerReport
from tests.unit.worker.components import Call, Collect, Script
from tests.unit.worker.rig import Rig, two


class Unreliable(Script):
    """Emits without message ids."""

    def next_tuple(self) -> None:
        if self.next < len(self.rows):
            self.next += 1
            self.collector.emit(self.rows[self.next - 1])


def keep(bolt: Any, tup: Any) -> None:
    bolt.kept.append(tup)


def load_of(report: WorkerReport, spout: Any) -> SpoutLoad:
    load = report.loads[spout.id]
    assert isinstance(load, SpoutLoad)
    return load


def numbers(n: int) -> list[tuple[int]]:
    return [(number,) for number in range(n)]


def test_a_spout_emits_as_much_as_its_limit_lets_it_and_the_time_it_is_held_is_counted() -> None:
    """F6: from when it was not asked any more until the next round begins; a round that is in nobody's way counts nothing."""
    rig = Rig(two(Collect(), numbers(100)), 1)
    (spout,) = rig.tasks("a")
    (report,) = rig.cluster.run_batch({spout.id: 30})
    assert report.loads[spout.id] == SpoutLoad(emitted=30, hungry=True, limited=True)
    rig.clock.advance(2)
    (report,) = rig.cluster.run_batch({spout.id: 200})
    assert report.loads[spout.id] == SpoutLoad(emitted=70, hungry=False, limited=False)
    rig.clock.advance(2)
    (report,) = rig.cluster.run_batch({spout.id: 200})
    counters = report.counters[spout.id]
    assert (
        counters.skipped_backpressure_ms,
        counters.skipped_max_spout_ms,
        counters.skipped_inactive_ms,
    ) == (2000, 0, 0)


def test_max_spout_pending_is_the_other_brake() -> None:
    """F8, B4, F6: the smaller of the two holds, its time is counted apart, and a spout that is held by it asks for no more."""
    rig = Rig(two(Call(keep), numbers(100)), 1, topology_max_spout_pending=7)
    (spout,) = rig.tasks("a")
    (report,) = rig.cluster.run_batch({spout.id: 5})
    assert load_of(report, spout).limited
    rig.clock.advance(1)
    (report,) = rig.cluster.run_batch({spout.id: 5})
    assert report.loads[spout.id] == SpoutLoad(
        emitted=2, hungry=False, limited=False, open_trees=7, held=True
    )
    rig.clock.advance(3)
    (report,) = rig.cluster.run_batch({spout.id: 5})
    counters = report.counters[spout.id]
    assert (counters.emitted, counters.pending) == (7, 7)
    assert (counters.skipped_backpressure_ms, counters.skipped_max_spout_ms) == (1000, 3000)


def test_max_spout_pending_is_of_tracked_tuples_and_a_limit_of_all() -> None:
    """Max spout pending does not hold back untracked tuples, and a round's limit does (F8, B4)."""
    rig = Rig(two(Call(keep), Unreliable(numbers(100))), 1, topology_max_spout_pending=7)
    (spout,) = rig.tasks("a")
    (report,) = rig.cluster.run_batch({spout.id: 40})
    assert load_of(report, spout).emitted == 40
    (report,) = rig.cluster.run_batch()
    assert load_of(report, spout).emitted == 60


def test_time_while_inactive_is_counted_apart() -> None:
    """Time while a spout is inactive is counted apart from time under backpressure (F6, B13)."""
    rig = Rig(two(Collect(), numbers(100)), 1)
    (spout,) = rig.tasks("a")
    rig.cluster.set_active(False)
    rig.batches(1)
    rig.advance(4)
    rig.cluster.set_active(True)
    rig.batches(1)
    assert (spout.counters.skipped_inactive_ms, spout.counters.skipped_backpressure_ms) == (4000, 0)
