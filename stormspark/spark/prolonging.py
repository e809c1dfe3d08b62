"""Whether a batch goes on for another round: while so much of it waits that no more should be read (F10).

What Spark reads for a batch of a native source, Kafka's, Delta's, files, is fixed before the batch runs. Heron's stream manager
stops reading above its high mark and reads again below the low one; so does a batch here, by not ending. Bolts work, ticks fire
and limits follow round by round meanwhile. The signal is read anew after each round (W1), from what the workers report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from stormspark.backpressure import BoltLoad, SpoutLoad
from stormspark.driver.throttle import Throttle
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.trigger_limits import Bite
from stormspark.worker.step import WorkerReport, merge_loads

__all__ = ["Prolonging"]

#: A batch whose rows were no fewer after so many rounds in a row is not going to be worked off soon.
_STALLED_ROUNDS = 3


class Prolonging:
    """For the native source ``spouts`` of one topology; `observe` each round, after the throttle has."""

    def __init__(self, plan: PhysicalPlan, throttle: Throttle, spouts: Sequence[str]) -> None:
        self._throttle = throttle
        self._tasks = {spout: plan.components[spout].tasks for spout in spouts}
        self.begin()
        #: Whether to expect, before a batch begins, that it is prolonged: the last one was, or nothing is known.
        self.expected = bool(spouts)

    def begin(self) -> None:
        """A batch begins."""
        #: Rows, or ranges, of all sources that came with it.
        self.came: Counter[str] = Counter()
        self._emitting: Counter[str] = Counter()  # rounds in which a spout emitted
        self._busy = 0.0
        self._waiting: dict[str, int] = {}
        self._not_fewer = 0
        #: It needs another round.
        self.wanted = False
        self.expected = False

    @property
    def stalled(self) -> bool:
        """Rows wait, and for some rounds nobody has taken any: deactivated, or nothing is acked."""
        return self._not_fewer >= _STALLED_ROUNDS

    def observe(self, reports: Sequence[WorkerReport]) -> None:
        """A round has ended."""
        loads = merge_loads(reports)
        for report in reports:
            for component, progress in report.sources.items():
                self.came[component] += progress.came
        self._busy += max(
            (load.seconds for load in loads.values() if isinstance(load, BoltLoad)), default=0.0
        )
        before, self._waiting = sum(self._waiting.values()), {}
        self.wanted = False
        for spout, tasks in self._tasks.items():
            mine = [load for task in tasks if isinstance(load := loads.get(task), SpoutLoad)]
            self._waiting[spout] = sum(load.rows_waiting for load in mine)
            emits = any(load.emitted for load in mine)
            self._emitting[spout] += emits
            # One that takes none of the rows that wait, since it was deactivated or has too much pending, needs no more.
            if self._throttle.is_behind([spout]) or (self._waiting[spout] and not emits):
                self.wanted = True
        waiting = sum(self._waiting.values())
        self._not_fewer = self._not_fewer + 1 if waiting and waiting >= before else 0
        self.expected = self.expected or self.wanted

    def bites(self) -> Mapping[str, Bite]:
        """What the batch was for each of these sources."""
        return {
            spout: Bite(
                self.came[spout],
                max(self._emitting[spout], 1),
                bool(self._waiting.get(spout)) or self._throttle.limit_of(spout) is not None,
                self._busy,
            )
            for spout in self._tasks
        }
