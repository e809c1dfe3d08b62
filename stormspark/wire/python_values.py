"""Turns Arrow values into Python values. A map becomes a dict, with every version of pyarrow that is allowed.

pyarrow itself makes dicts of maps since version 20. Runtimes of Spark have older versions.
"""

from __future__ import annotations

from typing import Any

from stormspark.extras import pyarrow as pa

__all__ = ["python_value", "python_values"]

_MAKES_DICTS = int(getattr(pa, "__version__", "0").split(".")[0]) >= 20


def python_values(column: pa.Array) -> list[Any]:
    """Return the values of an array. Raises KeyError if a map has a key twice.

    >>> python_values(pa.array([{"a": 1}, None], pa.map_(pa.string(), pa.int64())))
    [{'a': 1}, None]
    """
    if _MAKES_DICTS:
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
        return values
    return with_dicts(column.to_pylist(), column.type)


def python_value(value: pa.Scalar) -> Any:
    """Return one value, as `python_values` does."""
    if _MAKES_DICTS:
        return value.as_py(maps_as_pydicts="strict")
    return with_dicts([value.as_py()], value.type)[0]


def with_dicts(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Make dicts of the lists of pairs that an older pyarrow returns for maps, also inside other values.

    >>> maps = pa.map_(pa.string(), pa.list_(pa.map_(pa.string(), pa.int64())))
    >>> with_dicts([[("a", [[("b", 1)], None])], None], maps)
    [{'a': [{'b': 1}, None]}, None]
    >>> with_dicts([{"x": [("b", 1)], "y": 2}], pa.struct({"x": pa.map_(pa.string(), pa.int64()), "y": pa.int64()}))
    [{'x': {'b': 1}, 'y': 2}]
    """
    if not _has_map(kind):
        return values
    return [None if value is None else _with_dicts(value, kind) for value in values]


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_dictionary(kind):
        return _with_dicts(value, kind.value_type)
    if pa.types.is_struct(kind):
        fields = {kind.field(number).name: kind.field(number).type for number in range(kind.num_fields)}
        return {name: with_dicts([inner], fields[name])[0] for name, inner in value.items()}
    if pa.types.is_map(kind):
        keys = with_dicts([key for key, _ in value], kind.key_type)
        made = dict(zip(keys, with_dicts([inner for _, inner in value], kind.item_type), strict=True))
        if len(made) < len(keys):
            msg = f"a map has a key twice: {[str(key)[:80] for key in keys]}"
            raise KeyError(msg)
        return made
    return with_dicts(value, kind.value_type)  # a list of some kind


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    if pa.types.is_dictionary(kind):
        return _has_map(kind.value_type)
    return any(_has_map(kind.field(number).type) for number in range(kind.num_fields))
