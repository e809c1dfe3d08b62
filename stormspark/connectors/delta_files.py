"""Writes rows to Parquet files in a Delta table's folder, so that a later commit can make them part of the table."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from stormspark.checkpoint.state_files import Folder
from stormspark.extras import pyarrow as pa
from stormspark.extras import pyarrow_compute as pc
from stormspark.extras import pyarrow_parquet as pq

__all__ = ["BEYOND", "StagedFile", "StagedRows", "is_in_years", "staged", "why_no_partition"]

#: The statistics cover at most this many columns, and a string in them has at most this many characters. Delta's own writers have
#: the same limits.
_COLUMNS, _TEXT = 32, 32
#: The reason for rejecting a date or a time for which `is_in_years` is false.
BEYOND = "beyond the years 1 to 9999"


class StagedFile(NamedTuple):
    """A file with rows of one partition.

    ``partition`` has the names and values of the partition's columns. The statistics are JSON.
    """

    path: str
    size: int
    partition: tuple[tuple[str, str | None], ...]
    written_ms: int
    statistics: str


class StagedRows(NamedTuple):
    """Describes the files with a batch's rows for the table. It is plain data that can be stored in a state."""

    files: tuple[StagedFile, ...]
    #: The schema of the rows, including the partition columns.
    schema: pa.Schema

    @property
    def size(self) -> int:
        """The number of bytes in all files."""
        return sum(file.size for file in self.files)

    def read(self, location: str, options: Mapping[str, str] | None) -> pa.Table:
        """Read the rows back, with their partition columns."""
        folder = Folder(location, options)
        tables = []
        for file in self.files:
            with folder.read(file.path) as source:
                rows = pq.read_table(source)
            for name, text in file.partition:
                column = _from_text(text, self.schema.field(name).type)
                rows = rows.append_column(name, pa.repeat(column, rows.num_rows))
            tables.append(rows.select(self.schema.names).cast(self.schema))
        return pa.concat_tables(tables)

    def missing(self, location: str, options: Mapping[str, str] | None) -> str | None:
        """Return the first file that is gone, or has another size than when it was written. None if all files are as they were.

        Raises OSError.
        """
        folder = Folder(location, options)
        return next((file.path for file in self.files if folder.size(file.path) != file.size), None)

    def delete(self, location: str, options: Mapping[str, str] | None) -> None:
        """Delete the files. Raises OSError."""
        folder = Folder(location, options)
        for file in self.files:
            folder.delete(file.path)


def staged(
    location: str, options: Mapping[str, str] | None, rows: pa.Table, partitions: Sequence[str] = ()
) -> StagedRows:
    """Write ``rows`` to one file per partition, in the table's own folder.

    The files are on disk when this returns. If no commit makes them part of the table, a ``VACUUM`` removes them, a week later
    at the earliest. Raises OSError. Raises ValueError if readers could not read a partition because of its value.
    """
    folder = Folder(location, options)
    files = []
    for partition, part in _parts(rows, partitions):
        path = f"part-{uuid.uuid4().hex}.parquet"
        sink = folder.create(path)
        try:
            pq.write_table(part, sink, compression="snappy")
        except BaseException:
            sink.close()
            raise
        size = folder.close(sink)
        files.append(StagedFile(path, size, partition, int(time.time() * 1000), _statistics(part)))
    return StagedRows(tuple(files), rows.schema)


def _parts(
    rows: pa.Table, partitions: Sequence[str]
) -> Iterator[tuple[tuple[tuple[str, str | None], ...], pa.Table]]:
    """Yield, for each partition, the values of its columns as Delta writes them, and its rows without these columns."""
    if not partitions:
        yield (), rows
        return
    found: dict[tuple[str | None, ...], list[int]] = {}
    columns = [_as_text(rows.column(name)) for name in partitions]
    for position, values in enumerate(zip(*columns, strict=True)):
        found.setdefault(values, []).append(position)
    rest = rows.drop_columns(list(partitions))
    for values, positions in found.items():
        yield tuple(zip(partitions, values, strict=True)), rest.take(pa.array(positions, pa.int64()))


