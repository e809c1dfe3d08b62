"""Whole columns in numpy hash as their values one by one (D1-D3)."""

from __future__ import annotations

import numpy as np
import pytest

from stormspark.grouping import fields_task_index
from stormspark.grouping.columns import ascii_hashes, boolean_hashes, long_hashes, task_indices
from stormspark.grouping.hashing import value_hash

TEXTS = ["", "storm", "", "a", "x" * 100, "word count", ""]
NUMBERS = [0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63)]


def laid_out(texts: list[str], offset: int = 0) -> tuple[np.ndarray, np.ndarray]:
    data = "?" * offset + "".join(texts) + "??"
    return np.frombuffer(data.encode(), np.uint8), offset + np.cumsum([0, *map(len, texts)])


@pytest.mark.parametrize("offset", [0, 5])
def test_a_column_of_strings_hashes_as_its_strings(offset: int) -> None:
    """Hashing a column of strings gives the hash of each string, also when it begins inside its buffer (D1, D2)."""
    hashes = ascii_hashes(*laid_out(TEXTS, offset))
    assert hashes.view(np.int32).tolist() == [value_hash(text) for text in TEXTS]


def test_an_empty_column_and_an_empty_string() -> None:
    """An empty column has no hashes, and an empty string hashes to 0 (D2)."""
    assert ascii_hashes(np.zeros(0, np.uint8), np.array([0])).tolist() == []
    assert ascii_hashes(np.zeros(0, np.uint8), np.array([0, 0])).tolist() == [0]


@pytest.mark.parametrize("ints", ["long", "integer", "json"])
def test_a_column_of_integers_hashes_as_its_integers(ints: str) -> None:
    """Hashing a column of integers gives the hash of each integer, for every typing of ints (D2, D3)."""
    hashes = long_hashes(np.array(NUMBERS), ints)
    assert hashes.view(np.int32).tolist() == [value_hash(number, ints) for number in NUMBERS]


def test_rows_go_to_storms_tasks() -> None:
    """Columns of strings, numbers and booleans together give the task index of each row (D1)."""
    texts, numbers, flags = TEXTS, [*NUMBERS[:7]], [True, False, True, True, False, False, True]
    columns = [
        ascii_hashes(*laid_out(texts)),
        long_hashes(np.array(numbers), "long"),
        boolean_hashes(np.array(flags)),
    ]
    rows = zip(texts, numbers, flags, strict=True)
    assert task_indices(columns, 5).tolist() == [fields_task_index(row, 5) for row in rows]


def test_a_key_has_a_field() -> None:
    """Task indices need one column at least (D1)."""
    with pytest.raises(ValueError, match="at least one field"):
        task_indices([], 3)
