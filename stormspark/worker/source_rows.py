"""The rows of a source spout's task: what waits to be emitted, what is open, what is to be emitted again.

They belong to the task and not to the spout's instance, which may begin anew. A batch that is run again
brings its rows again, so those of the attempt that failed are forgotten (`forget_batch`); rows of batches
before it stay, and are emitted again as their trees fail.

A row that is not done with is in one of two tables:

- *fresh*: it came since the last report. Most rows are acked before their batch ends, and have cost two
  operations of a dict.
- *kept*: it was open at the end of a batch, so the durable acker has a record of it, or will have. `changes`
  says at the end of each batch which records are opened and which are closed; it costs what changed, not what
  is open.
"""

from __future__ import annotations

import heapq
import io
import pickle
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from stormspark.acker.records import AckerTime, Change, Record
from stormspark.api.retry import ExponentialBackoff
from stormspark.api.source import RangeSpout

__all__ = ["Row", "SourceRows", "decode", "encode"]

#: Rows that are read of a range at once: enough to forget the cost of asking, few enough to be no queue.
_READ = 512
#: Where so many partitions in a row have nothing, the others are asked the next time: each may take its
#: while.
_DRY = 2


class Row(NamedTuple):
    """One row of a source, and the batch it came with."""

    id: Hashable
    values: tuple[Any, ...]
    batch: int


class _Range(NamedTuple):
    """The message id of a range, which it keeps while it is read."""

    partition: Hashable
    batch: int
    number: int


class _Kept(NamedTuple):
    row: Row
    record: Record