def _as_text(column: pa.ChunkedArray) -> list[str | None]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"))  # in Delta's strings, times are in UTC and have no zone
    if (why := why_no_partition(column)) is not None:  # `Fit` has already rejected such values one by one
        msg = f"a {column.type} by which the table is partitioned is {why}"
        raise ValueError(msg)
    return [text or None for text in column.cast(pa.string()).to_pylist()]


def _from_text(text: str | None, type: pa.DataType) -> pa.Scalar:
    """Convert a string from `_as_text` back to the partition's value."""
    value = pa.scalar(text, pa.string())
    return (value.cast(pa.timestamp("us")) if pa.types.is_timestamp(type) else value).cast(type)


def why_no_partition(column: pa.ChunkedArray | pa.Array, *, nullable: bool = True) -> str | None:
    """Return why readers could not read the partition of one of these values; None if they can read all these partitions.

    If a table has a single unreadable partition, delta-rs can't read the table at all. ``nullable`` says whether the column may
    have nulls, because Delta reads an empty string in a partition as null.

    >>> why_no_partition(pa.array([0, None, 2_932_896], pa.date32()))
    >>> why_no_partition(pa.array([2_932_897], pa.date32()))
    'beyond the years 1 to 9999'
    >>> why_no_partition(pa.array([""])), why_no_partition(pa.array([""]), nullable=False)
    (None, 'null in a partition, which must not be null')
    """
    if not is_in_years(column):
        return BEYOND
    if not nullable and pa.types.is_string(column.type) and pc.any(pc.equal(column, "")).as_py():
        return "null in a partition, which must not be null"
    if pa.types.is_decimal(column.type) and (least := pc.min(column).as_py()) is not None and least < 0:
        return "negative, which delta-rs can't read in a partition"
    return None


def is_in_years(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether Python and Delta's log can express these dates or timestamps. True for columns of other types."""
    if not pa.types.is_temporal(column.type):
        return True
    try:
        pc.min_max(column).as_py()
    except (ValueError, OverflowError):
        return False
    return True


def _statistics(rows: pa.Table) -> str:
    """Return the statistics by which readers skip files, in the format of Delta's log."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in rows.column_names[:_COLUMNS]:
        column = rows.column(name)
        if pa.types.is_nested(column.type):
            continue
        nulls[name] = column.null_count
        if (bounds := _bounds(column)) is not None:
            least[name], most[name] = bounds
    found = {"numRecords": rows.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}
    return json.dumps(found)


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the smallest and the greatest value, in a form for JSON; None if the two are of no use or too long."""
    kind = pa.types
    type = column.type
    if not (kind.is_integer(type) or kind.is_floating(type) or kind.is_string(type) or kind.is_date(type)
            or kind.is_timestamp(type)):  # fmt: skip
        return None
    if kind.is_floating(type) and pc.any(pc.is_nan(column)).as_py():
        return None
    if not is_in_years(column):
        return None
    found = pc.min_max(column).as_py()
    least, most = found["min"], found["max"]
    if least is None:
        return None
    if isinstance(least, str) and max(len(least), len(most)) > _TEXT:
        return None
    if isinstance(least, float) and not (math.isfinite(least) and math.isfinite(most)):
        return None
    if isinstance(least, datetime):
        # The log has milliseconds, so the greatest value is rounded up.
        if most > datetime.max.replace(tzinfo=most.tzinfo) - timedelta(milliseconds=1):
            return None
        return _milliseconds(least), _milliseconds(most + timedelta(microseconds=999))
    if isinstance(least, date):
        return least.isoformat(), most.isoformat()
    return least, most


def _milliseconds(at: datetime) -> str:
    text = at.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text if at.tzinfo is None else f"{text}Z"
