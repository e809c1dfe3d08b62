"""The rows of a source spout's task: those that wait to be emitted, those that are open, and those to be emitted again.

The rows belong to the task and not to the spout's instance, which may begin anew. A batch that runs again brings its rows
again, so the rows of the failed attempt are forgotten (`forget_batch`). Rows of earlier batches stay, and are emitted again
when their trees fail.

A row that is not done is in one of two tables:

- *fresh*: the row came since the last report. Most rows are acked before their batch ends, so they cost two operations of a
dict. - *kept*: the row was open at the end of a batch, so the durable acker has a record of it, or will have. At the end of
each batch
  `changes` returns which records are opened and which are closed. Its cost depends on the changes, not on the number of open
  rows.
"""

from __future__ import annotations

import heapq
import io
import math
import pickle
from collections import Counter, deque
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa

from stormspark.acker.records import AckerTime, Change, Record
from stormspark.api.retry import ExponentialBackoff
from stormspark.checkpoint.pickled_zones import part_of_zone
from stormspark.spi.range_spout import RangeSpout
from stormspark.worker.tuples.salvage import error_text

__all__ = ["Row", "RowKey", "SourceRows", "comparable", "decode", "encode", "message_id_of", "readable"]

#: How many rows of a range are read at once: enough to make the cost per read small, and few enough not to be a queue.
_READ = 512
#: After so many partitions without rows, one after another, the others wait for the next read: each read may take a while.
_DRY = 2
_ALL_READABLE: Mapping[int, str] = {}
#: The distance between the numbers of rows of one attempt at a batch and those of the next attempt.
_ATTEMPT = 1 << 40


class RowKey(NamedTuple):
    """The key of a row whose message id another open row may have, too: the id, and the origin of the row.

    Two orders of one customer are two rows, each with a tree of its own, although users see the same message id twice. If
    batches are transactions, keys are the same in every attempt at a batch. Otherwise trees of an earlier attempt live on,
    and rows may come in another order. Then the number includes the attempt, so that no tree can stand for the wrong row.

    >>> RowKey(("customer", 7), batch=4, partition=0, number=12)
    ('customer', 7)
    """

    message_id: Hashable
    batch: int
    partition: Hashable
    number: int

    def __repr__(self) -> str:
        return repr(self.message_id)


def message_id_of(key: Hashable) -> Hashable:
    """Return the message id that users see.

    >>> message_id_of(RowKey((7,), 4, 0, 12)), message_id_of((4, 0, 12))
    ((7,), (4, 0, 12))
    """
    return key.message_id if type(key) is RowKey else key


class Row(NamedTuple):
    """One row of a source, with the batch that it came with. No two open rows have the same ``id``.

    ``unreadable``: why Python can't hold one of the values, which is None here. Such a row is a dead letter.
    """

    id: Hashable
    values: tuple[Any, ...]
    batch: int
    unreadable: str | None = None

    @property
    def message_id(self) -> Hashable:
        """The message id that users see; see `RowKey`."""
        return message_id_of(self.id)


class _Range(NamedTuple):
    """The id of a range, which stays the same while the range is read."""

    partition: Hashable
    batch: int
    number: int


class _Kept(NamedTuple):
    row: Row
    record: Record


