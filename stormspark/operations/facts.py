"""What there is to say about a running topology at one moment: plan, state, totals of tasks over windows, workers, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from stormspark.driver.error_log import TaskError
from stormspark.metrics import TaskCounters
from stormspark.metrics.minutes import Minutes
from stormspark.metrics.windows import (
    ALL_TIME,
    COUNTED,
    WINDOWS,
    StreamKey,
    Windows,
    stream_totals_of,
    totals_of,
)
from stormspark.operations.status import Status
from stormspark.plan.physical import PhysicalPlan
from stormspark.plan.rebalance import successor

__all__ = ["Facts", "History", "Totals", "Watched", "Watcher", "WorkerPlace"]

#: The seconds between two looks at the counters. A window of ten minutes has 20 buckets of 30 s.
_LOOK_SECS = 10.0


class WorkerPlace(NamedTuple):
    """Where a worker is. ``host`` and ``pid`` are empty and 0 while it starts; ``since`` is in seconds since 1970."""

    worker: int
    host: str
    pid: int
    since: float


class Watched(Protocol):
    """A running topology, as far as it is looked at here."""

    @property
    def plan(self) -> PhysicalPlan:
        """The physical plan that runs."""

    @property
    def storm_id(self) -> str:
        """The id of this run of the topology (A14)."""

    def by_task(self) -> dict[int, TaskCounters]:
        """Return the counters of each task."""

    def errors(self) -> Mapping[str, tuple[TaskError, ...]]:
        """Return the last errors of each component, the newest first."""

    def worker_places(self) -> Sequence[WorkerPlace]:
        """Return where the workers are, in order."""


class Totals(NamedTuple):
    """Totals of one or more tasks; see `stormspark.metrics.windows.COUNTED`."""

    emitted: int
    transferred: int
    executed: int
    acked: int
    failed: int
    calls: int
    call_seconds: float
    processed: int
    process_seconds: float

    @property
    def process_ms(self) -> float:
        """The mean process latency in milliseconds: from the start of execute until the ack (J15)."""
        at_once = max(0, self.acked - self.processed)
        acked = at_once + self.processed
        return (at_once * self.mean_ms + self.process_seconds * 1000) / acked if acked else 0.0

    @property
    def mean_ms(self) -> float:
        """The mean latency in milliseconds; 0 if nothing was measured, as in Storm."""
        return self.call_seconds / self.calls * 1000 if self.calls else 0.0


@dataclass(frozen=True)
class Facts:
    """A snapshot. ``totals`` has a matrix for each window, a row for each task in the order of ``tasks``. ``stream_totals`` has a
    row for each of ``streams``: those of tasks that have several.
    """

    id: str
    plan: PhysicalPlan
    status: Status
    owner: str
    now: float
    uptime_secs: int
    tasks: tuple[int, ...]
    totals: Mapping[str, np.ndarray]
    workers: Sequence[WorkerPlace]
    errors: Mapping[str, tuple[TaskError, ...]]
    streams: tuple[StreamKey, ...] = ()
    stream_totals: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def _row_of(self) -> dict[int | StreamKey, int]:
        rows: dict[int | StreamKey, int] = {task: row for row, task in enumerate(self.tasks)}
        return {**rows, **{stream: row for row, stream in enumerate(self.streams)}}

    def of(self, window: str, tasks: Sequence[int]) -> Totals:
        """Return the totals of some tasks within a window."""
        return self._sum(self.totals[window], tasks)

    def rows(self, window: str) -> Callable[[int | StreamKey], np.ndarray]:
        """Return a function that returns the row of a task, or of one of its streams, within a window."""
        return _rows(self.tasks, self.totals[window], self.streams, self.stream_totals[window])

    def place(self, worker: int) -> WorkerPlace:
        """Return where a worker is; nowhere if it is none of the plan's."""
        return next((one for one in self.workers if one.worker == worker), WorkerPlace(worker, "", 0, 0.0))

    def on(self, window: str, tasks: Sequence[int], stream: str | tuple[str, str]) -> Totals:
        """Return the totals of one stream of some tasks within a window: of the stream that they emit on, or of the component and
        stream that they read.
        """
        keys = [(task, stream) for task in tasks]
        if keys and keys[0] not in self._row_of:
            return self.of(window, tasks)  # it is their only stream
        return self._sum(self.stream_totals[window], keys)

    def _sum(self, totals: np.ndarray, keys: Sequence[int | StreamKey]) -> Totals:
        rows = [self._row_of[key] for key in keys]
        sums = totals[rows].sum(axis=0).tolist() if rows else [0.0] * len(COUNTED)
        return Totals._make(
            number if name.endswith("seconds") else int(number)
            for name, number in zip(COUNTED, sums, strict=True)
        )

    def capacity(self, tasks: Sequence[int]) -> float:
        """Return the share of the last ten minutes that the busiest executor of some tasks was in execute (J16)."""
        seconds: dict[int, float] = {}
        for task in tasks:
            executor = self.plan.tasks[task].executor
            spent = self.totals["600"][self._row_of[task], COUNTED.index("call_seconds")]
            seconds[executor] = seconds.get(executor, 0.0) + float(spent)
        return max(seconds.values(), default=0.0) / max(1.0, min(float(self.uptime_secs), WINDOWS["600"]))


