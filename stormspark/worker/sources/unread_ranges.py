"""Ranges of a source that have come, but whose rows the spout has not read yet (`RangeSpout`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from stormspark.spi.range_spout import RangeSpout
from stormspark.worker.sources.rows import RangeKey, Row

__all__ = ["PartOfRange", "UnreadRanges"]

#: How many rows of a range are read at once. The number is so large that the cost per row is small, and so small that no long
#: queue builds up.
_READ = 512


class PartOfRange(NamedTuple):
    """The result of one read: the range, the rows that were read (each with its id), and the rest, if there is one."""

    range: Row
    rows: list[tuple[Hashable, tuple[Any, ...]]]
    rest: Row | None


class UnreadRanges:
    """The unread ranges of one task, by partition. Partitions take turns."""

    def __init__(self) -> None:
        self._by_partition: dict[Hashable, deque[Row]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_partition)

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the unread rest of each range."""
        return (range for ranges in self._by_partition.values() for range in ranges)

    def partitions(self) -> list[Hashable]:
        """Return the partitions with unread ranges. The partition that is to be read next comes first."""
        return list(self._by_partition)

    def add(self, range: Row) -> None:
        """Add a range behind the other ranges of its partition."""
        self._of(range).append(range)

    def add_first(self, range: Row) -> None:
        """Add a range before the other ranges of its partition."""
        self._of(range).appendleft(range)

    def _of(self, range: Row) -> deque[Row]:
        assert isinstance(range.id, RangeKey)
        return self._by_partition.setdefault(range.id.partition, deque())

    def read(self, partition: Hashable, spout: RangeSpout) -> PartOfRange:
        """Read some rows of the partition's first range. The next time, the other partitions come first.

        If the spout raises, the range stays.
        """
        ranges = self._by_partition[partition]
        range = ranges[0]
        rows, left = spout.read(range.values, _READ)
        ranges.popleft()
        rest = None if left is None else range._replace(values=left)
        if rest is not None:
            ranges.appendleft(rest)
        del self._by_partition[partition]
        if ranges:
            self._by_partition[partition] = ranges
        return PartOfRange(range, rows, rest)

    def forget_batch(self, batch: int) -> None:
        """Remove the ranges of this batch and of later batches, because these ranges come again."""
        left = [range for range in self if range.batch < batch]
        self._by_partition = {}
        for range in left:
            self.add(range)
