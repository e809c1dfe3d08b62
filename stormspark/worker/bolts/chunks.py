"""The size of a bolt's chunks: how many tuples it executes before the worker looks at anything else."""

from __future__ import annotations

__all__ = ["CHUNK_SECONDS", "ChunkSize"]

#: How long a chunk should take, about: the worker looks at the deadline between chunks.
CHUNK_SECONDS = 0.01
#: The most tuples in a chunk, and the tuples in one while the task does not know yet how slow they are.
_CHUNK_MOST = 1024
_CHUNK_FIRST = 16
#: Above this mean each execute is timed alone. Below it a chunk is timed as a whole, which costs nothing per tuple.
_TIMED_ALONE = 50e-6


class ChunkSize:
    """The size of one task's chunks, by the mean time that its tuples have taken.

    >>> size = ChunkSize()
    >>> size.most
    16
    >>> size.add(0.001, 16); size.most, size.timed_alone
    (10, True)
    """

    def __init__(self) -> None:
        self._mean = 0.0  # seconds per tuple; 0 while no tuple was executed
        #: How many tuples the next chunk may have. They are few as long as the mean is unknown.
        self.most = _CHUNK_FIRST
        #: Whether each tuple is timed alone, because tuples are slow.
        self.timed_alone = False

    def add(self, took: float, count: int) -> None:
        """Take ``count`` tuples into the mean, each of which took ``took`` seconds."""
        mean = took if not self._mean else self._mean + (took - self._mean) * min(1.0, count / 64)
        self._mean = mean
        self.timed_alone = mean > _TIMED_ALONE
        if not mean:  # the clock has not moved
            self.most = _CHUNK_FIRST
        elif mean * _CHUNK_MOST < CHUNK_SECONDS:
            self.most = _CHUNK_MOST
        else:
            self.most = max(1, int(CHUNK_SECONDS / mean))