@dataclass(frozen=True)
class History:
    """What was counted in each of some minutes. Each has its time, and the rows of ``tasks`` and of ``streams``."""

    plan: PhysicalPlan
    tasks: tuple[int, ...]
    streams: tuple[StreamKey, ...]
    added: Sequence[tuple[int, np.ndarray, np.ndarray]]

    def minutes(self) -> Iterator[tuple[int, Callable[[int | StreamKey], np.ndarray]]]:
        """Iterate over the minutes: when each began, and a function like that of `Facts.rows`."""
        for at, totals, by_stream in self.added:
            yield at, _rows(self.tasks, totals, self.streams, by_stream)

    def sum(self) -> Callable[[int | StreamKey], np.ndarray]:
        """Return a function like that of `Facts.rows`, for all of the minutes together."""
        totals = np.zeros((len(self.tasks), len(COUNTED)))
        by_stream = np.zeros((len(self.streams), len(COUNTED)))
        for _, one, other in self.added:
            totals, by_stream = totals + one, by_stream + other
        return _rows(self.tasks, totals, self.streams, by_stream)


def _rows(
    tasks: Sequence[int], totals: np.ndarray, streams: Sequence[StreamKey], by_stream: np.ndarray
) -> Callable[[int | StreamKey], np.ndarray]:
    found: dict[int | StreamKey, np.ndarray] = dict(zip(tasks, totals, strict=True))
    found.update(zip(streams, by_stream, strict=True))
    return found.__getitem__


def _streams_of(plan: PhysicalPlan) -> Iterator[StreamKey]:
    """Iterate over the streams of the tasks that have several."""
    for component in plan.components.values():
        inputs = [(edge.source, edge.stream) for edge in plan.edges if edge.target == component.id]
        for streams in (list(component.streams), inputs):
            if len(streams) > 1:
                yield from ((task, stream) for task in component.tasks for stream in streams)


class Watcher:
    """Looks at a topology now and then, so that it can tell what happened within windows. `close` ends that.

    ``status`` returns the topology's state, ``wall_clock`` the seconds since 1970.
    """

    def __init__(
        self,
        running: Watched,
        status: Callable[[], Status],
        owner: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._running, self._status, self._owner = running, status, owner
        self._clock, self._wall_clock = clock, wall_clock
        self._plan = running.plan
        #: Guards the windows, and the plan whose tasks are their rows.
        self._lock = threading.Lock()
        self._streams = tuple(_streams_of(self._plan))
        self._windows, self._stream_windows = Windows(), Windows()
        self._minutes, self._stream_minutes = Minutes(), Minutes()
        self._began = clock()
        self._closed = threading.Event()
        self.look()
        threading.Thread(target=self._look_on, name="windows of statistics", daemon=True).start()

    def _look_on(self) -> None:
        while not self._closed.wait(_LOOK_SECS):
            self.look()

    def look(self) -> None:
        """Remember the totals of now."""
        with self._lock:
            _, totals, by_stream = self._read()
            now = self._clock()
            self._windows.note(now, totals)
            self._stream_windows.note(now, by_stream)
            now = self._wall_clock()
            self._minutes.note(now, totals)
            self._stream_minutes.note(now, by_stream)

    def history(self, start: float, end: float) -> History:
        """Return what was counted in each minute from ``start`` to ``end``, in seconds since 1970."""
        with self._lock:
            tasks, totals, by_stream = self._read()
            now = self._wall_clock()
            minutes = self._minutes.within(start, end, now, totals)
            streams = dict(self._stream_minutes.within(start, end, now, by_stream))
            none = np.zeros((len(self._streams), len(COUNTED)))
            added = [(at, one, streams.get(at, none)) for at, one in minutes]
            return History(self._plan, tasks, self._streams, added)

    def _read(self) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
        """Return the tasks, in order, their totals, and those of their streams. The tasks are others since the topology was
        rebalanced.
        """
        plan = None
        while plan is not self._running.plan:
            plan = self._running.plan
            counters = self._running.by_task()
        tasks = tuple(sorted(plan.tasks))
        if plan is not self._plan:
            before = [self._plan.tasks[task] for task in sorted(self._plan.tasks)]
            now_at = [tasks.index(successor(plan, one)) for one in before]
            self._windows.move_rows(now_at, len(tasks))
            task_now = {one.id: tasks[row] for one, row in zip(before, now_at, strict=True)}
            streams = {key: row for row, key in enumerate(_streams_of(plan))}
            rows = [streams[task_now[task], stream] for task, stream in self._streams]
            self._stream_windows.move_rows(rows, len(streams))
            self._minutes.move_rows(now_at, len(tasks))
            self._stream_minutes.move_rows(rows, len(streams))
            self._plan, self._streams = plan, tuple(streams)
        return tasks, totals_of(counters, tasks), stream_totals_of(counters, self._streams)

    def facts(self) -> Facts:
        """Return all that is to be said now."""
        with self._lock:
            tasks, totals, by_stream = self._read()
            plan, now, streams = self._plan, self._clock(), self._streams
            names = (*WINDOWS, ALL_TIME)
            within = {name: self._windows.since(name, now, totals) for name in names}
            of_streams = {name: self._stream_windows.since(name, now, by_stream) for name in names}
        return Facts(
            self._running.storm_id,
            plan,
            self._status(),
            self._owner,
            self._wall_clock(),
            int(now - self._began),
            tasks,
            within,
            self._running.worker_places(),
            self._running.errors(),
            streams,
            of_streams,
        )

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
