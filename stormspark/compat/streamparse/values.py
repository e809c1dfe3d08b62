"""Copies the values that one component sends to another. The receiver gets what it would get through JSON, as in pystorm.

In pystorm, each component is a process, so the values that it emits are copied. The component may change an emitted list
afterwards. The next bolt gets a list even if a Python tuple was emitted. Projects rely on both. So this module copies lists and
tuples to lists, and dictionaries to dictionaries with strings as keys. Strings and numbers are immutable, so they are not copied.
Values that JSON can't write are not copied either.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any

__all__ = ["PLAIN", "copied"]

#: Values of these types need no copy.
PLAIN = frozenset({str, int, float, bool, NoneType, bytes})


def copied(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return ``values`` as the receiver gets them.

    >>> mine = {1: ("a", [2.5, None])}
    >>> copied(["x", mine])
    ('x', {'1': ['a', [2.5, None]]})
    """
    return tuple(map(_copy, values))


def _copy(value: Any) -> Any:
    if type(value) in PLAIN:
        return value
    if isinstance(value, list | tuple):
        return [_copy(one) for one in value]
    if isinstance(value, dict):
        return {_key(key): _copy(one) for key, one in value.items()}
    return value


def _key(key: Any) -> Any:
    """Return a dictionary's key as the string that JSON would write. A key that JSON can't write does not change."""
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return repr(key) if isinstance(key, int | float) else key
