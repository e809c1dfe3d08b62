"""Converts tuples to Arrow columns of a schema, and says why a tuple does not fit the schema."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from stormspark.api import Fields, Tuple
from stormspark.connectors.delta_files import BEYOND, is_in_years, why_no_partition
from stormspark.extras import pyarrow as pa
from stormspark.shown_values import shown
from stormspark.wire.arrow_arrays import array_of

__all__ = ["Fit", "columns_of", "inferred_schema"]


def columns_of(
    tuples: Sequence[Tuple], schema: pa.Schema, keys: Container[str] = (), partitions: Container[str] = ()
) -> tuple[pa.Table, list[tuple[Tuple, str]]]:
    """Return a table of the tuples that fit the schema, and the other tuples with the reasons why they don't fit.

    Values are matched to columns by field names. If a tuple has no field for a column, the column is null in the tuple's row. See
    `Fit` for ``keys`` and ``partitions``.

    >>> from stormspark.testing import make_tuple
    >>> tuples = [make_tuple((n,), fields=["n"]) for n in (1, "x", 3)]
    >>> table, unfit = columns_of(tuples, pa.schema([("n", pa.int64()), ("note", pa.string())]))
    >>> table.to_pydict(), [reason for _, reason in unfit]
    ({'n': [1, 3], 'note': [None, None]}, ["field 'n' is 'x', but the column's type is int64"])
    """
    reasons: dict[int, str] = {}
    known: set[Fields] = set()  # the fields of earlier tuples, if columns exist for all of them
    for position, tup in enumerate(tuples):
        if tup.fields not in known:
            reason = _unknown(tup, schema)
            if reason is not None:
                reasons[position] = reason
            else:
                known.add(tup.fields)
    columns = []
    for field in schema:
        place = _Place(field, is_key=field.name in keys, is_partition=field.name in partitions)
        columns.append(_column(place, [tup.get(field.name) for tup in tuples], reasons))
    table = pa.table(columns, schema=schema)
    if reasons:
        fitting = [position for position in range(len(tuples)) if position not in reasons]
        table = table.take(pa.array(fitting, pa.int64()))
    return table, [(tuples[position], reason) for position, reason in sorted(reasons.items())]


def inferred_schema(tuples: Sequence[Tuple]) -> pa.Schema:
    """Return a schema of the tuples' fields.

    Each field gets a type that fits all its values or, if there is none, the type of its first value. Raises ValueError for a
    field that is None everywhere.

    >>> from stormspark.testing import make_tuple
    >>> inferred_schema([make_tuple((None, "x"), fields=["n", "s"]), make_tuple((1.5, "y"), fields=["n", "s"])])
    n: double
    s: string
    """
    kinds = {tup.fields: None for tup in tuples}
    names = dict.fromkeys(name for fields in kinds for name in fields)
    types: list[tuple[str, pa.DataType]] = []
    for name in names:
        values = [value for tup in tuples if (value := tup.get(name)) is not None]
        if not values:
            msg = (
                f"the type of field {name!r} is unknown, because it is None in all of the first {len(tuples)} tuples: give a "
                f"schema"
            )
            raise ValueError(msg)
        try:
            types.append((name, pa.array(values).type))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            types.append((name, pa.array(values[:1]).type))
    return pa.schema(types)


class _Place:
    """A column of the table, and the rules for its values."""

    def __init__(self, field: pa.Field, *, is_key: bool, is_partition: bool) -> None:
        self.field, self.is_key, self.is_partition = field, is_key, is_partition
        self.name = field.name
        self._looks_inside = _is_never_null_inside(field.type)
        self.easy = _easy(field.type)
        if is_partition and not field.nullable and pa.types.is_string(field.type):
            self.easy = lambda value: value.__class__ is str and value.isascii() and value != ""

    def why_no_null(self) -> str | None:
        """Return why None can't be a value of this column, or None if it can."""
        if self.is_key:
            return f"field {self.name!r} is None, and it is part of the key"
        return None if self.field.nullable else _NO_NULL.format(self.name)

    def why_not(self, value: Any) -> str | None:
        """Return why this value, which is not None, can't be in this column, or None if it can."""
        try:
            column = array_of([value], self.field.type)
        except Exception:  # pyarrow raises half a dozen kinds of errors
            return f"field {self.name!r} is {shown(value, 100)}, but the column's type is {self.field.type}"
        why = self.why_not_all(column)
        return None if why is None else f"field {self.name!r} is {shown(value, 100)}, {why}"

    def why_not_all(self, column: pa.Array | pa.ChunkedArray) -> str | None:
        """Return why one of these values can't be in this column, or None if all can. The values have the column's type."""
        if self._looks_inside and _has_null_inside(column):
            return f"which contains None where {self.field.type} allows none"
        if self.is_key and not is_in_years(column):
            return f"{BEYOND}, and it is part of the key"
        if self.is_partition:
            why = why_no_partition(column, nullable=self.field.nullable)
            return None if why is None else f"{why}, but the table is partitioned by it"
        return None


