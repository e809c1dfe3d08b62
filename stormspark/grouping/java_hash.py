"""``hashCode`` of Java's classes, computed from the Python values that stand for Java's objects (D2).

Java's hashes are signed 32-bit numbers and wrap. Each hash function of this module returns an int whose low 32 bits are Java's
hash.
Sums, products and XORs of such ints keep that property, so only a final result has to be folded, by `to_int32`.

``BigInteger`` and ``BigDecimal`` hash as OpenJDK does it, since Java's documentation does not define these hashes. The tests
compare the hashes of all classes with those of a real JDK.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from decimal import Decimal
from operator import mul
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "big_decimal_hash",
    "big_integer_hash",
    "boolean_hash",
    "byte_array_hash",
    "double_hash",
    "list_hash",
    "long_hash",
    "string_hash",
    "to_int32",
    "uuid_hash",
]

_MASK = 0xFFFF_FFFF
#: The number of units (UTF-16 units or bytes) that numpy processes at once.
_BLOCK = 4096
#: ``_POWERS[i]`` is 31**i, modulo 2**32. `_POWER_ARRAY` has these numbers in descending order, without the greatest power. So its
#: last n entries are the weights of n units.
_POWERS = tuple(pow(31, i, 1 << 32) for i in range(_BLOCK + 1))
_POWER_ARRAY = np.array(_POWERS[_BLOCK - 1 :: -1], dtype=np.uint32)
#: Up to this many units, a sum in Python takes less time than numpy's fixed cost of about 2 us.
_SHORT = 32
#: The weights of the bytes of big-endian UTF-16, read from the end. With them, two bytes need not be joined into a unit first.
_BYTE_WEIGHTS = tuple(weight * power for power in _POWERS[:_SHORT] for weight in (1, 256))


def to_int32(number: int) -> int:
    """Fold an int into the signed 32-bit number with the same low bits, which is what a Java ``int`` holds.

    >>> to_int32(2**31), to_int32(-1), to_int32(2**32 + 5)
    (-2147483648, -1, 5)
    """
    return ((number & _MASK) ^ 0x8000_0000) - 0x8000_0000


def string_hash(text: str) -> int:
    r"""Hash a String: the sum of s[i] * 31**(n-1-i) over UTF-16 units. A character above U+FFFF counts as two units.

    >>> to_int32(string_hash("storm")), to_int32(string_hash("\N{GRINNING FACE}"))
    (109770985, 1772899)
    """
    if text.isascii():
        ascii_units = text.encode("ascii")
        if len(ascii_units) <= _SHORT:
            return sum(map(mul, ascii_units[::-1], _POWERS))
        return _weighted_sum(np.frombuffer(ascii_units, dtype=np.uint8))
    # surrogatepass: to Java a lone surrogate is a unit like any other.
    units = text.encode("utf-16-be", "surrogatepass")
    if len(units) <= 2 * _SHORT:
        return sum(map(mul, units[::-1], _BYTE_WEIGHTS))
    return _weighted_sum(np.frombuffer(units, dtype=">u2"))


def _weighted_sum(units: NDArray[np.integer[Any]]) -> int:
    """Sum units[i] * 31**(n-1-i), block by block; numpy's unsigned arithmetic wraps as Java's does."""
    total = 0
    for start in range(0, len(units), _BLOCK):
        block = units[start : start + _BLOCK].astype(np.uint32)
        total = (total * _POWERS[len(block)] + int(np.dot(block, _POWER_ARRAY[-len(block) :]))) & _MASK
    return total


def boolean_hash(value: bool) -> int:
    """Hash a Boolean: 1231 or 1237."""
    return 1231 if value else 1237


def long_hash(number: int) -> int:
    """Hash a Long: its low half XOR its high half, so -1 gives 0. ``number`` must fit 64 bits, signed."""
    return number ^ (number >> 32)


def big_integer_hash(number: int) -> int:
    """Hash a BigInteger: 31 * total + digit for each 32-bit digit of its magnitude, then the total times its sign."""
    magnitude = abs(number)
    digits = magnitude.to_bytes((magnitude.bit_length() + 31) // 32 * 4, "big")
    total = 0
    for (digit,) in struct.iter_unpack(">I", digits):
        total = (31 * total + digit) & _MASK
    return -total if number < 0 else total


def big_decimal_hash(number: Decimal) -> int:
    """Hash a BigDecimal: 31 * hash of the unscaled value + scale, so 1.0 and 1.00 differ. ``number`` must be finite."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits)))
    return 31 * big_integer_hash(-unscaled if sign else unscaled) - exponent


def double_hash(number: float) -> int:
    """Hash a Double: its bits, folded like a Long's. All NaNs have one hash; 0.0 and -0.0 differ."""
    if math.isnan(number):
        return 0x7FF8_0000
    return long_hash(int.from_bytes(struct.pack(">d", number), "big"))


def list_hash(hashes: Iterable[int]) -> int:
    """Hash a List or an array, given its elements' hashes. The total is 1 at first, then 31 * total + hash per element.

    >>> to_int32(list_hash([])), to_int32(list_hash([7]))
    (1, 38)
    """
    total = 1
    for element in hashes:
        total = (31 * total + element) & _MASK
    return total


def byte_array_hash(data: bytes | bytearray | memoryview) -> int:
    r"""Hash a ``byte[]`` as ``Arrays.hashCode`` does: the rule of lists, over signed bytes.

    >>> to_int32(byte_array_hash(b"\xff"))
    30
    """
    signed = np.frombuffer(data, dtype=np.int8)
    return _weighted_sum(signed) + pow(31, len(signed), 1 << 32)


def uuid_hash(value: UUID) -> int:
    """Hash a UUID: its four 32-bit quarters, XORed."""
    halves = value.int ^ (value.int >> 64)
    return halves ^ (halves >> 32)
