"""Between tuples and batches: where a vectorised component meets another one, its tuples change their form once.

Values keep their meaning and their hash: what a schema has as an int64 is an int, null is None, a struct or map a dict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

__all__ = ["batch_of", "rows_of", "unfit"]


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The values of each row.

    >>> list(rows_of(pa.record_batch({"word": ["storm", None], "n": [1, 2]})))
    [('storm', 1), (None, 2)]
    """
    if not batch.num_columns:
        return iter([()] * batch.num_rows)
    columns = [column.to_pylist(maps_as_pydicts="strict") for column in batch.columns]
    return zip(*columns, strict=True)


def batch_of(values: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """A batch of rows with these values; raises where one is not of its column's type."""
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(values), pa.struct([])))
    columns = zip(*values, strict=True) if values else [()] * len(schema)
    arrays = [_array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def unfit(values: tuple[Any, ...], schema: pa.Schema) -> str | None:
    """Why these values can't be a row, or None."""
    for value, field in zip(values, schema, strict=True):
        try:
            _array([value], field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            return (
                f"field {field.name!r} is declared as {field.type}, got {value!r:.200} of type {type(value).__name__}: "
                f"{error}"
            )
    return None


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    array = pa.array(values, kind)
    if isinstance(array, pa.ChunkedArray):  # more than 2 GB of text
        msg = f"{len(values)} values of type {kind} do not fit into one array; declare large_string or large_binary"
        raise ValueError(msg)
    return array
