"""Computes Storm's task index for a fields grouping, from the hash that the key's values have as Java objects (D1-D3).

Storm computes Java's ``Arrays.deepHashCode`` of the key's values. So the hash of a key with one value v is 31 + hash(v). A
value's hash depends on its Java class. Therefore ``1``, ``1.0`` and ``True``, which are equal in Python, are three keys in
stormspark, as in Storm. The classes are::

    None -> null          bool -> Boolean       int, float -> see below     str -> String
    bytes, bytearray, memoryview -> byte[]      list, tuple -> List         dict -> Map
    set, frozenset -> Set                       Decimal -> BigDecimal       UUID -> UUID
    date -> LocalDate     datetime -> LocalDateTime, with a time zone Instant
    time -> LocalTime, with an offset OffsetTime             timedelta -> Duration
    a subclass of these -> as the class         a scalar of numpy -> as its item()

The types of numbers are an argument, because they differ between versions of Storm (D3):

- ``"long"``: an int is a Long, beyond 64 bits a BigInteger; a float is a Double. Java components with long keys
  work this way, and so do multilang components up to Storm 2.5.
- ``"integer"``: an int is an Integer if 32 bits hold it; all else is as with ``"long"``. Java components with int keys work
  this way.
- ``"json"``: the types of a multilang component's values in Storm from 2.6 on. Ints are as with ``"integer"``. A float
  whose JSON literal has more than 18 characters is a BigDecimal, an infinite one a String, and NaN a Float. A dict's
  keys are Strings.

In one case Java has no stable hash: it hashes a ``byte[]`` inside a list, dict or set by identity. stormspark hashes these bytes
by content, so that equal keys go to the same task. A value of a class that is not listed above is rejected.
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

#: The allowed values of ``ints``, which chooses the types of numbers (D3).
INTS = ("long", "integer", "json")

Hasher = Callable[[Any], int]


def fields_task_index(values: Sequence[Any], tasks: int, ints: str = "long") -> int:
    """Return the index of the task, among ``tasks`` tasks, that receives a tuple with these key values, as in Storm (D1).

    Index 0 is the consumer's lowest task id. ``values`` are the values of the grouping's fields, in the grouping's order.
    ``ints`` chooses the types of numbers: ``"long"``, ``"integer"`` or ``"json"`` (D3).

    Raises `ValueNotHashableError` for a value without a stable hash (D2), and `ValueError` for an unknown ``ints``.

    >>> fields_task_index(["storm"], 4), fields_task_index(["storm", 1], 4)
    (0, 1)
    >>> fields_task_index([-1], 4), fields_task_index([-1], 4, ints="integer")
    (3, 2)
    """
    return key_hash(values, ints) % tasks


def key_hash(values: Sequence[Any], ints: str = "long") -> int:
    """Return the signed 32-bit ``Arrays.deepHashCode`` of a key (D1); raise as `fields_task_index` does.

    >>> key_hash([]), key_hash([None]), key_hash(["a"])
    (1, 31, 128)
    """
    return to_int32(java_hash.list_hash(map(value_hasher(ints), values)))


def value_hash(value: Any, ints: str = "long") -> int:
    """Return the signed 32-bit Java hash of one value (D2); raise as `fields_task_index` does.

    >>> value_hash("a"), value_hash(-1), value_hash(-1, ints="integer"), value_hash(True)
    (97, 0, -1, 1231)
    """
    return to_int32(value_hasher(ints)(value))


@cache
def value_hasher(ints: str) -> Hasher:
    """Return the function that `value_hash` calls. That function returns an int whose low 32 bits are the Java hash of a value.

    Raises `ValueError` for an unknown ``ints``. The returned function raises `ValueNotHashableError`.
    """
    if ints not in INTS:
        msg = f"ints must be one of {', '.join(map(repr, INTS))}, got {ints!r}"
        raise ValueError(msg)

    def hash_of(value: Any) -> int:
        hasher = hashers.get(type(value))
        return hasher(value) if hasher is not None else hash_of_other(value)

    def hash_of_other(value: Any) -> int:
        # numpy's types come first, because a float64 is also a float, but is hashed as its item(). (The item() of a long double
        # is itself.)
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


def _not_hashable(type_name: str) -> ValueNotHashableError:
    return ValueNotHashableError(
        f"a fields grouping can't route by a value of type {type_name}: it has no hash that is the same in "
        "every process and in Java. Put its identity into the field, as a str, an int, bytes or a tuple "
        "of these: an id, enum.name, dataclasses.astuple(value), array.tolist()"
    )


def _long_or_bigger(number: int) -> int:
    fits = -0x8000_0000_0000_0000 <= number <= 0x7FFF_FFFF_FFFF_FFFF
    return java_hash.long_hash(number) if fits else java_hash.big_integer_hash(number)


def _integer_or_bigger(number: int) -> int:
    return number if -0x8000_0000 <= number <= 0x7FFF_FFFF else _long_or_bigger(number)


def _json_float_hash(number: float) -> int:
    literal = json.dumps(number)
    if literal == "NaN":
        return 0x7FC0_0000  # Float.NaN: Storm's parser accepts the bare word NaN.
    if literal.endswith("Infinity"):
        return java_hash.string_hash(literal)  # The parser reads Infinity as a string without quotes.
    # The parser reads a double only if the literal is short enough to fit a double in any case.
    if len(literal) <= 18:
        return java_hash.double_hash(number)
    return java_hash.big_decimal_hash(Decimal(literal))


def _json_key(key: Any) -> Any:
    # json.dumps converts keys of these types to strings. It refuses other types, so Storm never received them.
    return json.dumps(key) if isinstance(key, int | float | NoneType) else key


def _decimal_hash(number: Decimal) -> int:
    if not number.is_finite():
        type_name = f"Decimal that is {number}"
        raise _not_hashable(type_name)
    return java_hash.big_decimal_hash(number)
