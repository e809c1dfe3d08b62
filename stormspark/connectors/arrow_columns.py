"""Tuples as Arrow columns of a schema: those that fit, and for each of the others why it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from stormspark.api import Fields, Tuple

__all__ = ["columns_of", "inferred_schema"]


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
            unknown = [name for name in tup.fields if name not in schema.names]
            if unknown:
                reasons[position] = (
                    f"field {unknown[0]!r} is no column of it; it has {', '.join(schema.names)}"
                )
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


def _column(field: pa.Field, values: list[Any], reasons: dict[int, str]) -> pa.Array:
    """The values, None where they do not fit, which is added to ``reasons``."""
    if not field.nullable:
        for position, value in enumerate(values):
            if value is None:
                reasons.setdefault(position, f"field {field.name!r} is None, which the table does not allow")
    try:
        return pa.array(values, field.type)
    except Exception:  # pyarrow raises half a dozen kinds; find the values one by one
        fitting = [None if _misfit(value, field.type) else value for value in values]
    for position, (value, left) in enumerate(zip(values, fitting, strict=True)):
        if value is not None and left is None:
            reasons.setdefault(position, f"field {field.name!r} is {value!r:.100}, which is no {field.type}")
    return pa.array(fitting, field.type)


def _misfit(value: Any, type: pa.DataType) -> bool:
    try:
        pa.array([value], type)
    except Exception:
        return True
    return False