class SourceRows:
    """For one task. Times are seconds of the worker's clock.

    ``ranges`` is the spout where rows are ranges (`RangeSpout`).
    """

    def __init__(
        self, retry: ExponentialBackoff, id_columns: Sequence[str], ranges: RangeSpout | None = None
    ) -> None:
        self._retry, self._id_columns, self._spout = retry, tuple(id_columns), ranges
        self._waiting: deque[Row] = deque()
        self._ranges: dict[Hashable, deque[Row]] = {}  # unread, by partition, which take turns
        self._fresh: dict[Hashable, Row] = {}
        self._kept: dict[Hashable, _Kept] = {}  # oldest record first
        self._closed: list[Record] = []  # since the last report
        self._fails: Counter[Hashable] = Counter()
        self._later: list[tuple[float, int, Row]] = []  # a heap by time; the number keeps their order
        #: Ids of rows that are not to be emitted any more.
        self.skipped: frozenset[Hashable] = frozenset()
        self._numbered = 0
        #: Rows, or ranges, since somebody set it to 0.
        self.came = 0
        self._batch = -1
        self._taken: Counter[Hashable] = Counter()  # rows of each partition of that batch so far

    def read_with(self, spout: RangeSpout) -> None:
        """The spout has begun anew: this instance reads ranges from now on."""
        self._spout = spout

    def __len__(self) -> int:
        """Rows that wait to be emitted, or to be emitted again."""
        return self.waiting + len(self._later)

    @property
    def waiting(self) -> int:
        """Rows that could be emitted now; of ranges, as many as they stand for."""
        unread = 0
        if self._spout is not None:
            unread = sum(self._spout.size(row.values) for row in self._unread())
        return len(self._waiting) + unread

    def take(self, batch: int, partition: int, payload: bytes) -> None:
        """Rows of a partition, as an Arrow IPC stream, in order."""
        table = pa.ipc.open_stream(payload).read_all()
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        if self._id_columns and self._spout is None:
            positions = [table.column_names.index(name) for name in self._id_columns]
            self._add([tuple(row[position] for position in positions) for row in rows], rows, batch)
        else:
            self.add(batch, partition, rows)

    def add(self, batch: int, partition: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows of a partition, in order, that have no ids of their own."""
        if batch != self._batch:
            self._batch, self._taken = batch, Counter()
        if self._spout is not None:
            for values in rows:
                name = self._spout.partition_of(values)
                self._taken[name] += 1
                self._add_range(Row(_Range(name, batch, self._taken[name]), values, batch))
            return
        first = self._taken[partition]
        self._taken[partition] += len(rows)
        self._add([(batch, partition, number) for number in range(first, first + len(rows))], rows, batch)

    def _add(self, ids: Iterable[Hashable], rows: Iterable[tuple[Any, ...]], batch: int) -> None:
        new = [Row(id, values, batch) for id, values in zip(ids, rows, strict=True)]
        self.came += len(new)
        if self._kept:  # ids that are columns may come twice, and one record of each is enough
            new = [row for row in new if row.id not in self._kept]
        self._fresh.update((row.id, row) for row in new)
        self._waiting.extend(new)

    def _add_range(self, row: Row) -> None:
        assert isinstance(row.id, _Range)
        self.came += 1
        if row.id not in self._kept:
            self._fresh[row.id] = row
        self._ranges.setdefault(row.id.partition, deque()).append(row)

    def next(self, now: float) -> Row | None:
        """The row to be emitted next: one that failed and is due, else one that waits; None where there is
        neither.
        """
        if self._later and self._later[0][0] <= now:
            return heapq.heappop(self._later)[2]
        if self._waiting or (self._ranges and self._read()):
            return self._waiting.popleft()
        return None

    def _read(self) -> bool:
        """Have rows of the ranges wait, of one partition after another; false where there are none now."""
        assert self._spout is not None
        dry = 0
        for partition in list(self._ranges):
            ranges = self._ranges.pop(partition)
            range = ranges.popleft()
            rows, left = self._spout.read(range.values, _READ)
            if left is not None:
                changed = range._replace(values=left)
                ranges.appendleft(changed)
                if range.id in self._fresh:
                    self._fresh[range.id] = changed
            else:
                self.done(range.id)
            if ranges:
                self._ranges[partition] = ranges  # at the end: the others come first the next time
            if rows:
                new = [Row(id, values, range.batch) for id, values in rows]
                self._fresh.update((row.id, row) for row in new)
                self._waiting.extend(new)
                return True
            dry += left is not None
            if dry == _DRY:
                break
        return False

    def done(self, id: Hashable) -> None:
        """The row is done with: acked, or given up."""
        if self._fresh.pop(id, None) is None:
            kept = self._kept.pop(id, None)
            if kept is not None:
                self._closed.append(kept.record)
        if self._fails:
            self._fails.pop(id, None)

    def failed(self, id: Hashable, now: float) -> Row | None:
        """The row is emitted again later; returned where that is given up (K4). One that was forgotten is
        ignored.
        """
        row = self._known(id)
        if row is None:
            return None
        self._fails[id] += 1
        delay = self._retry.delay(self._fails[id])
        if delay is None:
            self.done(id)
            return row
        self._numbered += 1
        heapq.heappush(self._later, (now + delay, self._numbered, row))
        return None

    def reopen(self) -> None:
        """The spout's instance has begun anew and knows of no open tree: what was open is emitted again,
        first of all.
        """
        queued = {row.id for row in self._waiting} | {row.id for _, _, row in self._later}
        kept = (kept.row for kept in self._kept.values())
        was_open = [row for row in kept if row.id not in queued and not isinstance(row.id, _Range)]
        was_open += [
            row for row in self._fresh.values() if row.id not in queued and not isinstance(row.id, _Range)
        ]
        self._waiting.extendleft(reversed(was_open))

    def forget_batch(self, batch: int) -> None:
        """The batch is run again and brings its rows again."""
        self._batch = -1
        for id in [id for id, kept in self._kept.items() if kept.row.batch >= batch]:
            self._closed.append(self._kept.pop(id).record)
        self._fresh = {id: row for id, row in self._fresh.items() if row.batch < batch}
        self._waiting = deque(row for row in self._waiting if row.batch < batch)
        self._later = [later for later in self._later if later[2].batch < batch]
        heapq.heapify(self._later)
        left = [row for row in self._unread() if row.batch < batch]
        self._ranges = {}
        for row in left:
            assert isinstance(row.id, _Range)
            self._ranges.setdefault(row.id.partition, deque()).append(row)

    # -- the durable acker -----------------------------------------------------------------------------------

    def changes(self, time: AckerTime, draw: Callable[[int], Sequence[int]]) -> list[Change]:
        """What the durable acker has to know since the last call: records opened and closed.

        Those that are old are closed and opened anew, so that the acker's watermark never passes one that is
        open. ``draw(n)`` gives n random numbers of 64 bits with sign.
        """
        changes = [Change(record) for record in self._closed]
        self._closed = []
        opened = list(self._fresh.values())
        self._fresh = {}
        for range in self._unread():  # a range that was read from stands for less than its record says
            kept = self._kept.get(range.id)
            if kept is not None and kept.row.values != range.values:
                changes.append(Change(self._kept.pop(range.id).record))
                opened.append(range)
        while self._kept:
            kept = next(iter(self._kept.values()))
            if kept.record.created >= time.refresh_before:
                break
            del self._kept[kept.row.id]
            changes.append(Change(kept.record))
            opened.append(kept.row)
        numbers = iter(draw(2 * len(opened)))
        for row, root, value in zip(opened, numbers, numbers, strict=False):
            record = Record(root, time.at, value or 1)
            self._kept[row.id] = _Kept(row, record)
            changes.append(Change(record, row.batch, repr(row.id), encode(row)))
        return changes

    def adopt(self, records: Iterable[tuple[Record | None, Row]]) -> int:
        """Rows that an earlier life of this task left open, each with its record if there is one: they are
        emitted first of all.

        Of rows that are known here, the record is closed. Returns how many were new.
        """
        new: list[Row] = []
        for record, row in records:
            if self._known(row.id) is not None:
                if record is not None and self._kept.get(row.id, (None, None))[1] != record:
                    self._closed.append(record)
                continue
            if record is None:
                self._fresh[row.id] = row
            else:
                self._kept[row.id] = _Kept(row, record)
            new.append(row)
        self._waiting.extendleft(reversed([row for row in new if not isinstance(row.id, _Range)]))
        for row in reversed(new):
            if isinstance(row.id, _Range):
                self._ranges.setdefault(row.id.partition, deque()).appendleft(row)
        # Their records are older than those that were here, and `changes` looks at the oldest first.
        self._kept = dict(sorted(self._kept.items(), key=lambda item: item[1].record.created))
        return len(new)

    # -- for people ------------------------------------------------------------------------------------------

    def open_ids(self) -> Iterator[Hashable]:
        """The message ids of all rows that are not done with."""
        for table in (self._kept, self._fresh):
            for id in table:
                if not isinstance(id, _Range):
                    yield id

    def unread(self) -> Iterator[tuple[Any, ...]]:
        """What is left of the ranges."""
        return (row.values for row in self._unread())

    def _unread(self) -> Iterator[Row]:
        return (row for ranges in self._ranges.values() for row in ranges)

    def _known(self, id: Hashable) -> Row | None:
        row = self._fresh.get(id)
        if row is None:
            kept = self._kept.get(id)
            row = kept.row if kept is not None else None
        return row


def encode(row: Row) -> bytes:
    """The row for the durable acker's table; see `decode`.

    >>> decode(encode(Row((4, 1, 0), ("text", b"bytes", None), 4)))
    Row(id=(4, 1, 0), values=('text', b'bytes', None), batch=4)
    """
    is_range = isinstance(row.id, _Range)
    return pickle.dumps((is_range, tuple(row.id) if is_range else row.id, row.values, row.batch), 5)  # type: ignore[arg-type]


def decode(data: bytes) -> Row:
    """A row out of the durable acker's table. Raises `pickle.UnpicklingError` for what Spark gives in no row.

    The table lies in a folder, which others may be able to write: nothing but values is read from it.
    """
    is_range, id, values, batch = _Values(io.BytesIO(data)).load()
    return Row(_Range(*id) if is_range else id, values, batch)


class _Values(pickle.Unpickler):
    """Reads what Spark's columns can hold, and no other class."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _CLASSES:
            return super().find_class(module, name)
        msg = f"{module}.{name} is no value of a row"
        raise pickle.UnpicklingError(msg)


_CLASSES = {("decimal", "Decimal"), ("zoneinfo", "ZoneInfo._unpickle")} | {
    ("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")
}
