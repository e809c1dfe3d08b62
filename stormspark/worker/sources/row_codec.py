"""The encoding of rows as bytes, for the durable acker's journal and for the state table.

Other people may be able to write to the folders of the journal and the table. So `decode` runs no code that these files name. It
reads only values that Spark's columns can hold.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Hashable
from typing import Any

from stormspark.checkpoint.pickled_zones import part_of_zone
from stormspark.extras import pyarrow as pa
from stormspark.worker.sources.rows import RangeKey, Row, RowKey, comparable
from stormspark.worker.tuples.salvage import error_text

__all__ = ["decode", "encode", "encode_or_give_up", "readable"]

#: The kinds of keys of rows, as they are written.
_PLAIN = 0
_KINDS: dict[type, int] = {RangeKey: 1, RowKey: 2}


def encode(row: Row) -> bytes:
    """Encode a row; see `decode`.

    >>> decode(encode(Row((4, 1, 0), ("text", b"bytes", None), 4)))
    Row(id=(4, 1, 0), values=('text', b'bytes', None), batch=4, unreadable=None)
    """
    kind = _KINDS.get(type(row.id), _PLAIN)
    id = row.id if kind == _PLAIN else tuple(row.id)  # type: ignore[arg-type]
    parts = (kind, id, *row[1:])
    try:
        return pickle.dumps(parts, 5)
    except Exception:  # this is rare, so `pickle.dumps`, which is twice as fast, is tried first
        file = io.BytesIO()
        _Pickler(file, 5).dump(parts)
        return file.getvalue()


def encode_or_give_up(row: Row) -> bytes:
    """Encode a row as `encode` does. If a value of the row can't be encoded, encode a dead letter instead."""
    try:
        return encode(row)
    except Exception as error:
        reason = f"it was open when its worker was lost, and could not be kept: {error_text(error)}"
        return encode(Row(row.id, tuple(f"{value!r:.1000}" for value in row.values), row.batch, reason))


def decode(data: bytes) -> Row:
    """Decode a row. Raises `pickle.UnpicklingError` for a value that no row of Spark can have."""
    kind, id, *rest = _Values(io.BytesIO(data)).load()
    if kind != _PLAIN:
        id = (RangeKey if kind == _KINDS[RangeKey] else RowKey)(*id)
    return Row(comparable(id), *rest)


def readable(data: bytes, key: Hashable, place: str) -> Row:
    """Decode a row that ``place`` has under ``key``. If this fails, return a dead letter whose only value is ``data``.

    >>> readable(b"no pickle", 7, "a table").unreadable[:34]
    "its bytes in a table can't be read"
    """
    try:
        return decode(data)
    except Exception as error:
        reason = f"its bytes in {place} can't be read: {error_text(error)}"
        return Row(("record", key), (data,), -1, reason)


class _Pickler(pickle.Pickler):
    """A pickler for everything that Spark's columns can hold. Intervals need this pickler, because Python can't find their
    class by name.
    """

    def reducer_override(self, value: Any) -> Any:
        return (_interval, tuple(value)) if type(value) is pa.MonthDayNano else NotImplemented


def _interval(months: int, days: int, nanoseconds: int) -> Any:
    return pa.MonthDayNano([months, days, nanoseconds])


class _Values(pickle.Unpickler):
    """An unpickler for everything that Spark's columns can hold, and for no other class."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return part_of_zone
        if (module, name) in _INTERVALS:
            return _interval
        if (module, name) in _CLASSES:
            return super().find_class(module, name)
        msg = f"{module}.{name} is no value of a row"
        raise pickle.UnpicklingError(msg)


#: The names under which pickled rows refer to `_interval`. The second name is from an earlier release, in which another module
#: had the function. Old journals and tables still have that name.
_INTERVALS = {(__name__, "_interval"), ("stormspark.worker.sources.source_rows", "_interval")}
_CLASSES = {("decimal", "Decimal"), ("zoneinfo", "ZoneInfo")} | {
    ("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")
}
