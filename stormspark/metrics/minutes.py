"""Totals of tasks at each minute of the last three hours, as Heron's topology master keeps them (J12). Time is an argument."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

__all__ = ["Minutes"]

_KEPT = 180
#: A topology with many tasks is remembered for a shorter time.
_MOST_BYTES = 8 << 20


class Minutes:
    """Remembers totals at the beginning of each minute, so that what was added within a minute can be told.

    >>> minutes = Minutes()
    >>> for at in (0.0, 30.0, 61.0, 125.0): minutes.note(at, np.array([[at]]))
    >>> [(minute, float(added[0, 0])) for minute, added in minutes.within(0, 180, 130.0, np.array([[130.0]]))]
    [(0, 61.0), (60, 64.0), (120, 5.0)]
    """

    def __init__(self) -> None:
        self._noted: deque[tuple[int, np.ndarray]] = deque()

    def note(self, now: float, totals: np.ndarray) -> None:
        """Remember the totals at a time, in seconds since 1970, if they are the first ones of their minute."""
        minute = int(now) // 60 * 60
        if not self._noted or minute > self._noted[-1][0]:
            self._noted.append((minute, totals))
        most = max(2, min(_KEPT + 1, _MOST_BYTES // max(1, totals.nbytes)))
        while len(self._noted) > most:
            self._noted.popleft()

    def move_rows(self, rows: Sequence[int], number: int) -> None:
        """See `Windows.move_rows`."""
        moved: deque[tuple[int, np.ndarray]] = deque()
        for minute, totals in self._noted:
            wider = np.zeros((number, totals.shape[1]))
            np.add.at(wider, rows, totals)
            moved.append((minute, wider))
        self._noted = moved

    def within(
        self, start: float, end: float, now: float, totals: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over the minutes from ``start`` to ``end``: when each began, and what was added in it.

        ``totals`` are those of ``now``, which end the running minute.
        """
        upto = [*self._noted, (int(now) + 60, totals)]
        for (minute, before), (_, after) in pairwise(upto):
            if start <= minute <= end:
                yield minute, np.subtract(after, before)
