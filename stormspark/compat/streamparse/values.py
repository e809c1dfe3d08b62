"""What becomes of values between two components: what JSON made of them in pystorm, without JSON.

A pystorm component is a process of its own, so what it emits is a copy: it may change its list afterwards, and the next
bolt gets a list where a tuple was emitted. Projects rely on that. Texts and numbers, which can't be changed, travel as they
are; lists, tuples and dictionaries are copied. What JSON can't write travels as it is too.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any

__all__ = ["PLAIN", "copied"]

#: Values of these types need no copy.
PLAIN = frozenset({str, int, float, bool, NoneType, bytes})


def copied(values: Iterable[Any]) -> tuple[Any, ...]:
    """``values`` as the receiver has them.

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
    """JSON's keys are texts."""
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return repr(key) if isinstance(key, int | float) else key
