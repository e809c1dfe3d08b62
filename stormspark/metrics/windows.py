"""Totals of tasks over Storm's windows: the last 10 minutes, 3 hours and day, and all time (J13).

Storm counts in 20 buckets a window, and so does this: a window is longer than it says by less than a twentieth. What is counted
is exact (W21). Time is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from stormspark.metrics.statistics import TaskCounters
from stormspark.metrics.streams import StreamCounts

__all__ = ["ALL_TIME", "COUNTED", "WINDOWS", "StreamKey", "Windows", "stream_totals_of", "totals_of"]

#: A stream of a task: its name if the task emits on it, or the component and the stream that the task reads.
StreamKey: TypeAlias = tuple[int, str | tuple[str, str]]

#: The name of the window that goes back to the start.
ALL_TIME = ":all-time"
#: The windows by Storm's names, and how many seconds each goes back.
WINDOWS = {"600": 600.0, "10800": 10_800.0, "86400": 86_400.0}
#: What is counted of each task. ``calls`` and ``call_seconds`` are those of latencies: for a spout those from emit to ack, for a
#: bolt those in execute.
#: ``processed`` and ``process_seconds`` are about the tuples that a bolt acked after their execute had returned (J15).
COUNTED = (
    "emitted",
    "transferred",
    "executed",
    "acked",
    "failed",
    "calls",
    "call_seconds",
    "processed",
    "process_seconds",
)
_BUCKETS = 20


def totals_of(counters: Mapping[int, TaskCounters], tasks: Sequence[int]) -> np.ndarray:
    """Return a matrix with a row for each task and a column for each of `COUNTED`.

    >>> totals_of({7: TaskCounters(emitted=3)}, [6, 7])[:, 0].tolist()
    [0.0, 3.0]
    """
    none = TaskCounters()
    rows = [counters.get(task, none) for task in tasks]
    return np.array(
        [
            (
                one.emitted,
                one.transferred,
                one.executed,
                one.acked,
                one.failed,
                one.latency.count,
                one.latency.seconds,
                one.processed,
                one.process_seconds,
            )
            for one in rows
        ],
        dtype=np.float64,
    ).reshape(len(rows), len(COUNTED))


def stream_totals_of(counters: Mapping[int, TaskCounters], streams: Sequence[StreamKey]) -> np.ndarray:
    """Return a matrix with a row for each stream of a task, and a column for each of `COUNTED`.

    >>> some = {7: TaskCounters(outputs={"late": StreamCounts(3)})}
    >>> stream_totals_of(some, [(7, "late"), (7, ("lines", "default"))])[:, 0].tolist()
    [3.0, 0.0]
    """
    none = TaskCounters()
    rows: list[StreamCounts] = []
    for task, stream in streams:
        one = counters.get(task, none)
        found = one.outputs.get(stream) if isinstance(stream, str) else one.inputs.get(stream)
        rows.append(found or StreamCounts())
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(COUNTED))


class Windows:
    """Remembers totals, so that what was added since some time ago can be told.

    `note` takes the totals now and then; how often decides how exact a window is. ``since`` of a topology that is younger than
    the window is everything.

    >>> windows = Windows()
    >>> for minute in range(30): windows.note(60.0 * minute, np.full((1, 9), 100.0 * minute))
    >>> float(windows.since("600", 60.0 * 29, np.full((1, 9), 2900.0))[0, 0])
    1000.0
    """

    def __init__(self) -> None:
        self._noted: dict[str, deque[tuple[float, np.ndarray]]] = {name: deque() for name in WINDOWS}

    def note(self, now: float, totals: np.ndarray) -> None:
        """Remember the totals at a time, in seconds; times must not go back."""
        for name, seconds in WINDOWS.items():
            noted = self._noted[name]
            if not noted or now - noted[-1][0] >= seconds / _BUCKETS:
                noted.append((now, totals))
            # The second one is old enough to begin the window with.
            while len(noted) > 1 and noted[1][0] <= now - seconds:
                noted.popleft()

    def move_rows(self, rows: Sequence[int], number: int) -> None:
        """Let row ``n`` be row ``rows[n]`` from now on, of ``number`` rows. The other rows begin with nothing.

        Rows that become the same row are added up.

        >>> windows = Windows()
        >>> windows.note(0.0, np.array([[1.0] * 9, [2.0] * 9]))
        >>> windows.move_rows([2, 0], 3)
        >>> windows.since("600", 600.0, np.full((3, 9), 5.0))[:, 0].tolist()
        [3.0, 5.0, 4.0]
        """
        for name, noted in self._noted.items():
            moved: deque[tuple[float, np.ndarray]] = deque()
            for at, totals in noted:
                wider = np.zeros((number, totals.shape[1]))
                np.add.at(wider, rows, totals)
                moved.append((at, wider))
            self._noted[name] = moved

    def since(self, window: str, now: float, totals: np.ndarray) -> np.ndarray:
        """Return what was added to ``totals`` within a window. Raises KeyError for an unknown window."""
        if window == ALL_TIME:
            return totals
        noted, begin = self._noted[window], now - WINDOWS[window]
        before = next((one for at, one in reversed(noted) if at <= begin), None)
        return totals if before is None else np.subtract(totals, before)
