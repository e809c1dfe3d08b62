"""The size of a bolt's chunks. A chunk is what the bolt executes before the worker looks at anything else."""

from __future__ import annotations

__all__ = ["CHUNK_SECONDS", "ChunkSize"]

#: About how many seconds a chunk should take. The worker checks its deadline only between chunks.
CHUNK_SECONDS = 0.01
#: `_CHUNK_MOST`: the most tuples per chunk. `_CHUNK_FIRST`: the most tuples until the task knows how long a tuple takes.
_CHUNK_MOST = 1024
_CHUNK_FIRST = 16
#: If a tuple takes more seconds than this on average, each ``execute`` is timed alone. Otherwise a chunk is timed as a whole,
#: which costs nothing per tuple.
_TIMED_ALONE = 50e-6


class ChunkSize:
    """The size of one task's chunks. It depends on the mean time that the last tuples have taken.

    >>> size = ChunkSize()
    >>> size.most
    16
    >>> size.add(0.001, 16); size.most, size.timed_alone
    (10, True)
    """

    def __init__(self) -> None:
        self._mean = 0.0  # seconds per tuple; 0 while no tuple was executed
        #: The most tuples that the next chunk may have. The number is small as long as the mean is unknown.
        self.most = _CHUNK_FIRST
        #: Whether each tuple is timed alone, because tuples are slow.
        self.timed_alone = False

    def add(self, took: float, count: int) -> None:
        """Add ``count`` tuples to the mean. Each of them took ``took`` seconds."""
        mean = took if not self._mean else self._mean + (took - self._mean) * min(1.0, count / 64)
        self._mean = mean
        self.timed_alone = mean > _TIMED_ALONE
        if not mean:  # the clock has not moved
            self.most = _CHUNK_FIRST
        elif mean * _CHUNK_MOST < CHUNK_SECONDS:
            self.most = _CHUNK_MOST
        else:
            self.most = max(1, int(CHUNK_SECONDS / mean))