class Fit:
    """A check of tuples against a schema, one by one. It has the same results as `columns_of`.

    Values in the columns ``keys`` may not be None, nor be dates outside of the years 1 to 9999. The table is partitioned by the
    columns ``partitions``, so readers must be able to read each of their values from a partition.

    >>> from stormspark.testing import make_tuple
    >>> fit = Fit(pa.schema([("word", pa.string()), ("n", pa.int8())]), keys=["word"])
    >>> for values in ("a", 1), ("a", 128), (None, 1):
    ...     print(fit.why_not(make_tuple(values, fields=["word", "n"])))
    None
    field 'n' is 128, but the column's type is int8
    field 'word' is None, and it is part of the key
    """

    def __init__(self, schema: pa.Schema, keys: Container[str] = (), partitions: Sequence[str] = ()) -> None:
        self.schema, self.partitions = schema, tuple(partitions)
        places = [
            _Place(field, is_key=field.name in keys, is_partition=field.name in partitions)
            for field in schema
        ]
        self._places = [(place.name, place.easy, place) for place in places]
        self._known: set[Fields] = set()

    def why_not(self, tup: Tuple) -> str | None:
        """Return the first reason why the tuple does not fit, or None."""
        if tup.fields not in self._known:
            if (reason := _unknown(tup, self.schema)) is not None:
                return reason
            self._known.add(tup.fields)
        for name, easy, place in self._places:
            value = tup.get(name)
            if value is None:
                reason = place.why_no_null()
            elif easy(value):
                continue
            else:
                reason = place.why_not(value)
            if reason is not None:
                return reason
        return None


_NO_NULL = "field {!r} is None, which the table does not allow"


def _is_never_null_inside(type: pa.DataType) -> bool:
    """Whether values of this type contain values that may not be null."""
    return any(not field.nullable or _is_never_null_inside(field.type) for field in _fields_in(type))


def _fields_in(type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(type):
        return list(type)
    if pa.types.is_map(type):
        return [type.item_field]  # the keys of Arrow's maps are never null
    return [type.value_field] if pa.types.is_list(type) or pa.types.is_large_list(type) else []


def _has_null_inside(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether one of the values contains a null that its type forbids. Arrow makes such values, but can't write them."""
    if isinstance(column, pa.ChunkedArray):
        return any(map(_has_null_inside, column.chunks))
    column = column.drop_null()  # drop nulls, because a null contains no values
    fields = _fields_in(column.type)
    if pa.types.is_struct(column.type):
        inside = [column.field(place) for place in range(len(fields))]
    elif pa.types.is_map(column.type):
        begin, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
        inside = [column.items.slice(begin, end - begin)]
    else:
        inside = [column.flatten()] if fields else []
    return any(
        (not field.nullable and values.null_count > 0) or _has_null_inside(values)
        for field, values in zip(fields, inside, strict=True)
    )


def _unknown(tup: Tuple, schema: pa.Schema) -> str | None:
    unknown = [name for name in tup.fields if name not in schema.names]
    return (
        f"field {unknown[0]!r} is not a column of it; its columns are {', '.join(schema.names)}"
        if unknown
        else None
    )


def _easy(type: pa.DataType) -> Callable[[Any], bool]:
    """Return a quick check for values of this type. A value that it accepts fits. A value that it rejects may fit too."""
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        return lambda value: value.__class__ is str and value.isascii()
    if pa.types.is_integer(type):
        least, most = (
            (-(1 << type.bit_width - 1), (1 << type.bit_width - 1) - 1)
            if pa.types.is_signed_integer(type)
            else (0, (1 << type.bit_width) - 1)
        )
        return lambda value: value.__class__ is int and least <= value <= most
    if pa.types.is_float64(type):
        return lambda value: value.__class__ is float
    if pa.types.is_boolean(type):
        return lambda value: value.__class__ is bool
    return lambda value: False


def _column(place: _Place, values: list[Any], reasons: dict[int, str]) -> pa.Array:
    """Return the values as a column. A value that does not fit becomes None, and its reason is added to ``reasons``."""
    if (nothing := place.why_no_null()) is not None:
        for position, value in enumerate(values):
            if value is None:
                reasons.setdefault(position, nothing)
    try:
        column = array_of(values, place.field.type)
        if place.why_not_all(column) is None:
            return column
    except Exception:  # pyarrow raises half a dozen kinds of errors
        pass  # check the values one by one
    fitting = list(values)
    for position, value in enumerate(values):
        if value is not None and (reason := place.why_not(value)) is not None:
            reasons.setdefault(position, reason)
            fitting[position] = None
    return pa.array(fitting, place.field.type)
