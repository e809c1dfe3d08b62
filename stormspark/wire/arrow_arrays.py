"""Turns Python values into Arrow arrays. Values that pyarrow's own ``pa.array`` mistreats are refused.

``pa.array`` makes 1 of 1.5 if the type has whole numbers only. If a map is a list with a None in it, ``pa.array`` even ends the
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Number
from typing import Any, TypeAlias

from stormspark.extras import pyarrow as pa
from stormspark.shown_values import shown

__all__ = ["array_of"]

#: Raises ValueError if ``pa.array`` would mistreat one of these values of a type. Other values are left to ``pa.array``.
_Check: TypeAlias = Callable[[Iterable[Any]], None]

#: Types of Python whose values ``pa.array`` never cuts.
_WHOLE = frozenset([int, bool, type(None)])
#: More digits than any number of Arrow has.
_MOST_DIGITS = 80
_SINGLE = (str, bytes, bytearray, memoryview)


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return the values as an array of this type. A string or binary array of more than 2 GB has several chunks.

    Raises ValueError for a number that is not whole if the type has whole numbers only, and for a map with None in the place of a
    pair; both also inside lists, structs and maps. Otherwise raises what ``pa.array`` raises for a value without the type.

    >>> array_of([1, 2.0, None], pa.int64()).to_pylist()
    [1, 2, None]
    >>> array_of([1, 1.5], pa.int64())
    Traceback (most recent call last):
    ValueError: 1.5 is not a whole number
    """
    check = _check_of(kind)
    if check is not None:
        check(values)
    return pa.array(values, kind)


@lru_cache(maxsize=1024)
def _check_of(kind: pa.DataType) -> _Check | None:
    """Return the check of values of this type; None if ``pa.array`` mistreats none of them."""
    if pa.types.is_dictionary(kind):
        return _check_of(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return _check_numbers
    if pa.types.is_map(kind):
        return _check_of_maps(_check_of(kind.key_type), _check_of(kind.item_type))
    if pa.types.is_struct(kind):
        return _check_of_structs(kind)
    if pa.types.is_nested(kind) and kind.num_fields == 1:
        return _check_of_lists(_check_of(kind.field(0).type))
    return None


def _check_numbers(values: Iterable[Any]) -> None:
    kinds = set(map(type, values))
    if kinds <= _WHOLE:
        return
    with_fractions = tuple(one for one in kinds if issubclass(one, Number) and not issubclass(one, Integral))
    for value in values if with_fractions else ():
        if isinstance(value, with_fractions) and (why := _why_not_whole(value)) is not None:
            msg = f"{value!r} is {why}"
            raise ValueError(msg)


def _why_not_whole(value: Any) -> str | None:
    if isinstance(value, Decimal):
        if value.adjusted() > _MOST_DIGITS:  # its int() may have a billion digits, and take hours
            return "too large for a whole number"
        same = not value.is_finite() or value == value.to_integral_value()
    else:
        try:
            same = value == int(value)
        except (OverflowError, ValueError, TypeError):  # NaN and infinity are left to `pa.array`
            return None
    return None if same else "not a whole number"


def _check_of_lists(check: _Check | None) -> _Check | None:
    if check is None:
        return None

    def check_lists(values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, Iterable) and not isinstance(value, _SINGLE):
                check(value)

    return check_lists


def _check_of_maps(check_keys: _Check | None, check_items: _Check | None) -> _Check:
    def check_maps(values: Iterable[Any]) -> None:
        for value in values:
            keys: Iterable[Any]
            items: Iterable[Any]
            if isinstance(value, Mapping):
                keys, items = value.keys(), value.values()
            elif isinstance(value, Iterable) and not isinstance(value, _SINGLE):
                pairs = list(value)
                if any(pair is None for pair in pairs):
                    msg = f"a map has None in the place of a pair: {shown(value)}"
                    raise ValueError(msg)
                pairs = [pair for pair in pairs if isinstance(pair, tuple) and len(pair) == 2]
                keys, items = [key for key, _ in pairs], [item for _, item in pairs]
            else:
                continue
            if check_keys is not None:
                check_keys(keys)
            if check_items is not None:
                check_items(items)

    return check_maps


def _check_of_structs(kind: pa.DataType) -> _Check | None:
    fields = [kind.field(number) for number in range(kind.num_fields)]
    checks = [
        (number, field.name, check)
        for number, field in enumerate(fields)
        if (check := _check_of(field.type)) is not None
    ]
    if not checks:
        return None

    def check_structs(values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, tuple):  # the values in the order of the fields
                for number, _, check in checks:
                    check(value[number : number + 1])
                continue
            if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
                named: Mapping[Any, Any] = dict(value)
            elif isinstance(value, Mapping):
                named = value
            else:
                continue
            for _, name, check in checks:
                check((named.get(name),))

    return check_structs
