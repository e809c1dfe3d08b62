"""Checks the fields of a grouping's key, and has a chooser that looks the key up in a memo (D1, D12)."""

# key.pxd beside this module gives the attributes of `MemoLookup` their C types, with which Cython compiles this module. When
# you add, rename or retype one of them, change both files and check with `make compiled`.
# `MemoLookup` repeats the memo's attributes `known` and `tasks_of_texts` for speed: an outlet reads them for each tuple, without
# calling the chooser.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from stormspark.errors import InvalidTopologyError, ValueNotHashableError
from stormspark.grouping.base import GroupingContext
from stormspark.grouping.hashing import value_hasher
from stormspark.grouping.key_memo import KeyMemo

__all__ = ["MemoLookup", "checked_names"]


def checked_names(fields: str | Iterable[str], kind: str) -> tuple[str, ...]:
    """Return the fields of a grouping as a tuple. ``fields`` is one name or several.

    Raises `InvalidTopologyError` for a field that is named twice or is not a string.

    >>> checked_names("word", "fields"), checked_names(["word", "n"], "fields")
    (('word',), ('word', 'n'))
    """
    names = (fields,) if isinstance(fields, str) else tuple(fields)  # "word" is one name, not four letters.
    for name in names:
        if not isinstance(name, str):
            msg = f"a {kind} grouping takes names of fields, got {name!r} of type {type(name).__name__}"
            raise InvalidTopologyError(msg)
        if names.count(name) > 1:
            msg = f"a {kind} grouping takes each field once, got {name!r} twice in {names!r}"
            raise InvalidTopologyError(msg)
    return names


class MemoLookup:
    """A chooser that looks up the key of a tuple in a memo (`KeyMemo`), and returns the key's task, or its two tasks.

    Making the object raises `InvalidTopologyError` for a field that the stream doesn't declare. A call raises
    `ValueNotHashableError` for a value without a stable hash, and names the field.
    """

    def __init__(
        self, memo: KeyMemo[Any], fields: tuple[str, ...], kind: str, context: GroupingContext
    ) -> None:
        positions = [_position(field, kind, context) for field in fields]
        self._memo, self._fields, self._context = memo, fields, context
        self._key_of = itemgetter(*positions)
        #: The position of the value that is the key; -1 if the key has several values.
        self.position = positions[0] if len(positions) == 1 else -1
        #: See `KeyMemo.known`. An outlet first looks a key up in this dict, without calling the chooser.
        self.known: dict[Any, Any] = memo.known
        #: See `KeyMemo.tasks_of_texts`.
        self.tasks_of_texts = memo.tasks_of_texts

    def __call__(self, values: Sequence[Any]) -> Any:
        """Return the tuple's task, or its two tasks."""
        try:
            return self._memo[self._key_of(values)]
        except TypeError:  # The key holds a list or the like, or a value with an unstable hash.
            return self._compute(values)

    def _compute(self, values: Sequence[Any]) -> Any:
        try:
            return self._memo.compute(self._key_of(values))
        except ValueNotHashableError as error:
            raise _placed(error, values, self._fields, self._context) from None


def _position(field: str, kind: str, context: GroupingContext) -> int:
    """Return the position of ``field`` among the source stream's fields."""
    if field not in context.fields:
        declared = f"only {', '.join(map(repr, context.fields))}" if context.fields else "no fields"
        msg = (
            f"a {kind} grouping uses field {field!r} of stream {context.stream!r} of {context.source!r}, "
            f"which declares {declared}"
        )
        raise InvalidTopologyError(msg)
    return context.fields.index(field)


def _placed(
    error: ValueNotHashableError, values: Sequence[Any], fields: tuple[str, ...], context: GroupingContext
) -> ValueNotHashableError:
    """Return ``error`` with the field and the stream of the value that caused it."""
    hash_of = value_hasher(context.ints)
    for field in fields:
        try:
            hash_of(values[context.fields.index(field)])
        except ValueNotHashableError as error_of_field:
            place = f"field {field!r} of stream {context.stream!r} of {context.source!r}"
            return ValueNotHashableError(f"{place}: {error_of_field}")
    return error
