"""A memo that remembers to which tasks each key goes, so that a fields grouping usually costs one dict look-up per tuple (D1).

A subclass of `KeyMemo` decides what the *place* of a key is: one task in `TaskMemo`, two tasks for a partial key grouping (D12).

Python's dicts treat 1, 1.0 and True as one key, and also 0.0 and -0.0, but Java hashes them differently. So only strings, and
tuples of strings, are looked up as they are, because a string equals nothing but strings. Other keys are looked up together with
their types. Even then 0.0 equals -0.0, and other types have such pairs, too. So a key is remembered only if all its values are
strings, ints, bools, bytes or None.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from stormspark.grouping.hashing import value_hasher
from stormspark.grouping.java_hash import list_hash, string_hash, to_int32

__all__ = ["LONGEST_KEY", "MOST_KEYS", "KeyMemo", "TaskMemo", "shared_memo"]

#: How many keys are remembered. When one more key comes, all are forgotten, and the keys in use are soon remembered again. The
#: limit is large enough for a dictionary of words. If the keys in use did not fit, half of the places would be computed again,
#: which takes thirty times as long as a look-up.
MOST_KEYS = 500_000
#: Keys of more than about this many bytes are not remembered, so that a memo can't grow beyond about 140 MB.
LONGEST_KEY = 128

_EXACT = frozenset({str, int, bool, bytes, NoneType})


_T = TypeVar("_T")


class KeyMemo(Generic[_T]):
    """A memo that maps the key of a tuple to its place, and computes the place if it is not remembered.

    If there is one field, the key is its value; else the key is the tuple of the fields' values. ``memo[key]`` raises
    `TypeError` if the key holds a list, dict or set, because dicts can't look these up. Call `compute` then. For a value without
    a stable hash, both ``memo[key]`` and `compute` raise `ValueNotHashableError`, which is also a `TypeError`.
    """

    def __init__(self, targets: tuple[int, ...], ints: str, fields: int) -> None:
        self._targets = targets
        self._single = fields == 1
        self._hash_of = value_hasher(ints)
        #: The places of keys that consist of strings only. A key that is found in this dict needs no further look-up.
        self.known: dict[Any, _T] = {}
        #: The places of all other keys. A place is found by a pair: the types of the key's values, and the key.
        self._typed: dict[tuple[Any, Any], _T] = {}

    def place(self, hashes: Iterable[int]) -> _T:
        """Return the place of a key whose values have these Java hashes. Only the low 32 bits of each hash count."""
        raise NotImplementedError

    def compute(self, key: Any) -> _T:
        """Compute the place of ``key`` without the memo."""
        return self.place((self._hash_of(key),) if self._single else map(self._hash_of, key))

    @property
    def tasks_of_texts(self) -> tuple[int, ...]:
        """The tasks among which `text_index` finds the task of a key that is one string; () if `text_index` can't find it."""
        return ()

    def __len__(self) -> int:
        return len(self.known) + len(self._typed)

    def __getitem__(self, key: Any) -> _T:
        place = self.known.get(key)
        return self._missing(key) if place is None else place

    def _missing(self, key: Any) -> _T:
        if self._single and type(key) is str:  # The most frequent case.
            place = self.place((string_hash(key),))
            if len(key) <= LONGEST_KEY:
                self._make_room()
                self.known[key] = place
            return place
        types: Any = type(key) if self._single else tuple(map(type, key))
        known = self._typed.get((types, key))
        if known is not None:
            return known
        place = self.compute(key)
        self._remember(key, types, place)
        return place

    def _remember(self, key: Any, types: Any, place: _T) -> None:
        kinds = {types} if self._single else set(types)
        parts = (key,) if self._single else key
        if not kinds <= _EXACT or sum(map(_size, parts)) > LONGEST_KEY:
            return
        self._make_room()
        if kinds == {str}:
            self.known[key] = place
        else:
            self._typed[types, key] = place

    def _make_room(self) -> None:
        if len(self) >= MOST_KEYS:
            self.known.clear()
            self._typed.clear()


class TaskMemo(KeyMemo[int]):
    """A memo that maps the key of a tuple to its task: the target whose index is `fields_task_index` of the key's values (D1).

    >>> memo = TaskMemo((4, 5, 6), "long", fields=1)
    >>> memo["storm"], memo[4], memo[4.0], memo[True]
    (6, 6, 4, 6)
    """

    @property
    def tasks_of_texts(self) -> tuple[int, ...]:
        """See `KeyMemo.tasks_of_texts`: all targets, if the key has one field."""
        return self._targets if self._single else ()

    def place(self, hashes: Iterable[int]) -> int:
        """Return the task of a key."""
        return self._targets[to_int32(list_hash(hashes)) % len(self._targets)]


def _size(part: str | bytes | int | None) -> int:
    """Return about how many bytes of memory a part of a key takes."""
    if isinstance(part, int):
        return part.bit_length() // 8
    return len(part) if part else 0


_M = TypeVar("_M", bound=KeyMemo[Any])
_memos: WeakValueDictionary[tuple[type, tuple[int, ...], str, int], Any] = WeakValueDictionary()


def shared_memo(kind: type[_M], targets: tuple[int, ...], ints: str, fields: int) -> _M:
    """Return the memo for these targets. All senders in the process share it, and it lives while any of them uses it.

    The senders of one worker meet the same keys, so separate memos would multiply the memory. Sharing changes no result,
    because a place depends only on these arguments and the key.
    """
    name = (kind, targets, ints, fields)
    memo: _M | None = _memos.get(name)
    if memo is None:
        memo = _memos[name] = kind(targets, ints, fields)
    return memo