class SourceRows:
    """The rows of one task. Times are seconds of the worker's clock.

    ``ranges`` is the spout that reads the rows, if the source's rows are ranges (`RangeSpout`).
    """

    def __init__(
        self, retry: ExponentialBackoff, id_columns: Sequence[str], ranges: RangeSpout | None = None
    ) -> None:
        self._retry, self._id_columns, self._spout = retry, tuple(id_columns), ranges
        self._waiting: deque[Row] = deque()
        self._ranges: dict[Hashable, deque[Row]] = {}  # unread ranges, by partition; partitions take turns
        self._fresh: dict[Hashable, Row] = {}
        self._kept: dict[Hashable, _Kept] = {}  # the oldest record comes first
        self._closed: list[Record] = []  # records closed since the last report
        self._fails: Counter[Hashable] = Counter()
        self._later: list[tuple[float, int, Row]] = []  # a heap by time; the number keeps rows in order
        #: Ids of rows that are not emitted any more; and why rows of this batch have failed, as far as this worker knows.
        self.skipped: frozenset[Hashable] = frozenset()
        self.why: dict[Hashable, str] = {}
        self._numbered = 0
        #: How many rows, or ranges, have come since a caller last set this to 0.
        self.came = 0
        self._batch = -1
        self._taken: Counter[Hashable] = Counter()  # rows of each partition of that batch so far
        #: The batch that was forgotten last although its trees live on, and how often that happened to it.
        self._again = (-1, 0)

    def read_with(self, spout: RangeSpout) -> None:
        """Let this new instance of the spout read ranges from now on."""
        self._spout = spout

    def __len__(self) -> int:
        """How many rows wait to be emitted, or to be emitted again."""
        return self.waiting + len(self._later)

    @property
    def waiting(self) -> int:
        """How many rows wait to be emitted; an unread range counts as the rows that it stands for."""
        unread = 0
        if self._spout is not None:
            unread = sum(self._spout.size(row.values) for row in self._unread())
        return len(self._waiting) + unread

    def waiting_but(self, held: Container[Hashable]) -> int:
        """Return the same number as `len`, without rows whose ids are in ``held``."""
        some = [*self._waiting, *(row for _, _, row in self._later)]
        return len(self) - sum(row.id in held for row in some)

    def take(self, batch: int, partition: int, payload: bytes) -> None:
        """Queue rows of a partition, in order, from an Arrow IPC stream."""
        table = pa.ipc.open_stream(payload).read_all()
        unreadable: dict[int, str] = {}
        columns = [
            _values_of(column, name, unreadable)
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        rows = list(zip(*columns, strict=True))
        if self._spout is not None:
            assert not unreadable, unreadable  # ranges are made of numbers and names
            self.add(batch, partition, rows)
            return
        numbers = self._numbers(batch, partition, len(rows))
        ids: Iterable[Hashable] | None = None
        if self._id_columns:
            places = [table.column_names.index(name) for name in self._id_columns]
            ids = zip(*(_as_ids(table.column(place), columns[place]) for place in places), strict=True)
        keys = self._keys(ids, batch, partition, numbers)
        self._add([Row(key, values, batch) for key, values in zip(keys, rows, strict=True)], unreadable)

    def add(self, batch: int, partition: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Queue rows of a partition, in order, that have no ids of their own."""
        if self._spout is not None:
            for values in rows:
                name = self._spout.partition_of(values)
                number = self._numbers(batch, name, 1)[0] + 1
                self._add_range(Row(_Range(name, batch, number), values, batch))
            return
        keys = self._keys(None, batch, partition, self._numbers(batch, partition, len(rows)))
        self._add([Row(key, values, batch) for key, values in zip(keys, rows, strict=True)])

    def _keys(
        self, ids: Iterable[Hashable] | None, batch: int, partition: int, numbers: range
    ) -> list[Hashable]:
        """Make the keys of rows, with these message ids or, if None, with ids made from their origin."""
        again, times = self._again
        attempt = times * _ATTEMPT if batch == again else 0
        if ids is None:
            ids = [(batch, partition, number) for number in numbers]
            if not attempt:
                return list(ids)
        return [
            RowKey(id, batch, partition, attempt + number) for id, number in zip(ids, numbers, strict=True)
        ]

    def _numbers(self, batch: int, partition: Hashable, count: int) -> range:
        """Take the numbers for the next rows of a partition in this batch."""
        if batch != self._batch:
            self._batch, self._taken = batch, Counter()
        first = self._taken[partition]
        self._taken[partition] += count
        return range(first, first + count)

    def _add(self, new: list[Row], unreadable: Mapping[int, str] = _ALL_READABLE) -> None:
        for place, reason in unreadable.items():
            new[place] = new[place]._replace(unreadable=reason)
        self.came += len(new)
        if self._kept:  # an open row of the same id is the same row, because ids of open rows are unique
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
        """Return the row to emit next: one that failed and is due, else one that waits; None if there is neither."""
        if self._later and self._later[0][0] <= now:
            return heapq.heappop(self._later)[2]
        if self._waiting or (self._ranges and self._read()):
            return self._waiting.popleft()
        return None

    def _read(self) -> bool:
        """Read rows of the next range, one partition after another, and queue them; false if there are none now."""
        assert self._spout is not None
        dry = 0
        for partition in list(self._ranges):
            ranges = self._ranges[partition]
            range = ranges[0]
            rows, left = self._spout.read(range.values, _READ)  # if this raises, the range stays
            ranges.popleft()
            del self._ranges[partition]
            if left is not None:
                changed = range._replace(values=left)
                ranges.appendleft(changed)
                if range.id in self._fresh:
                    self._fresh[range.id] = changed
            else:
                self.done(range.id)
            if ranges:
                self._ranges[partition] = ranges  # at the end, so that the others come first the next time
            if rows:
                new = {id: Row(id, values, range.batch) for id, values in rows}
                twice = len(new) < len(rows)
                if twice or not (self._fresh.keys().isdisjoint(new) and self._kept.keys().isdisjoint(new)):
                    new = self._told_apart(rows, range)
                self._fresh.update(new)
                self._waiting.extend(new.values())
                return True
            dry += left is not None
            if dry == _DRY:
                break
        return False

    def _told_apart(
        self, rows: Iterable[tuple[Hashable, tuple[Any, ...]]], range: Row
    ) -> dict[Hashable, Row]:
        """Give keys to rows of a range if some have the message id of an open row, for example after a topic was made anew."""
        new: dict[Hashable, Row] = {}
        for id, values in rows:
            key, number = id, 0
            while key in new or self._known(key) is not None:
                key, number = RowKey(id, range.batch, None, number), number + 1
            new[key] = Row(key, values, range.batch)
        return new

    def done(self, id: Hashable) -> None:
        """Remove a row that is done: acked, or given up."""
        if self._fresh.pop(id, None) is None:
            kept = self._kept.pop(id, None)
            if kept is not None:
                self._closed.append(kept.record)
        if self._fails:
            self._fails.pop(id, None)

    def failed(self, id: Hashable, now: float, *, innocent: bool = False) -> Row | None:
        """Emit the row again later, and return None; return the row if it has to be given up instead (K4).

        A row that was forgotten is ignored. An ``innocent`` row comes again at once: its batch was rolled back, or its worker
        was lost.
        """
        row = self._known(id)
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

    def knows(self, id: Hashable) -> bool:
        """Return whether ``id`` is the key of an open row."""
        return self._known(id) is not None

    def reopen(self) -> None:
        """Emit all open rows again, before all others, because a new instance of the spout knows of no open tree.

        A row that a commit has made done is not open, even if the spout's ``ack`` was not called yet.
        """
        queued = {row.id for row in self._waiting} | {row.id for _, _, row in self._later}
        every = [kept.row for kept in self._kept.values()] + list(self._fresh.values())
        was_open = [row for row in every if row.id not in queued and not isinstance(row.id, _Range)]
        self._waiting.extendleft(reversed(was_open))

    def commit(self, ids: Iterable[Hashable]) -> None:
        """Remove these rows, which are done with the commit of their batch."""
        self.why.clear()
        for id in ids:
            self.done(id)

    @property
    def open(self) -> int:
        """How many rows, and ranges, are open."""
        return len(self._fresh) + len(self._kept)

    def open_rows(self, but: Collection[Hashable]) -> dict[Hashable, Row]:
        """Return the open rows by id, without those in ``but``."""
        rows = [kept.row for kept in self._kept.values()] + list(self._fresh.values())
        return {row.id: row for row in rows if row.id not in but and not isinstance(row.id, _Range)}

    def forget_batch(self, batch: int, *, trees_live_on: bool = False) -> None:
        """Forget the rows of a batch, because the batch runs again and brings them again.

        ``trees_live_on``: trees of the earlier attempt are still open, so its rows get other keys this time.
        """
        self._batch = -1
        if trees_live_on:
            again, times = self._again
            self._again = (batch, times + 1 if batch == again else 1)
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
        """Return the changes for the durable acker since the last call: records opened and closed.

        Old records are closed and opened anew, so that the acker's watermark never passes an open one. ``draw(n)`` returns n
        random numbers of 64 bits with sign.
        """
        changes = [Change(record) for record in self._closed]
        self._closed = []
        opened = list(self._fresh.values())
        self._fresh = {}
        for range in self._unread():  # a range that was partly read stands for fewer rows than its record
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
            changes.append(Change(record, row.batch, repr(row.id), _encoded(row)))
        return changes

    def adopt(self, records: Iterable[tuple[Record | None, Row]]) -> int:
        """Take over rows that an earlier life of this task left open, each with its record if there is one.

        They are emitted before all others. If a row is known here already, the adopted record is closed. Returns how many
        rows were new.
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
        # Adopted records are older than those that were here, and `changes` expects the oldest first.
        self._kept = dict(sorted(self._kept.items(), key=lambda item: item[1].record.created))
        return len(new)

    # -- for people ------------------------------------------------------------------------------------------

    def open_ids(self) -> Iterator[Hashable]:
        """Iterate over the message ids of all open rows, as users see them."""
        for table in (self._kept, self._fresh):
            for id in table:
                if not isinstance(id, _Range):
                    yield message_id_of(id)

    def unread(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the unread rest of each range."""
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
    """Encode a row for the durable acker's journal; see `decode`.

    >>> decode(encode(Row((4, 1, 0), ("text", b"bytes", None), 4)))
    Row(id=(4, 1, 0), values=('text', b'bytes', None), batch=4, unreadable=None)
    """
    kind = _KINDS.get(type(row.id), _PLAIN)
    id = row.id if kind == _PLAIN else tuple(row.id)  # type: ignore[arg-type]
    parts = (kind, id, *row[1:])
    try:
        return pickle.dumps(parts, 5)
    except Exception:  # rare; the attempt above takes half as long as this
        file = io.BytesIO()
        _Pickler(file, 5).dump(parts)
        return file.getvalue()


def _encoded(row: Row) -> bytes:
    """Encode a row as `encode` does. A row with a value that can't be written becomes a dead letter for the reader."""
    try:
        return encode(row)
    except Exception as error:
        reason = f"it was open when its worker was lost, and could not be kept: {error_text(error)}"
        return encode(Row(row.id, tuple(f"{value!r:.1000}" for value in row.values), row.batch, reason))


def decode(data: bytes) -> Row:
    """Decode a row of the durable acker's journal. Raises `pickle.UnpicklingError` for a value that no row of Spark can have.

    Others may be able to write to the table's folder, so this reads nothing but plain values.
    """
    kind, id, *rest = _Values(io.BytesIO(data)).load()
    if kind != _PLAIN:
        id = (_Range if kind == _KINDS[_Range] else RowKey)(*id)
    return Row(comparable(id), *rest)


def readable(data: bytes, key: Hashable, place: str) -> Row:
    """Decode a row that ``place`` has under ``key``. A row that can't be read becomes a dead letter, with its bytes.

    >>> readable(b"no pickle", 7, "a table").unreadable[:29]
    "what a table has of it can't "
    """
    try:
        return decode(data)
    except Exception as error:
        reason = f"what {place} has of it can't be read: {error_text(error)}"
        return Row(("record", key), (data,), -1, reason)


#: The only NaN in keys. It equals nothing, but two tuples that hold this same object are equal.
_NAN = float("nan")
#: The kinds of keys of rows in the durable acker's table.
_PLAIN = 0
_KINDS: dict[type, int] = {_Range: 1, RowKey: 2}


def _values_of(column: pa.ChunkedArray, name: str, unreadable: dict[int, str]) -> list[Any]:
    """Return the values of a column as Python's; ``unreadable`` gets a reason for each row whose value Python can't hold.

    Spark's dates and timestamps go far beyond the year 9999; Python's do not.
    """
    readable = _readable(column.type)
    if readable != column.type:
        column = column.cast(readable)
    with suppress(ValueError, ArithmeticError, LookupError, TypeError, pa.ArrowException):
        return column.to_pylist()  # type: ignore[no-any-return]
    values: list[Any] = []
    for place, scalar in enumerate(column):
        try:
            values.append(scalar.as_py())
        except (ValueError, ArithmeticError, LookupError, TypeError, pa.ArrowException) as error:
            unreadable[place] = (
                f"column {name!r} holds a {column.type} that Python can't hold: {type(error).__name__}: {error}"
            )
            values.append(None)
    return values


def _as_ids(column: pa.ChunkedArray, values: list[Any]) -> list[Hashable]:
    """Return the column's values as parts of message ids. Arrays, structs and maps become tuples, which can be keys."""
    kind = pa.types
    if not (kind.is_nested(column.type) or kind.is_floating(column.type)):
        return values
    return [_as_id(value) for value in values]


def _as_id(value: Any) -> Hashable:
    if isinstance(value, dict):
        value = value.items()
    elif not isinstance(value, list | tuple):
        return comparable(value)
    return tuple(_as_id(one) for one in value)


def comparable(key: Hashable) -> Hashable:
    """Return a key from another process, or from an earlier time, such that equal keys are equal here, even with NaN in them.

    >>> other = pickle.loads(pickle.dumps(RowKey((float("nan"),), 4, 0, 12)))
    >>> comparable(other) == comparable(RowKey((float("nan"),), 4, 0, 12))
    True
    """
    if type(key) is tuple:
        return tuple(map(comparable, key))
    if isinstance(key, RowKey):
        return key._replace(message_id=comparable(key.message_id))
    return _NAN if isinstance(key, float) and math.isnan(key) else key


def _readable(type: pa.DataType) -> pa.DataType:
    """Return the type with the same instants in UTC if only Java knows the session's time zone, like "PST" or "GMT+8"."""
    if pa.types.is_timestamp(type):
        return type if type.tz is None or _is_zone(type.tz) else pa.timestamp(type.unit, "UTC")
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_readable(field.type)) for field in type])
    if pa.types.is_map(type):
        key, item = type.key_field, type.item_field
        return pa.map_(key.with_type(_readable(key.type)), item.with_type(_readable(item.type)))
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_readable(type.value_field.type)))
    return type


def _is_zone(name: str) -> bool:
    """Return whether Python's timestamps can have that time zone."""
    try:
        pa.array([0], pa.timestamp("s", name)).to_pylist()
    except (ValueError, LookupError, pa.ArrowException):
        return False
    return True


class _Pickler(pickle.Pickler):
    """A pickler for everything that Spark's columns can hold, including intervals, whose class Python finds under no name."""

    def reducer_override(self, value: Any) -> Any:
        return (_interval, tuple(value)) if type(value) is pa.MonthDayNano else NotImplemented


def _interval(months: int, days: int, nanoseconds: int) -> Any:
    return pa.MonthDayNano([months, days, nanoseconds])


class _Values(pickle.Unpickler):
    """An unpickler for everything that Spark's columns can hold, and for no other class."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return part_of_zone
        if (module, name) in _CLASSES:
            return super().find_class(module, name)
        msg = f"{module}.{name} is no value of a row"
        raise pickle.UnpicklingError(msg)


_CLASSES = {("decimal", "Decimal"), ("zoneinfo", "ZoneInfo"), (__name__, _interval.__name__)} | {
    ("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")
}
