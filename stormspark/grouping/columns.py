"""Storm's task index for whole columns, in numpy: the fields grouping of many rows at once (D1-D3).

The hashes equal those of `stormspark.grouping.hashing` for each value. They are arrays of unsigned 32-bit ints, in which sums
and products wrap as Java's do. If this module has no function for the type of a column, `hashing` hashes the column value by
value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["ascii_hashes", "boolean_hashes", "double_hashes", "long_hashes", "task_indices"]

Hashes = NDArray[np.uint32]

_INVERSE_31 = pow(31, -1, 1 << 32)
#: How many bytes of strings are hashed at once. A longer string is hashed alone.
_BLOCK = 1 << 16


def task_indices(columns: Sequence[Hashes], tasks: int) -> NDArray[np.int32]:
    """Return each row's task index (D1). ``columns`` has an array of hashes for each field of the key, in order.

    Raises `ValueError` if there are no columns, because a key has at least one field.

    >>> task_indices([ascii_hashes(np.frombuffer(b"stormspark", np.uint8), np.array([0, 5, 10]))], 4)
    array([0, 0], dtype=int32)
    """
    if not columns:
        msg = "a key has at least one field, got none"
        raise ValueError(msg)
    deep = np.ones(len(columns[0]), np.uint32)
    for hashes in columns:
        deep = deep * np.uint32(31) + hashes
    # As in Java, the hash is signed. numpy's remainder is never negative, like Math.floorMod.
    return deep.view(np.int32) % np.int32(tasks)


def long_hashes(numbers: NDArray[np.int64], ints: str) -> Hashes:
    """Hash each 64-bit int as a Long, or as an Integer if 32 bits hold it and ``ints`` asks for that (D3).

    >>> long_hashes(np.array([-1, 2**32]), "long"), long_hashes(np.array([-1, 2**32]), "integer")
    (array([0, 1], dtype=uint32), array([4294967295,          1], dtype=uint32))
    """
    folded = (numbers ^ (numbers >> 32)).astype(np.uint32)
    if ints == "long":
        return folded
    low = numbers.astype(np.int32)
    return np.where(low == numbers, low.view(np.uint32), folded)


def boolean_hashes(values: NDArray[np.bool_]) -> Hashes:
    """Hash each value as a Boolean.

    >>> boolean_hashes(np.array([True, False]))
    array([1231, 1237], dtype=uint32)
    """
    return np.where(values, np.uint32(1231), np.uint32(1237))


def double_hashes(numbers: NDArray[np.float64]) -> Hashes:
    """Hash each number as a Double: its bits, folded. All NaNs have one hash; 0.0 and -0.0 differ.

    >>> double_hashes(np.array([1.5, 0.0, -0.0]))
    array([1073217536,          0, 2147483648], dtype=uint32)
    """
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    return (bits ^ (bits >> 32)).astype(np.uint32)


def ascii_hashes(units: NDArray[np.uint8], offsets: NDArray[np.integer]) -> Hashes:
    """Hash adjacent ASCII strings. String i is ``units[offsets[i]:offsets[i + 1]]``.

    >>> ascii_hashes(np.frombuffer(b"ab", np.uint8), np.array([0, 1, 1, 2]))
    array([97,  0, 98], dtype=uint32)
    """
    # The sum of u[k] * 31**(end-1-k) is 31**end times the sum of u[k] / 31**(k+1). Division by 31 is possible modulo 2**32.
    # So the weights depend only on the position in the buffer, and one running sum serves all strings.
    # Strings are processed in blocks that fit into the processor's caches, with powers that are computed only once.
    count = len(offsets) - 1
    hashes = np.empty(count, np.uint32)
    first = 0
    while first < count:
        begin = offsets[first]
        last = int(np.searchsorted(offsets, begin + _BLOCK, "right")) - 1
        last = min(max(last, first + 1), count)
        places = offsets[first : last + 1] - begin
        length = int(places[-1])
        weights, back = _weights(_BLOCK) if length <= _BLOCK else _weights.__wrapped__(length)
        running = np.zeros(length + 1, np.uint32)
        running[1:] = units[begin : begin + length]
        running *= weights[: length + 1]
        np.cumsum(running, dtype=np.uint32, out=running)
        sums, some = running.take(places), hashes[first:last]
        np.subtract(sums[1:], sums[:-1], out=some)
        some *= back.take(places[1:])
        first = last
    return hashes


@cache
def _weights(highest: int) -> tuple[Hashes, Hashes]:
    """Return the powers of 1/31 and those of 31, up to ``highest``."""
    return _powers(_INVERSE_31, highest), _powers(31, highest)


def _powers(base: int, highest: int) -> Hashes:
    """Return base**0 to base**highest, modulo 2**32."""
    powers = np.full(highest + 1, base, np.uint32)
    powers[0] = 1
    return np.multiply.accumulate(powers, dtype=np.uint32)
