"""The queue of a vectorised bolt's task.

It consists of two queues. One is the inbox for tuples, which every bolt has. The tuples in it become record batches when they
are executed. The other queue is for record batches. All tuples or rows of one sender go into the same queue, in order. Small
record batches of one stream are joined, because each call has a fixed cost, even for few rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from stormspark.api import TupleSource
from stormspark.extras import pyarrow as pa
from stormspark.worker.bolts.queue import TupleQueue
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.vectorised.roots import BatchRoots
from stormspark.worker.vectorised.rows import rows_of

__all__ = ["RowBatch", "RowQueue"]

#: Record batches with fewer than `_SMALL` rows are joined, into record batches of at most `_MOST_ROWS` rows. At most
#: `_MOST_TUPLES` tuples become one record batch.
_SMALL = 16384
_MOST_ROWS = 65536
_MOST_TUPLES = 8192


class RowBatch(NamedTuple):
    """A record batch that waits, with the stream that it came on, and its trees."""

    rows: pa.RecordBatch
    source: TupleSource
    roots: BatchRoots


class RowQueue(TupleQueue):
    """The record batches, ticks and tuples that wait for one task of a vectorised bolt."""

    def __init__(self) -> None:
        super().__init__()
        self._batches: deque[RowBatch | None] = deque()  # None is a tick
        #: `rows`: how many rows wait in record batches. `bytes`: how large these record batches are.
        self.rows = self.bytes = 0

    @property
    def waiting(self) -> int:
        """How many rows, ticks, and tuples of the inbox wait."""
        return super().waiting + self.rows + self.ticks

    def deliveries(self) -> Iterator[Delivery]:
        """Iterate over the waiting tuples and rows. The deliveries of rows have no values."""
        return chain(super().deliveries(), self._row_deliveries())

    def _row_deliveries(self) -> Iterator[Delivery]:
        for one in self._batches:
            if one is not None:
                each = one.roots.each()
                for _ in range(one.rows.num_rows):
                    yield (), one.source, next(each)

    def not_reached(self) -> Iterator[Delivery]:
        """See `TupleQueue.not_reached`. Tuples in the inbox come first. Then comes one delivery per record batch, which belongs
        to all trees of the record batch.
        """
        left = self._still_waiting()
        for delivery in islice(super().deliveries(), left):
            left -= 1
            yield delivery
        for one in self._batches:
            if left <= 0:
                return
            if one is not None:
                left -= one.rows.num_rows
                yield (), one.source, tuple(one.roots.branches(one.rows.num_rows))

    def size_of_one(self) -> int:
        """See `TupleQueue.size_of_one`."""
        if not self.rows:
            return super().size_of_one()
        return max(1, self.bytes // self.rows)

    # -- in --------------------------------------------------------------------------------------------------

    def add(self, batch: pa.RecordBatch, source: TupleSource, roots: BatchRoots) -> None:
        """Add rows."""
        self._batches.append(RowBatch(batch, source, roots))
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    def add_tick(self, seconds: float) -> None:
        """Add a tick behind the record batches that wait already (C9)."""
        self._batches.append(None)
        self.ticks += 1

    # -- out -------------------------------------------------------------------------------------------------

    def take_run(self) -> list[Delivery]:
        """Take the oldest tuples out of the inbox, up to the first tuple of another stream, but at most `_MOST_TUPLES`."""
        if self._next >= len(self._taken):
            self._taken, self._next = self.inbox[:], 0
            self.inbox.clear()  # not a new list, because senders hold this one
        taken, first = self._taken, self._next
        if not taken:
            return []
        source = taken[first][1]
        place = source.component, source.stream
        most = min(len(taken), first + _MOST_TUPLES)
        end = first + 1
        while end < most and (
            taken[end][1] is source or (taken[end][1].component, taken[end][1].stream) == place
        ):
            end += 1
        run = taken[first:end]
        if end == len(taken):
            self._taken, self._next = [], 0
        else:
            self._next = end
        return run

    @property
    def has_batches(self) -> bool:
        """Whether a record batch or a tick waits."""
        return bool(self._batches)

    def take_batch(self) -> RowBatch | None:
        """Take the oldest record batch out, joined with small record batches after it. None stands for a tick."""
        one = self._batches.popleft()
        if one is None:
            self.ticks -= 1
            self.executed += 1  # `waiting` counts ticks, too
            return None
        self.rows -= one.rows.num_rows
        self.bytes -= one.rows.nbytes
        return self._together(one) if one.rows.num_rows < _SMALL and self._batches else one

    def _together(self, first: RowBatch) -> RowBatch:
        """Join ``first`` with the record batches after it, as long as these are small, too, and of the same stream."""
        parts, rows = [first], first.rows.num_rows
        place = first.source.component, first.source.stream
        batches = self._batches
        while batches:
            one = batches[0]
            if one is None or (one.source.component, one.source.stream) != place:
                break
            if one.rows.num_rows >= _SMALL or rows + one.rows.num_rows > _MOST_ROWS:
                break
            batches.popleft()
            parts.append(one)
            rows += one.rows.num_rows
            self.rows -= one.rows.num_rows
            self.bytes -= one.rows.nbytes
        if len(parts) == 1:
            return first
        return RowBatch(
            pa.concat_batches([part.rows for part in parts]),
            first.source,
            BatchRoots.joined([(part.roots, part.rows.num_rows) for part in parts]),
        )

    def take_newest(self, most: int) -> list[Delivery]:
        """See `TupleQueue.take_newest`. The newest rows are taken first, and then tuples of the inbox. Ticks stay."""
        newest: list[Delivery] = []
        kept: list[None] = []
        seen = self._seen
        batches = self._batches
        while batches and len(newest) < most:
            one = batches.pop()
            if one is None:
                kept.append(one)
                continue
            count = one.rows.num_rows
            left = max(0, count - (most - len(newest)))
            shed = one.roots.take(np.arange(left, count)).each()
            values = rows_of(one.rows.slice(left))
            newest = [(row, one.source, next(shed)) for row in values] + newest
            self.rows -= count
            self.bytes -= one.rows.nbytes
            if left:
                self.add(one.rows.slice(0, left), one.source, one.roots.take(np.arange(left)))
        batches.extend(kept)
        if len(newest) < most:
            newest = super().take_newest(most - len(newest)) + newest
            self._seen = seen  # the call has not counted rows and ticks
        self._forget_newest(self.waiting)
        return newest

    def clear(self) -> None:
        """See `TupleQueue.clear`."""
        super().clear()
        self._batches.clear()
        self.rows = self.bytes = 0
