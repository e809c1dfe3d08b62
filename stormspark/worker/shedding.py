"""How a bolt's task drops or fails tuples that do not fit into its queue, if spouts are not slowed down (X51, F10).

The queue holds as many tuples and bytes as its high marks allow. Tuples beyond that are shed, the newest first. So the bolt
executes tuples in order and always has work, and the marks bound the memory. Dropping a tuple closes its edge, as if the tuple
had been acked. In Heron the tuple's tree would wait for the timeout. Failing a tuple ends its tree at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormspark.acker import Outcome, Verdict
from stormspark.api import Tuple
from stormspark.api.tuple_state import SETTLED
from stormspark.worker.tuples.edges import close_edges, fail_roots

if TYPE_CHECKING:
    from stormspark.acker import Ledger
    from stormspark.config import Settings
    from stormspark.worker.bolt_task import BoltTask

__all__ = ["Shedding"]

_MEGABYTE = 1024 * 1024


class Shedding:
    """The shedding of one bolt's task. It drops or fails the tuples that do not fit into the task's queue."""

    def __init__(self, task: BoltTask, ledger: Ledger, settings: Settings) -> None:
        self._task, self._ledger = task, ledger
        self._strategy = settings.backpressure_strategy
        self._most_tuples, self._most_bytes = settings.tuple_marks[0], settings.byte_marks[0]
        self._interval = settings.error_interval_secs
        self._unreported = 0
        self._reported_at: float | None = None
        #: How many tuples fitted into the queue at the last call of `excess`. An executor's thread may have emptied it since.
        self._fitting = self._most_tuples

    def excess(self) -> int:
        """Return how many of the waiting tuples do not fit."""
        waiting = self._task.waiting
        if not waiting:
            return 0
        self._fitting = max(1, min(self._most_tuples, int(self._most_bytes / self._task.queue.size_of_one())))
        return max(0, waiting - self._fitting)

    def shed(self, excess: int, now: float) -> None:
        """Drop or fail the newest ``excess`` tuples, but no ticks. Report how many were shed, at most once per interval. ``now``
        is in seconds.
        """
        task = self._task
        newest = task.queue.take_newest(excess)
        if self._strategy == "fail":
            verdict = Verdict(Outcome.FAILED, self._full(), task.component.id, task.id)
            for values, source, roots in newest:
                fail_roots(self._ledger, roots, verdict)
                if task.hooks:
                    tup = Tuple(values, source, roots)
                    tup.state = SETTLED
                    task.call_fail_hooks(tup, most=self._fitting)
        else:
            for _, _, roots in newest:
                close_edges(self._ledger, roots)
        task.counters.shed += len(newest)
        self._unreported += len(newest)
        if self._unreported and (self._reported_at is None or now - self._reported_at >= self._interval):
            self._report(now)

    def _report(self, now: float) -> None:
        what = "failed" if self._strategy == "fail" else "were dropped"
        since = "" if self._reported_at is None else f" in the last {now - self._reported_at:.0f} s"
        component = self._task.component
        self._task.report_error(
            f"{self._unreported:,} tuples {what}{since}: {self._full()}. Give bolt {component.id!r}, declared at "
            f"{component.declared_at}, more tasks or less work, or set the strategy to 'slow'"
        )
        self._unreported, self._reported_at = 0, now

    def _full(self) -> str:
        where, size = "tuples", f"{self._fitting:,} tuples"
        if self._fitting < self._most_tuples:
            where = "bytes"
            size += f", some {self._most_bytes / _MEGABYTE:,.3g} MB"
        return (
            f"the queue of {self._task.name} is full ({size}: stormspark.queue.high.mark.{where}), and "
            f"stormspark.backpressure.strategy is {self._strategy!r}"
        )
