"""The rows of a source spout's task: rows that wait to be emitted, open rows, and rows to be emitted again.

The rows belong to the task and not to the instance of the spout, because a new instance may take the place of a failed one. A
batch that runs again brings its rows again, so the rows of the failed attempt are forgotten (`SourceRows.forget_batch`). Rows of
earlier batches stay, and are emitted again when their trees fail.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from stormspark.acker.records import AckerTime, Change, Record
from stormspark.api.retry import ExponentialBackoff
from stormspark.extras import pyarrow as pa
from stormspark.spi.range_spout import RangeSpout
from stormspark.worker.sources.arrow_values import as_ids, values_of
from stormspark.worker.sources.open_rows import OpenRows
from stormspark.worker.sources.row_keys import RowKeys, keyed_apart
from stormspark.worker.sources.rows import RangeKey, Row
from stormspark.worker.sources.unread_ranges import UnreadRanges

__all__ = ["SourceRows"]

#: If reads of this many partitions brought no rows, the other partitions wait for the next call, because a read without rows
#: may take a while.
_DRY = 2
_ALL_READABLE: Mapping[int, str] = {}


class SourceRows:
    """The rows of one task. Times are seconds of the worker's clock.

    If the source's rows are ranges (`RangeSpout`), ``ranges`` is the spout that reads their rows.
    """

    def __init__(
        self, retry: ExponentialBackoff, id_columns: Sequence[str], ranges: RangeSpout | None = None
    ) -> None:
        self._retry, self._id_columns, self._spout = retry, tuple(id_columns), ranges
        self._keys = RowKeys()
        self._open = OpenRows()
        self._waiting: deque[Row] = deque()
        self._ranges = UnreadRanges()
        self._fails: Counter[Hashable] = Counter()
        self._later: list[tuple[float, int, Row]] = []  # a heap by time, and then by number
        self._numbered = 0
        #: The ids of rows that have failed too often and are not emitted any more.
        self.skipped: frozenset[Hashable] = frozenset()
        #: For each id, why the row of this batch has failed, as far as this worker knows.
        self.why: dict[Hashable, str] = {}
        #: How many rows or ranges have come since a caller last set this attribute to 0.
        self.came = 0

    def read_with(self, spout: RangeSpout) -> None:
        """Let this new instance of the spout read ranges from now on."""
        self._spout = spout

    def __len__(self) -> int:
        """How many rows wait to be emitted, or to be emitted again."""
        return self.waiting + len(self._later)

    @property
    def waiting(self) -> int:
        """How many rows wait to be emitted. The rows of unread ranges count, too."""
        unread = 0
        if self._spout is not None:
            unread = sum(self._spout.size(range.values) for range in self._ranges)
        return len(self._waiting) + unread

    def waiting_but(self, held: Container[Hashable]) -> int:
        """Return how many rows wait to be emitted, or to be emitted again, without those whose ids are in ``held``."""
        some = [*self._waiting, *(row for _, _, row in self._later)]
        return len(self) - sum(row.id in held for row in some)

    # -- rows come -------------------------------------------------------------------------------------------

    def take(self, batch: int, partition: int, payload: bytes) -> None:
        """Queue rows of a partition in their order. ``payload`` is an Arrow IPC stream."""
        table = pa.ipc.open_stream(payload).read_all()
        unreadable: dict[int, str] = {}
        columns = [
            values_of(column, name, unreadable)
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        rows = list(zip(*columns, strict=True))
        if self._spout is not None:
            assert not unreadable, unreadable  # ranges consist of numbers and names, which Python can hold
            self.add(batch, partition, rows)
            return
        ids: Iterable[Hashable] | None = None
        if self._id_columns:
            places = [table.column_names.index(name) for name in self._id_columns]
            ids = zip(*(as_ids(table.column(place), columns[place]) for place in places), strict=True)
        keys = self._keys.of_rows(ids, batch, partition, len(rows))
        self._add([Row(key, values, batch) for key, values in zip(keys, rows, strict=True)], unreadable)

    def add(self, batch: int, partition: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Queue rows of a partition in their order. These rows have no ids of their own."""
        if self._spout is not None:
            for values in rows:
                key = self._keys.of_range(batch, self._spout.partition_of(values))
                self._add_range(Row(key, values, batch))
            return
        keys = self._keys.of_rows(None, batch, partition, len(rows))
        self._add([Row(key, values, batch) for key, values in zip(keys, rows, strict=True)])

    def _add(self, new: list[Row], unreadable: Mapping[int, str] = _ALL_READABLE) -> None:
        for place, reason in unreadable.items():
            new[place] = new[place]._replace(unreadable=reason)
        self.came += len(new)
        new = self._open.without_kept(new)
        self._open.fresh.update((row.id, row) for row in new)
        self._waiting.extend(new)

    def _add_range(self, range: Row) -> None:
        self.came += 1
        self._open.add_range(range)
        self._ranges.add(range)

    def adopt(self, records: Iterable[tuple[Record | None, Row]]) -> int:
        """Take over rows that an earlier incarnation of the worker left open, each with its record if there is one.

        These rows are emitted before all others. Returns how many of them the task did not know yet.
        """
        new = self._open.adopt(records)
        self._waiting.extendleft(reversed([row for row in new if not isinstance(row.id, RangeKey)]))
        for row in reversed(new):
            if isinstance(row.id, RangeKey):
                self._ranges.add_first(row)
        return len(new)

    # -- rows are emitted, and are done ----------------------------------------------------------------------

    def next(self, now: float) -> Row | None:
        """Return the row to emit next: a failed row that is due again, or else a row that waits. Return None if there is no
        such row.
        """
        if self._later and self._later[0][0] <= now:
            return heapq.heappop(self._later)[2]
        if self._waiting or (self._ranges and self._read()):
            return self._waiting.popleft()
        return None

    def _read(self) -> bool:
        """Read rows of a range, and queue them. Skip partitions whose read brings no rows. Return false if no rows were read."""
        assert self._spout is not None
        fresh = self._open.fresh
        dry = 0
        for partition in self._ranges.partitions():
            range, rows, rest = self._ranges.read(partition, self._spout)
            if rest is None:
                self.done(range.id)
            elif range.id in fresh:
                fresh[range.id] = rest
            if rows:
                new = {id: Row(id, values, range.batch) for id, values in rows}
                if len(new) < len(rows) or self._open.has_any(new):
                    new = keyed_apart(rows, range.batch, self._open.__contains__)
                fresh.update(new)
                self._waiting.extend(new.values())
                return True
            dry += rest is not None
            if dry == _DRY:
                break
        return False

    def done(self, id: Hashable) -> None:
        """Remove a row that is done, because it was acked or given up."""
        if self._open.fresh.pop(id, None) is None:
            self._open.close_kept(id)
        if self._fails:
            self._fails.pop(id, None)

    def failed(self, id: Hashable, now: float, *, innocent: bool = False) -> Row | None:
        """Emit the row again later, and return None. If the row has to be given up instead, return the row (K4).

        A row that was forgotten is ignored. An ``innocent`` row failed because its batch was rolled back or a worker was lost.
        It is emitted again at once, and the fail is not counted.
        """
        row = self._open.get(id)
        if row is None:
            return None
        delay: float | None = 0.0
        if not innocent:
            self._fails[id] += 1
            delay = self._retry.delay(self._fails[id])
        if delay is None:
            return row
        self.later(row, now + delay)
        return None

    def later(self, row: Row, when: float) -> None:
        """Emit an open row again at time ``when``."""
        self._numbered += 1
        heapq.heappush(self._later, (when, self._numbered, row))

    def reopen(self) -> None:
        """Emit all open rows again, before all other rows, because a new instance of the spout knows of no open tree.

        In a transaction, an acked row is open until its batch is committed, and not until the spout's ``ack`` is called.
        """
        queued = {row.id for row in self._waiting} | {row.id for _, _, row in self._later}
        was_open = [row for row in self._open.rows() if row.id not in queued]
        self._waiting.extendleft(reversed(was_open))

    # -- batches ---------------------------------------------------------------------------------------------

    def commit(self, ids: Iterable[Hashable]) -> None:
        """Remove these rows, which are done because their batch is committed."""
        self.why.clear()
        for id in ids:
            self.done(id)

    def forget_batch(self, batch: int, *, trees_live_on: bool = False) -> None:
        """Forget the rows of a batch, because the batch runs again and brings them again.

        If ``trees_live_on``, trees of the earlier attempt are still open. So the batch's rows get other keys than in that
        attempt.
        """
        self._keys.batch_comes_again(batch, trees_live_on=trees_live_on)
        self._open.forget_batch(batch)
        self._waiting = deque(row for row in self._waiting if row.batch < batch)
        self._later = [later for later in self._later if later[2].batch < batch]
        heapq.heapify(self._later)
        self._ranges.forget_batch(batch)

    def changes(self, time: AckerTime, draw: Callable[[int], Sequence[int]]) -> list[Change]:
        """Return what has changed for the durable acker since the last call; see `OpenRows.changes`."""
        return self._open.changes(self._ranges, time, draw)

    # -- open rows -------------------------------------------------------------------------------------------

    def knows(self, id: Hashable) -> bool:
        """Return whether ``id`` is the key of an open row."""
        return id in self._open

    @property
    def open(self) -> int:
        """How many rows and ranges are open."""
        return len(self._open)

    def open_rows(self, but: Collection[Hashable]) -> dict[Hashable, Row]:
        """Return the open rows by id, without those in ``but``."""
        return {row.id: row for row in self._open.rows() if row.id not in but}

    def open_ids(self) -> Iterator[Hashable]:
        """Iterate over the message ids of all open rows, as users see them."""
        return self._open.message_ids()

    def unread(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the unread rest of each range."""
        return (range.values for range in self._ranges)
