"""The size of a bolt's chunks: how many tuples it executes before the worker looks at anything else."""

from __future__ import annotations

__all__ = ["ChunkSize"]

#: How long a chunk should take, about: the worker looks at the deadline between chunks.
_CHUNK_SECONDS = 0.01
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

    @property
    def most(self) -> int:
        """How many tuples the next chunk may have. They are few as long as the mean is unknown."""
        if not self._mean:
            return _CHUNK_FIRST
        if self._mean * _CHUNK_MOST < _CHUNK_SECONDS:
            return _CHUNK_MOST
        return max(1, int(_CHUNK_SECONDS / self._mean))

    @property
    def timed_alone(self) -> bool:
        """Whether each tuple is timed alone, because tuples are slow."""
        return self._mean > _TIMED_ALONE

    def add(self, took: float, count: int) -> None:
        """Take ``count`` tuples into the mean, each of which took ``took`` seconds."""
        self._mean = took if not self._mean else self._mean + (took - self._mean) * min(1.0, count / 64)

    def is_over(self, seconds: float) -> bool:
        """Return whether a chunk that has run for ``seconds`` has to end, because its tuples have become slow."""
        return self.timed_alone and seconds > _CHUNK_SECONDS
