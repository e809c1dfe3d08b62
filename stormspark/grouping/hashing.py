"""Storm's task index for a fields grouping: the hash of a key whose values were Java objects (D1-D3).

Storm computes Java's ``Arrays.deepHashCode`` of the selected values, so a key of one value v gives 31 +
hash(v). A value's hash goes by its Java class. Therefore ``1``, ``1.0`` and ``True``, equal in Python, are
three keys here, as in Storm. The classes are::

    None -> null          bool -> Boolean       int, float -> see below     str -> String
    bytes, bytearray, memoryview -> byte[]      list, tuple -> List         dict -> Map
    set, frozenset -> Set                       Decimal -> BigDecimal       UUID -> UUID
    date -> LocalDate     datetime -> LocalDateTime, with a time zone Instant
    time -> LocalTime, with an offset OffsetTime             timedelta -> Duration
    a subclass of these -> as the class         a scalar of numpy -> as what its item() is

How numbers are typed is an argument, because it differs between versions of Storm (D3):

- ``"long"``: an int is a Long, beyond 64 bits a BigInteger; a float is a Double. So it is in Java components
  with long keys, and in multilang components up to Storm 2.5.
- ``"integer"``: an int is an Integer where 32 bits hold it, else as above. So it is in Java components with
  int keys.
- ``"json"``: what a multilang component's values become in Storm from 2.6 on. Ints as with ``"integer"``; a
  float whose JSON literal has more than 18 characters is a BigDecimal, an infinite one a String, NaN a Float;
  a dict's keys are Strings.

In one case Java has no stable hash, and the one here is by content, so that equal keys meet: bytes inside a
list, dict or set, where Java hashes a ``byte[]`` by identity. Any other value without a hash that is the same
in every process is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import Any
from uuid import UUID

import numpy as np

from stormspark.errors import ValueNotHashableError
from stormspark.grouping import java_hash, java_time
from stormspark.grouping.java_hash import to_int32

__all__ = ["INTS", "fields_task_index", "key_hash", "value_hash", "value_hasher"]

#: The ways to type numbers (D3).
INTS = ("long", "integer", "json")

Hasher = Callable[[Any], int]


def fields_task_index(values: Sequence[Any], tasks: int, ints: str = "long") -> int:
    """Return which of ``tasks`` tasks gets a tuple with these key values, from 0, as in Storm (D1).

    ``values`` are those of the grouping's fields, in its order. The index counts the consumer's task ids from
    the lowest. ``ints`` says how numbers are typed: ``"long"``, ``"integer"`` or ``"json"`` (D3).

    Raises `ValueNotHashableError` for a value without a stable hash (D2), `ValueError` for an unknown
    ``ints``.

    >>> fields_task_index(["storm"], 4), fields_task_index(["storm", 1], 4)
    (0, 1)
    >>> fields_task_index([-1], 4), fields_task_index([-1], 4, ints="integer")
    (3, 2)
    """
    return key_hash(values, ints) % tasks


def key_hash(values: Sequence[Any], ints: str = "long") -> int:
    """Return the signed 32-bit ``Arrays.deepHashCode`` of a key (D1); raises as `fields_task_index`.

    >>> key_hash([]), key_hash([None]), key_hash(["a"])
    (1, 31, 128)
    """
    return to_int32(java_hash.list_hash(map(value_hasher(ints), values)))


def value_hash(value: Any, ints: str = "long") -> int:
    """Return the signed 32-bit Java hash of one value (D2); raises as `fields_task_index`.

    >>> value_hash("a"), value_hash(-1), value_hash(-1, ints="integer"), value_hash(True)
    (97, 0, -1, 1231)
    """
    return to_int32(value_hasher(ints)(value))


@cache
def value_hasher(ints: str) -> Hasher:
    """Return the function from a value to an int whose low 32 bits are its Java hash: `value_hash`, prepared.

    Raises `ValueError` for an unknown ``ints``; the function raises `ValueNotHashableError`.
    """
    if ints not in INTS:
        msg = f"ints must be one of {', '.join(map(repr, INTS))} (D3), got {ints!r}"
        raise ValueError(msg)

    def hash_of(value: Any) -> int:
        hasher = hashers.get(type(value))
        return hasher(value) if hasher is not None else hash_of_other(value)

    def hash_of_other(value: Any) -> int:
        # numpy first: its float64 is a subclass of float, and says no more than its item does. (A long
        # double's item is itself.)
        if isinstance(value, np.generic) and not isinstance(item := value.item(), np.generic):
            return hash_of(item)
        for base in type(value).__mro__:
            if base in hashers:
                return hashers[base](value)
        raise _not_hashable(type(value).__qualname__)

    def list_hash(elements: Sequence[Any]) -> int:
        return java_hash.list_hash(map(hash_of, elements))

    def set_hash(elements: frozenset[Any] | set[Any]) -> int:
        return sum(map(hash_of, elements))

    def map_hash(entries: dict[Any, Any]) -> int:
        return sum(hash_of(key_of(key)) ^ hash_of(value) for key, value in entries.items())

    as_json = ints == "json"
    key_of: Callable[[Any], Any] = _json_key if as_json else lambda key: key
    hashers: dict[type, Hasher] = {
        **java_time.HASHERS,
        str: java_hash.string_hash,
        bool: java_hash.boolean_hash,
        int: _long_or_bigger if ints == "long" else _integer_or_bigger,
        float: _json_float_hash if as_json else java_hash.double_hash,
        NoneType: lambda _none: 0,
        bytes: java_hash.byte_array_hash,
        bytearray: java_hash.byte_array_hash,
        memoryview: java_hash.byte_array_hash,
        list: list_hash,
        tuple: list_hash,
        dict: map_hash,
        set: set_hash,
        frozenset: set_hash,
        Decimal: _decimal_hash,
        UUID: java_hash.uuid_hash,
    }
    return hash_of


def _not_hashable(what: str) -> ValueNotHashableError:
    return ValueNotHashableError(
        f"a fields grouping can't route by a value of type {what}: it has no hash that is the same in every "
        "process and in Java (D2). Put in the field what identifies it, as a str, an int, bytes or a tuple "
        "of such: an id, enum.name, dataclasses.astuple(value), array.tolist()"
    )


def _long_or_bigger(number: int) -> int:
    fits = -0x8000_0000_0000_0000 <= number <= 0x7FFF_FFFF_FFFF_FFFF
    return java_hash.long_hash(number) if fits else java_hash.big_integer_hash(number)


def _integer_or_bigger(number: int) -> int:
    return number if -0x8000_0000 <= number <= 0x7FFF_FFFF else _long_or_bigger(number)


def _json_float_hash(number: float) -> int:
    literal = json.dumps(number)
    if literal == "NaN":
        return 0x7FC0_0000  # Float.NaN: the parser knows the bare word.
    if literal.endswith("Infinity"):
        return java_hash.string_hash(literal)  # This one it takes for a string without quotes.
    # The parser reads a double where the literal is sure to fit one, which it tells by its length.
    if len(literal) <= 18:
        return java_hash.double_hash(number)
    return java_hash.big_decimal_hash(Decimal(literal))


def _json_key(key: Any) -> Any:
    # json.dumps makes strings of keys of these types. Others it refuses, so Storm never saw them.
    return json.dumps(key) if isinstance(key, int | float | NoneType) else key


def _decimal_hash(number: Decimal) -> int:
    if not number.is_finite():
        what = f"Decimal that is {number}"
        raise _not_hashable(what)
    return java_hash.big_decimal_hash(number)
