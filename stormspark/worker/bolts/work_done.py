"""The part of a bolt's task that says how much work the bolt has done, and how much work waits for it.

The work is measured as time, which is the time of the bolt's calls. Many calls of an async bolt are under way at once, so the
time of each is divided by how many there may be.
"""

from __future__ import annotations

from typing import Any

from stormspark.api import TupleSource
from stormspark.backpressure import BoltLoad
from stormspark.metrics import TaskCounters
from stormspark.worker.asynchronous.bolt_executor import AsyncBoltExecutor
from stormspark.worker.asynchronous.flushing_executor import FlushingExecutor
from stormspark.worker.bolts.failing import FailsTuples
from stormspark.worker.bolts.queue import TupleQueue

__all__ = ["CountsWork"]


class CountsWork(FailsTuples):
    """The part of a `stormspark.worker.bolt_task.BoltTask` that counts the bolt's work."""

    #: The tuples that wait for the bolt.
    queue: TupleQueue

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: How many tasks of an async bolt, or how many executors of a bolt with threads, work side by side in this worker.
        self.side_by_side = 1
        #: Of the last report: how many tuples the bolt had executed, in how many seconds, and how many were shed.
        self._reported = (0, 0.0, 0)
        #: When `read_counters` was called last, and how many seconds all calls had taken by then (`in_calls`).
        self._in_calls_before: tuple[float, float] | None = None
        #: Of a bolt that is async or has threads: how many calls had ended at the last report, how many seconds they had taken,
        #: and the latest mean.
        self._calls_ended = (0, 0.0, 0.0)

    def load(self) -> BoltLoad:
        """Return the work that the bolt has done since the last report, and how many tuples wait for the bolt."""
        instance = self.instance
        if isinstance(instance, AsyncBoltExecutor):
            return self._load_of_calls(instance)
        executed, seconds, shed = self.counters.executed, self.counters.latency.seconds, self.counters.shed
        before, self._reported = self._reported, (executed, seconds, shed)
        queued = self.queue.waiting + self._runner.outside
        size = self.queue.size_of_one() if queued else 0
        return BoltLoad(executed - before[0], seconds - before[1], queued, queued * size, shed - before[2])

    def _load_of_calls(self, instance: AsyncBoltExecutor) -> BoltLoad:
        """Return the load of an async bolt, which is like one with as many executors as it makes calls at once."""
        ended, shed = self.counters.latency.count, self.counters.shed
        before, at_once = self._reported, self.component.capacity * self.side_by_side
        self._reported = (ended, 0.0, shed)
        seconds = self.call_secs(instance.secs_of_ended_calls)
        first_call = 0.0 if ended else instance.oldest_call_secs
        outside = self._runner.outside
        queued = self.queue.waiting + outside
        size = self.queue.size_of_one() if queued else 0
        return BoltLoad(
            ended - before[0],
            (ended - before[0]) * seconds / at_once,
            queued,
            queued * size,
            shed - before[2],
            alongside=True,
            under_way=first_call / at_once,
            in_calls=outside,
            in_calls_bytes=outside * size,
            pace=(seconds if ended else first_call) / self.component.capacity,
            first_call=first_call,
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

    def count_acked(self, source: TupleSource) -> None:
        """Count a tuple of a source that is acked."""
        self.counters.acked += 1
        if self.by_input is not None:
            self.by_input.acked[source] += 1

    def count_processed(self, source: TupleSource, begun: float) -> None:
        """Count a tuple that is acked now. Its execute began at the time ``begun``, and has returned (J15)."""
        took = self._clock() - begun
        self.counters.processed += 1
        self.counters.process_seconds += took
        if self.by_input is not None:
            self.by_input.processed[source] += 1
            self.by_input.process_seconds[source] += took

    def waited(self, seconds: float) -> None:
        """Add ``seconds`` to the execution time of a bolt that is no async one. In this time the worker did nothing but wait for
        bolts. It is not known which tuples took this time, so the latency of such a bolt has a mean and no percentiles.
        """
        if not self.component.capacity:
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
        instance = self.instance
        self.counters.waiting_calls = instance.waiting_calls if isinstance(instance, FlushingExecutor) else 0
        if self.by_input is not None:
            self.counters.inputs = self.by_input.read()
        return super().read_counters()
