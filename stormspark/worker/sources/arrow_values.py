"""The conversion of Arrow columns into Python values and into parts of message ids.

Python can't hold every value of Spark. For example, Spark's dates and timestamps go far beyond the year 9999, and Python's do
not.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from stormspark.extras import pyarrow as pa
from stormspark.worker.sources.rows import comparable

__all__ = ["as_ids", "values_of"]

#: The errors of a value that Python can't hold.
_CONVERSION_ERRORS = (ValueError, ArithmeticError, LookupError, TypeError)


def values_of(column: pa.ChunkedArray, name: str, unreadable: dict[int, str]) -> list[Any]:
    """Return the values of a column as Python values.

    If Python can't hold the value of a row, the value is None, and the reason is put into ``unreadable`` under the row's
    position.
    """
    type_in_python = _readable(column.type)
    if type_in_python != column.type:
        column = column.cast(type_in_python)
    with suppress(*_CONVERSION_ERRORS, pa.ArrowException):
        return column.to_pylist()  # type: ignore[no-any-return]
    values: list[Any] = []
    for place, scalar in enumerate(column):
        try:
            values.append(scalar.as_py())
        except (*_CONVERSION_ERRORS, pa.ArrowException) as error:
            unreadable[place] = (
                f"column {name!r} holds a {column.type} that Python can't hold: {type(error).__name__}: {error}"
            )
            values.append(None)
    return values


def as_ids(column: pa.ChunkedArray, values: list[Any]) -> list[Hashable]:
    """Return the column's values as parts of message ids. Arrays, structs and maps become tuples, which are hashable."""
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


def _readable(type: pa.DataType) -> pa.DataType:
    """Return the type to which a column is cast first. A time zone that only Java knows, like "PST" or "GMT+8", becomes UTC."""
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
    """Return whether timestamps in Python can have that time zone."""
    try:
        pa.array([0], pa.timestamp("s", name)).to_pylist()
    except (ValueError, LookupError, pa.ArrowException):
        return False
    return True
