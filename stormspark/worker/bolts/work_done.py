"""The part of a bolt's task that says how much work the bolt has done, and how much work waits for it.

The work is measured as time. For most bolts, this is the time of their calls. Many calls of an async bolt are under way at once,
so only the time in which such a bolt keeps the worker's thread busy counts as its work.
"""

from __future__ import annotations

from typing import Any

from stormspark.backpressure import BoltLoad
from stormspark.metrics import TaskCounters
from stormspark.worker.asynchronous.bolt_executor import AsyncBoltExecutor
from stormspark.worker.bolts.failing import FailsTuples
from stormspark.worker.bolts.queue import TupleQueue

__all__ = ["CountsWork"]


class CountsWork(FailsTuples):
    """The part of a `stormspark.worker.bolt_task.BoltTask` that counts the bolt's work."""

    #: The tuples that wait for the bolt.
    queue: TupleQueue

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Of the last report: how many tuples the bolt had executed, in how many seconds, and how many were shed.
        self._reported = (0, 0.0, 0)
        #: Of an async bolt, the seconds in which the worker's thread worked for the bolt, or waited for it because it was full.
        #: The latency of such a bolt is the time of its calls, of which many are under way at once.
        self.worked_secs = 0.0
        #: When `read_counters` was called last, and how many seconds all calls had taken by then (`in_calls`).
        self._in_calls_before: tuple[float, float] | None = None
        #: Of a bolt that is async or has threads: how many calls had ended at the last report, how many seconds they had taken, and the latest mean.
        self._calls_ended = (0, 0.0, 0.0)

    def load(self) -> BoltLoad:
        """Return the work that the bolt has done since the last report, and how many tuples wait for the bolt."""
        executed, seconds, shed = self.counters.executed, self.counters.latency.seconds, self.counters.shed
        if self.component.capacity:
            seconds = self.worked_secs
        before, self._reported = self._reported, (executed, seconds, shed)
        waiting, outside = self.queue.waiting, self._runner.outside
        size = self.queue.size_of_one() if waiting or outside else 0
        queued = waiting + outside
        load = BoltLoad(executed - before[0], seconds - before[1], queued, queued * size, shed - before[2])
        instance = self.instance
        if not isinstance(instance, AsyncBoltExecutor):
            return load
        pace, first_call = self.call_secs(instance.secs_of_ended_calls) / self.component.capacity, 0.0
        if not self.counters.latency.count:
            first_call = instance.oldest_call_secs
            pace = first_call / self.component.capacity
        return load._replace(
            in_calls=outside, in_calls_bytes=outside * size, pace=pace, first_call=first_call
        )

    def call_secs(self, seconds_now: float) -> float:
        """Return the mean time of the calls that have ended since the last report; if none has, what was returned then.

        ``seconds_now`` is the time of all calls that have ended.
        """
        ended, seconds, mean = self._calls_ended
        now = self.counters.latency.count
        if now > ended and seconds_now >= seconds:  # a new instance of an ordered bolt begins with 0 seconds
            mean = (seconds_now - seconds) / (now - ended)
        self._calls_ended = (now, seconds_now, mean)
        return mean

    def waited(self, seconds: float) -> None:
        """If the bolt is busy, add ``seconds`` to its execution time. In this time the worker did nothing but wait for bolts."""
        if not self._runner.is_busy:
            return
        if self.component.capacity:
            self.worked_secs += seconds
        else:
            self.counters.latency.seconds += seconds

    def in_calls(self) -> tuple[float, float] | None:
        """Return the time, and how many seconds all calls together have taken so far, those that are under way included.

        Returns None if the calls hold up the worker.
        """
        instance = self.instance
        return instance.in_calls() if isinstance(instance, AsyncBoltExecutor) else None

    def read_counters(self) -> TaskCounters:
        """See `Task.read_counters`. Each call is the end of a period, for which `TaskCounters.calls_under_way` is computed."""
        before, now = self._in_calls_before, self.in_calls()
        self._in_calls_before = now
        if now is None or before is None or now[0] <= before[0]:
            self.counters.calls_under_way = 0.0
        else:  # a restart ends calls, so there may be fewer seconds than before
            self.counters.calls_under_way = max(now[1] - before[1], 0.0) / (now[0] - before[0])
        return super().read_counters()
