"""The key of a grouping: the fields that it names, found in a stream, and errors that name them (D1, D12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from stormspark.errors import InvalidTopologyError, ValueNotHashableError
from stormspark.grouping.base import GroupingContext
from stormspark.grouping.hashing import value_hasher
from stormspark.grouping.key_memo import KeyMemo

__all__ = ["checked_names", "memo_lookup"]

_T = TypeVar("_T")


def checked_names(fields: str | Iterable[str], kind: str) -> tuple[str, ...]:
    """The fields that a grouping was given, one name or several; raises `InvalidTopologyError`.

    >>> checked_names("word", "fields"), checked_names(["word", "n"], "fields")
    (('word',), ('word', 'n'))
    """
    names = (fields,) if isinstance(fields, str) else tuple(fields)  # "word" is no list of four letters.
    for name in names:
        if not isinstance(name, str):
            msg = f"a {kind} grouping takes names of fields, got {name!r} of type {type(name).__name__}"
            raise InvalidTopologyError(msg)
        if names.count(name) > 1:
            msg = f"a {kind} grouping takes each field once, got {name!r} twice in {names!r}"
            raise InvalidTopologyError(msg)
    return names


def memo_lookup(
    memo: KeyMemo[_T], fields: tuple[str, ...], kind: str, context: GroupingContext
) -> Callable[[Sequence[Any]], _T]:
    """The function that looks a tuple's key up in ``memo``.

    Raises `InvalidTopologyError` for a field that the stream doesn't declare; the function raises
    `ValueNotHashableError` naming the field.
    """
    positions = [_position(field, kind, context) for field in fields]
    key_of = itemgetter(*positions)

    def compute(values: Sequence[Any]) -> _T:
        try:
            return memo.compute(key_of(values))
        except ValueNotHashableError as error:
            raise _placed(error, values, fields, context) from None

    # TypeError: the key holds a list, which no dict looks up, or a value without a stable hash.
    if len(positions) > 1:

        def look_up(values: Sequence[Any]) -> _T:
            try:
                return memo[key_of(values)]
            except TypeError:
                return compute(values)

    else:
        (position,) = positions

        # One field is the common case, and so it takes half the time.
        def look_up(values: Sequence[Any]) -> _T:
            try:
                return memo[values[position]]
            except TypeError:
                return compute(values)

    return look_up


def _position(field: str, kind: str, context: GroupingContext) -> int:
    """Where ``field`` is among the source stream's fields."""
    if field not in context.fields:
        declared = ", ".join(map(repr, context.fields)) or "no fields"
        msg = (
            f"a {kind} grouping takes field {field!r} of stream {context.stream!r} of {context.source!r}, "
            f"which declares {declared} only"
        )
        raise InvalidTopologyError(msg)
    return context.fields.index(field)


def _placed(
    error: ValueNotHashableError, values: Sequence[Any], fields: tuple[str, ...], context: GroupingContext
) -> ValueNotHashableError:
    """Say in ``error`` which field of which stream it was."""
    hash_of = value_hasher(context.ints)
    for field in fields:
        try:
            hash_of(values[context.fields.index(field)])
        except ValueNotHashableError as error_of_field:
            place = f"field {field!r} of stream {context.stream!r} of {context.source!r}"
            return ValueNotHashableError(f"{place}: {error_of_field}")
    return error
