"""Tuples as Arrow columns of a schema: those that fit, and for each of the others why it does not."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import pyarrow as pa

from stormspark.api import Fields, Tuple
from stormspark.connectors.delta_files import why_no_partition

__all__ = ["Fit", "columns_of", "inferred_schema"]


def columns_of(tuples: Sequence[Tuple], schema: pa.Schema) -> tuple[pa.Table, list[tuple[Tuple, str]]]:
    """The values of the tuples that fit, by field names, null where a tuple has no such field; and the others with the reason.

    >>> from stormspark.testing import make_tuple
    >>> tuples = [make_tuple((n,), fields=["n"]) for n in (1, "x", 3)]
    >>> table, unfit = columns_of(tuples, pa.schema([("n", pa.int64()), ("note", pa.string())]))
    >>> table.to_pydict(), [reason for _, reason in unfit]
    ({'n': [1, 3], 'note': [None, None]}, ["field 'n' is 'x', which is no int64"])
    """
    reasons: dict[int, str] = {}
    known: set[Fields] = set()  # fields that are all columns
    for position, tup in enumerate(tuples):
        if tup.fields not in known:
            reason = _unknown(tup, schema)
            if reason is not None:
                reasons[position] = reason
            else:
                known.add(tup.fields)
    columns = [_column(field, [tup.get(field.name) for tup in tuples], reasons) for field in schema]
    table = pa.table(columns, schema=schema)
    if reasons:
        fitting = [position for position in range(len(tuples)) if position not in reasons]
        table = table.take(pa.array(fitting, pa.int64()))
    return table, [(tuples[position], reason) for position, reason in sorted(reasons.items())]


def inferred_schema(tuples: Sequence[Tuple]) -> pa.Schema:
    """The fields of the tuples, each with the type of all its values, or of the first one where they differ.

    Raises ValueError for a field that is None everywhere.

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
            msg = f"the type of {name!r} can't be told, it is None in all of the first {len(tuples)} tuples: give a schema"
            raise ValueError(msg)
        try:
            types.append((name, pa.array(values).type))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            types.append((name, pa.array(values[:1]).type))
    return pa.schema(types)


class Fit:
    """Whether tuples fit a schema, told one by one as `columns_of` would; ``keys`` may not be None, and those of
    ``partitions`` are values that readers can have there.

    >>> from stormspark.testing import make_tuple
    >>> fit = Fit(pa.schema([("word", pa.string()), ("n", pa.int8())]), keys=["word"])
    >>> for values in ("a", 1), ("a", 128), (None, 1):
    ...     print(fit.why_not(make_tuple(values, fields=["word", "n"])))
    None
    field 'n' is 128, which is no int8
    field 'word' is None, and it is part of the key
    """

    def __init__(self, schema: pa.Schema, keys: Container[str] = (), partitions: Sequence[str] = ()) -> None:
        self.schema, self.partitions = schema, tuple(partitions)
        self._columns = [(field.name, field, _easy(field.type), field.name in keys) for field in schema]
        self._known: set[Fields] = set()

    def why_not(self, tup: Tuple) -> str | None:
        """The first reason, or None."""
        if tup.fields not in self._known:
            if (reason := _unknown(tup, self.schema)) is not None:
                return reason
            self._known.add(tup.fields)
        for name, field, easy, is_key in self._columns:
            value = tup.get(name)
            if value is None:
                if is_key:
                    return f"field {name!r} is None, and it is part of the key"
                if not field.nullable:
                    return _NO_NULL.format(name)
            elif not easy(value):
                if _misfit(value, field.type):
                    return _misfits(field, value)
                why = why_no_partition(pa.array([value], field.type)) if name in self.partitions else None
                if why is not None:
                    return f"field {name!r} is {value!r:.100}, {why}, which the table is partitioned by"
        return None


_NO_NULL = "field {!r} is None, which the table does not allow"


def _misfits(field: pa.Field, value: Any) -> str:
    return f"field {field.name!r} is {value!r:.100}, which is no {field.type}"


def _unknown(tup: Tuple, schema: pa.Schema) -> str | None:
    unknown = [name for name in tup.fields if name not in schema.names]
    return f"field {unknown[0]!r} is no column of it; it has {', '.join(schema.names)}" if unknown else None


def _easy(type: pa.DataType) -> Callable[[Any], bool]:
    """What is quick and never wrong where it says yes; most values of a stream are told by it."""
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


def _column(field: pa.Field, values: list[Any], reasons: dict[int, str]) -> pa.Array:
    """The values, None where they do not fit, which is added to ``reasons``."""
    if not field.nullable:
        for position, value in enumerate(values):
            if value is None:
                reasons.setdefault(position, _NO_NULL.format(field.name))
    try:
        return pa.array(values, field.type)
    except Exception:  # pyarrow raises half a dozen kinds; find the values one by one
        fitting = [None if _misfit(value, field.type) else value for value in values]
    for position, (value, left) in enumerate(zip(values, fitting, strict=True)):
        if value is not None and left is None:
            reasons.setdefault(position, _misfits(field, value))
    return pa.array(fitting, field.type)


def _misfit(value: Any, type: pa.DataType) -> bool:
    try:
        pa.array([value], type)
    except Exception:
        return True
    return False
