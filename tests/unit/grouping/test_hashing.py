"""What a Python value is to Java, and what is refused (D1-D3)."""

from __future__ import annotations

import enum
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from stormspark.errors import ValueNotHashableError
from stormspark.grouping import fields_task_index
from stormspark.grouping.hashing import INTS, key_hash, value_hash


class Priority(enum.IntEnum):
    HIGH = 2


class City(enum.StrEnum):
    ROME = "rome"


class Color(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class Point:
    x: int


Pair = namedtuple("Pair", "left right")


def test_the_index_is_the_remainder_of_a_signed_hash_and_never_negative() -> None:
    """The task index is the non-negative remainder of a signed hash (D1)."""
    assert key_hash(["rainstorm"]) == -679884300
    # Unsigned, the hash would be 3615082996, and the index among 7 tasks 0.
    assert [fields_task_index(["rainstorm"], tasks) for tasks in (1, 2, 7)] == [0, 0, 3]


@pytest.mark.parametrize(
    ("number", "by_ints"),
    [
        (7, {"long": 7, "integer": 7, "json": 7}),
        (-1, {"long": 0, "integer": -1, "json": -1}),
        (-(2**31), {"long": 2**31 - 1, "integer": -(2**31), "json": -(2**31)}),
        (2**31, {"long": -(2**31), "integer": -(2**31), "json": -(2**31)}),
        (-1.5, {"long": -1074266112, "integer": -1074266112, "json": -1074266112}),
        (0.1 + 0.2, {"long": 216006663, "integer": 216006663, "json": 691387300}),
    ],
)
def test_numbers_are_typed_by_ints(number: float, by_ints: dict[str, int]) -> None:
    """The typing of ints decides how a number hashes (D3)."""
    assert {ints: value_hash(number, ints) for ints in INTS} == by_ints


def test_equal_in_python_is_not_equal_in_java() -> None:
    """Values that are equal in Python but differ in Java have different hashes (D2, D3)."""
    assert len({value_hash(one) for one in (1, 1.0, True, Decimal(1), Decimal("1.0"))}) == 5
    assert value_hash(0.0) != value_hash(-0.0)


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (Priority.HIGH, 2),
        (City.ROME, "rome"),
        (Pair(1, "x"), [1, "x"]),
        ((1, "x"), [1, "x"]),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (bytearray(b"abc"), b"abc"),
        (memoryview(b"abc"), b"abc"),
        (frozenset({1, "x"}), {"x", 1}),
        (np.int32(-5), -5),
        (np.float64(2.5), 2.5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("storm"), "storm"),
        (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_one_to_java(value: Any, same: Any) -> None:
    """Python values that are the same to Java have the same hash (D2)."""
    assert value_hash(value) == value_hash(same)


def test_bytes_inside_a_container_hash_by_content() -> None:
    """Bytes in a list or as a dict's key hash by their content (D2)."""
    # Java has nothing to agree with here: a byte[] inside a List hashes by identity.
    assert value_hash([b"abc"]) == 31 + value_hash(b"abc")
    assert value_hash({b"abc": 1}) == value_hash({bytes([97, 98, 99]): 1})


def test_keys_of_a_dict_are_strings_to_json() -> None:
    """With JSON's typing a dict's keys hash as strings, and with the others they do not (D3)."""
    assert value_hash({7: "x", None: 2.5, True: [], 0.5: 1}, "json") == value_hash(
        {"7": "x", "null": 2.5, "true": [], "0.5": 1}, "json"
    )
    assert value_hash({1: "x"}, "integer") != value_hash({"1": "x"}, "integer")


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Point(1),
        Color.RED,
        Decimal("NaN"),
        Decimal("-Infinity"),
        1 + 2j,
        np.array([1]),
        np.longdouble(1),
        range(3),
        len,
        [1, {"x": (Point(1),)}],
        {Point(1)},
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(
    "index",
    [value_hash, lambda value: fields_task_index(["a", value], 4, "json")],
    ids=["value_hash", "fields_task_index"],
)
def test_a_value_without_a_stable_hash_is_refused(value: Any, index: Callable[[Any], int]) -> None:
    """A value without a stable hash is rejected, with what to put in the field (D2)."""
    with pytest.raises(
        ValueNotHashableError,
        match=r"can't route by a value of type .*\. Put its identity into the field",
    ):
        index(value)


def test_the_error_names_the_type() -> None:
    """The error about a value without a stable hash names the innermost type (D2)."""
    with pytest.raises(ValueNotHashableError, match="of type Point:"):
        value_hash([Point(1)])


def test_an_unknown_typing_of_ints_is_refused() -> None:
    """An unknown typing of ints is rejected, with the three that exist (D3)."""
    with pytest.raises(ValueError, match=r"ints must be one of 'long', 'integer', 'json'.*got 'short'"):
        fields_task_index([1], 4, ints="short")
