"""Prolonging: while too many rows of a batch wait, the batch gets another round, and Spark reads no further rows (F10).

Spark fixes what a batch reads from a native source (Delta, files, any other streaming DataFrame) before the batch runs. Heron's
stream manager stops reading above its high water mark, and reads again below its low water mark. A prolonged batch has the same
effect, because Spark reads nothing more until the batch ends. In each of its rounds bolts work, ticks fire and limits change.
After each round the driver decides anew (W1), from the workers' reports.
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

#: If the number of waiting rows has not fallen for this many rounds in a row, the batch won't end soon.
_STALLED_ROUNDS = 3


class Prolonging:
    """Decides for one topology whether its running batch gets another round.

    ``spouts`` are the source spouts with a native source, which Spark itself reads. ``unkept`` are those whose rows nobody keeps
    beyond the end of a batch, because there is no durable acker. After each round, call `Throttle.observe` first, and then
    `observe`.
    """

    def __init__(
        self, plan: PhysicalPlan, throttle: Throttle, spouts: Sequence[str], unkept: Sequence[str] = ()
    ) -> None:
        self._throttle = throttle
        self._tasks = {spout: plan.components[spout].tasks for spout in spouts}
        self._unkept = {spout: plan.components[spout].tasks for spout in unkept}
        self.begin()
        #: Whether the next batch is likely to be prolonged. Before the first batch, this is true if there are such spouts. Later,
        #: it is true if the last batch was prolonged.
        self.expected = bool(spouts)

    def begin(self) -> None:
        """Start the figures of a new batch."""
        #: The number of rows that came with the batch, by source spout. For a spout that reads ranges (Kafka), it is the number
        #: of ranges.
        self.came: Counter[str] = Counter()
        self._emitting: Counter[str] = Counter()  # the number of rounds in which a spout emitted
        self._busy = 0.0
        self._waiting: dict[str, int] = {}
        self._not_fewer = 0
        #: Whether the batch needs another round.
        self.wanted = False
        self.expected = False

    @property
    def stalled(self) -> bool:
        """Whether the batch has waiting rows that don't become fewer, because spouts are deactivated or nothing is acked."""
        return self._not_fewer >= _STALLED_ROUNDS

    def observe(self, reports: Sequence[WorkerReport]) -> None:
        """Take in the reports of a round that has ended."""
        loads = merge_loads(reports)
        for report in reports:
            for component, progress in report.sources.items():
                self.came[component] += progress.came
        self._busy += max(
            (load.seconds for load in loads.values() if isinstance(load, BoltLoad)), default=0.0
        )
        before, self._waiting = sum(self._waiting.values()), {}
        self.wanted = False
        for spout, tasks in {**self._unkept, **self._tasks}.items():
            mine = [load for task in tasks if isinstance(load := loads.get(task), SpoutLoad)]
            self._waiting[spout] = sum(load.rows_waiting for load in mine)
            emits = any(load.emitted for load in mine)
            self._emitting[spout] += emits
            if spout in self._tasks:
                # A spout that emits none of its waiting rows is deactivated or has too many open trees. It needs no further rows.
                self.wanted |= self._throttle.is_behind([spout]) or bool(self._waiting[spout] and not emits)
            # If the batch ended, Spark would commit its offsets, and a restart would not read these rows again.
            self.wanted |= spout in self._unkept and self._waiting[spout] > 0
        waiting = sum(self._waiting.values())
        self._not_fewer = self._not_fewer + 1 if waiting and waiting >= before else 0
        self.expected = self.expected or self.wanted

    def bites(self) -> Mapping[str, Bite]:
        """Return the figures of the batch for each native source spout. `TriggerLimits` learns from them."""
        return {
            spout: Bite(
                self.came[spout],
                max(self._emitting[spout], 1),
                bool(self._waiting.get(spout)) or self._throttle.limit_of(spout) is not None,
                self._busy,
            )
            for spout in self._tasks
        }
