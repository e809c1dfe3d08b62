"""Copies values between two components, with the same result as pystorm's JSON, but without JSON.

In pystorm, a component is a process of its own, so the values that it emits are copied. The component may change an emitted list
afterwards, and the next bolt gets a list even if a Python tuple was emitted. Projects rely on that. So lists, tuples and
dictionaries are copied here. Strings and numbers, which are immutable, travel as they are. So do values that JSON can't write.
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
    """Return a key as JSON has it, which is a string."""
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return repr(key) if isinstance(key, int | float) else key
