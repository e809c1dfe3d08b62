"""Overload without slowing anybody down: what does not fit into the queue of a bolt's task is dropped or failed (X51, F10).

The queue holds as much as its high marks say, in tuples and in bytes, and what comes beyond that is shed, the newest first. So
what is executed is in order, the bolt always has work, and memory is bounded by the marks. A tuple that is dropped closes its
edge: its tree ends as if the tuple had been executed, where Heron's waits for the timeout. One that fails ends its tree at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormspark.acker import Outcome, Verdict
from stormspark.api import Tuple
from stormspark.worker.tuples.collectors import close_edges, fail_roots

if TYPE_CHECKING:
    from stormspark.acker import Ledger
    from stormspark.config import Settings
    from stormspark.worker.bolt_task import BoltTask

__all__ = ["Shedding"]

_MEGABYTE = 1024 * 1024


class Shedding:
    """Of one task of a bolt."""

    def __init__(self, task: BoltTask, ledger: Ledger, settings: Settings) -> None:
        self._task, self._ledger = task, ledger
        self._strategy = settings.backpressure_strategy
        self._most_tuples, self._most_bytes = settings.tuple_marks[0], settings.byte_marks[0]
        self._interval = settings.error_interval_secs
        self._untold = 0
        self._told_at: float | None = None

    def excess(self) -> int:
        """How many of the tuples that wait do not fit."""
        waiting = self._task.waiting
        if not waiting:
            return 0
        fit = max(1, min(self._most_tuples, int(self._most_bytes / self._task.size_of_one())))
        return max(0, waiting - fit)

    def shed(self, excess: int, now: float) -> None:
        """Give the newest ``excess`` tuples up, but for ticks, and say so once an interval; ``now`` is in seconds."""
        task = self._task
        newest = task.take_newest(excess)
        if self._strategy == "fail":
            verdict = Verdict(Outcome.FAILED, self._full(), task.component.id, task.id)
            for values, source, roots in newest:
                fail_roots(self._ledger, roots, verdict)
                if task.hooks:
                    tup = Tuple(values, source, roots)
                    tup.state = 1
                    task.tell_failed(tup)
        else:
            for _, _, roots in newest:
                close_edges(self._ledger, roots)
        task.counters.shed += len(newest)
        self._untold += len(newest)
        if self._untold and (self._told_at is None or now - self._told_at >= self._interval):
            self._tell(now)

    def _tell(self, now: float) -> None:
        what = "failed" if self._strategy == "fail" else "were dropped"
        since = "" if self._told_at is None else f" in the last {now - self._told_at:.0f} s"
        component = self._task.component
        self._task.report_error(
            f"{self._untold:,} tuples {what}{since}: {self._full()}. Give bolt {component.id!r}, declared at "
            f"{component.declared_at}, more tasks or less work, or set the strategy to 'slow' (X51)"
        )
        self._untold, self._told_at = 0, now

    def _full(self) -> str:
        waiting, where = self._task.waiting, "tuples"
        size = f"{waiting:,} tuples"
        if waiting < self._most_tuples:
            where = "bytes"
            size += f", some {self._most_bytes / _MEGABYTE:,.3g} MB"
        return (
            f"the queue of {self._task.name} is full ({size}: stormspark.queue.high.mark.{where}), and "
            f"stormspark.backpressure.strategy is {self._strategy!r}"
        )
