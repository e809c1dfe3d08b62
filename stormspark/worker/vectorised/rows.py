"""Conversions between tuples and record batches, for streams between vectorised components and other components.

Values keep their meaning and their hash. For example, an int64 becomes an int, null becomes None, and a struct or map becomes a
dict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stormspark.extras import pyarrow as pa
from stormspark.shown_values import shown
from stormspark.wire.arrow_arrays import array_of
from stormspark.wire.python_values import python_value, python_values
from stormspark.worker.tuples.salvage import error_text

__all__ = ["batch_of", "readable_rows_of", "rows_of", "unfit"]


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Iterate over the values of each row.

    >>> list(rows_of(pa.record_batch({"word": ["storm", None], "n": [1, 2]})))
    [('storm', 1), (None, 2)]
    """
    if not batch.num_columns:
        return iter([()] * batch.num_rows)
    columns = [python_values(column) for column in batch.columns]
    return zip(*columns, strict=True)


def readable_rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...] | str]:
    """Iterate over rows as `rows_of` does, but convert value by value. Yield the reason in place of a row that Python can't
    hold.

    >>> beyond = pa.array([0, 10**18]).cast(pa.timestamp("us"))
    >>> list(readable_rows_of(pa.record_batch({"n": [1, 2], "at": beyond})))  # doctest: +ELLIPSIS
    [(1, datetime.datetime(1970, 1, 1, 0, 0)), "field 'at' holds a timestamp[us] that Python can't hold: ...
    """
    for at in range(batch.num_rows):
        row = []
        for field, column in zip(batch.schema, batch.columns, strict=True):
            try:
                row.append(python_value(column[at]))
            except Exception as error:
                yield f"field {field.name!r} holds a {field.type} that Python can't hold: {error_text(error)}"
                break
        else:
            yield tuple(row)


def batch_of(values: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Make a record batch of rows with these values. Raises an error if a value does not have its column's type."""
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(values), pa.struct([])))
    columns = zip(*values, strict=True) if values else [()] * len(schema)
    arrays = [_array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def unfit(values: tuple[Any, ...], schema: pa.Schema) -> str | None:
    """Return why these values can't be a row; None if they can be one."""
    for value, field in zip(values, schema, strict=True):
        try:
            _array([value], field.type)
        except Exception as error:  # of many kinds, because pyarrow calls methods of the value
            return (
                f"field {field.name!r} is declared as {field.type}, got {shown(value)} of type {type(value).__name__}: "
                f"{error_text(error)}"
            )
    return None


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    array = array_of(values, kind)
    if isinstance(array, pa.ChunkedArray):  # the column has more than 2 GB of strings
        msg = f"{len(values)} values of type {kind} do not fit into one array; declare large_string or large_binary"
        raise ValueError(msg)
    return array
