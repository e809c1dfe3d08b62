"""The fast hashes against slow ones that one can read off Java's documentation (D1-D3)."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stormspark.grouping import fields_task_index
from stormspark.grouping.columns import ascii_hashes, long_hashes, task_indices
from stormspark.grouping.hashing import key_hash, value_hash

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    # Lone surrogates too, which are units like others to Java; hypothesis leaves them out by itself.
    | st.text(st.characters(), max_size=100)
    | st.text(st.characters(categories=["Cs", "Lu"]), max_size=50)
)
hashable = scalars | st.tuples(scalars, scalars)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(hashable, max_size=4)
        | st.dictionaries(hashable, inner, max_size=4)
    ),
    max_leaves=10,
)
keys = st.lists(values | st.binary(max_size=100), max_size=4)


def wrap(number: int) -> int:
    """What is left of a number in a Java int."""
    return (number + 2**31) % 2**32 - 2**31


def fold(bits: int) -> int:
    """A 64-bit pattern as Long.hashCode folds it."""
    bits %= 2**64
    return wrap((bits >> 32) ^ bits)


def slow_hash(value: Any, ints: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool):
        return 1231 if value else 1237
    if isinstance(value, int):
        if ints == "integer" and -(2**31) <= value < 2**31:
            return value
        if -(2**63) <= value < 2**63:
            return fold(value)
        total, magnitude = 0, abs(value)
        for place in reversed(range(-(-magnitude.bit_length() // 32))):
            total = 31 * total + (magnitude >> 32 * place) % 2**32
        return wrap(total * (1 if value > 0 else -1))
    if isinstance(value, float):
        return fold(struct.unpack(">q", struct.pack(">d", math.nan if math.isnan(value) else value))[0])
    if isinstance(value, str):
        data = value.encode("utf-16-le", "surrogatepass")
        total = 0
        for (unit,) in struct.iter_unpack("<H", data):
            total = wrap(31 * total + unit)
        return total
    if isinstance(value, bytes):
        return slow_list([byte - 256 if byte > 127 else byte for byte in value])
    if isinstance(value, list | tuple):
        return slow_list([slow_hash(element, ints) for element in value])
    if isinstance(value, frozenset):
        return wrap(sum(slow_hash(element, ints) for element in value))
    if isinstance(value, dict):
        return wrap(sum(slow_hash(key, ints) ^ slow_hash(item, ints) for key, item in value.items()))
    raise AssertionError(value)


def slow_list(hashes: list[int]) -> int:
    total = 1
    for element in hashes:
        total = wrap(31 * total + element)
    return total


@given(keys, st.sampled_from(["long", "integer"]), st.integers(1, 100))
def test_a_key_hashes_as_slowly_worked_out(key: list[Any], ints: str, tasks: int) -> None:
    """A key's hash and its task index agree with a slow reference written after Java's rules (D1, D2, D3)."""
    slow = slow_list([slow_hash(value, ints) for value in key])
    assert key_hash(key, ints) == slow
    assert fields_task_index(key, tasks, ints) == slow - tasks * math.floor(slow / tasks)


@given(st.lists(st.text(st.characters(max_codepoint=127))), st.sampled_from(["", "offset "]))
def test_a_column_of_texts_hashes_as_its_texts(texts: list[str], before: str) -> None:
    """Hashing a column of ASCII strings gives the hash of each string, at any offset in the buffer (D1, D2)."""
    data = np.frombuffer((before + "".join(texts)).encode(), np.uint8)
    offsets = len(before) + np.cumsum([0, *map(len, texts)])
    assert ascii_hashes(data, offsets).view(np.int32).tolist() == [value_hash(text) for text in texts]


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.sampled_from(["long", "integer", "json"]),
    st.integers(1, 100),
)
def test_columns_of_numbers_go_where_their_rows_go(numbers: list[int], ints: str, tasks: int) -> None:
    """Task indices computed from columns of numbers are those computed from their rows (D1, D3)."""
    column = long_hashes(np.array(numbers, np.int64), ints)
    indices = task_indices([column, column], tasks)
    assert indices.tolist() == [fields_task_index([number, number], tasks, ints) for number in numbers]
