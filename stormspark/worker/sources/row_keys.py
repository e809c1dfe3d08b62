"""The keys that rows of a source get when they come. The key of a row is an id, or holds an id: the message id of the row, or an
id that is made from the row's origin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from stormspark.worker.sources.rows import RangeKey, Row, RowKey

__all__ = ["RowKeys", "keyed_apart"]

#: The distance between the numbers of rows in one attempt at a batch and in the next attempt.
_ATTEMPT = 1 << 40


class RowKeys:
    """The maker of the keys of one task's rows. Rows of a partition are numbered within their batch."""

    def __init__(self) -> None:
        self._batch = -1
        self._taken: Counter[Hashable] = Counter()  # how many numbers each partition has used in `_batch`
        #: The last batch that came again while trees of an earlier attempt at it were open, and how many times it did.
        self._again = (-1, 0)

    def of_rows(
        self, ids: Iterable[Hashable] | None, batch: int, partition: int, count: int
    ) -> list[Hashable]:
        """Make the keys of the next ``count`` rows of a partition. ``ids`` are their message ids.

        If ``ids`` is None, each message id is made from the row's batch, partition and number.
        """
        numbers = self._numbers(batch, partition, count)
        again, times = self._again
        attempt = times * _ATTEMPT if batch == again else 0
        if ids is None:
            ids = [(batch, partition, number) for number in numbers]
            if not attempt:
                return list(ids)
        return [
            RowKey(id, batch, partition, attempt + number) for id, number in zip(ids, numbers, strict=True)
        ]

    def of_range(self, batch: int, partition: Hashable) -> RangeKey:
        """Make the key of the next range of a partition."""
        return RangeKey(partition, batch, self._numbers(batch, partition, 1)[0] + 1)

    def _numbers(self, batch: int, partition: Hashable, count: int) -> range:
        """Take the numbers for the next rows of a partition in this batch."""
        if batch != self._batch:
            self._batch, self._taken = batch, Counter()
        first = self._taken[partition]
        self._taken[partition] += count
        return range(first, first + count)

    def batch_comes_again(self, batch: int, *, trees_live_on: bool) -> None:
        """Number the rows of this batch anew, because the batch comes again.

        If ``trees_live_on``, trees of the earlier attempt are still open. So the batch's rows get other keys than in that
        attempt.
        """
        self._batch = -1
        if trees_live_on:
            again, times = self._again
            self._again = (batch, times + 1 if batch == again else 1)


def keyed_apart(
    rows: Iterable[tuple[Hashable, tuple[Any, ...]]], batch: int, is_open: Callable[[Hashable], bool]
) -> dict[Hashable, Row]:
    """Give keys to the rows of a range in which a message id occurs twice, or is the message id of an open row.

    Such ids occur, for example, if a topic was deleted and made again.
    """
    new: dict[Hashable, Row] = {}
    for id, values in rows:
        key, number = id, 0
        while key in new or is_open(key):
            key, number = RowKey(id, batch, None, number), number + 1
        new[key] = Row(key, values, batch)
    return new
