"""Computes Storm's hashes of all values of an Arrow column in one call, for fields groupings of whole record batches (D1-D3).

The hashes equal those of `stormspark.grouping.hashing`, so rows and tuples with equal keys go to the same tasks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stormspark.extras import pyarrow as pa
from stormspark.grouping.columns import ascii_hashes, boolean_hashes, double_hashes, long_hashes
from stormspark.grouping.hashing import value_hasher
from stormspark.wire.python_values import python_values

__all__ = ["column_hashes"]

#: The greatest Java Long.
_LONGEST = 2**63 - 1


def column_hashes(column: pa.Array, ints: str = "long") -> NDArray[np.uint32]:
    """Hash each value of an Arrow column as `value_hash` hashes the same value in Python (D2, D3).

    Null stands for None, and structs and maps stand for dicts. The result is unsigned. Raises the same errors as `value_hash`.

    >>> column_hashes(pa.array(["a", None, "b"]))
    array([97,  0, 98], dtype=uint32)
    """
    kind = column.type
    if pa.types.is_integer(kind):
        # The hash of a null is 0, which is also the hash of the number 0.
        numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
        if numbers.dtype != np.uint64 or numbers.max(initial=0) <= np.uint64(_LONGEST):
            return long_hashes(numbers.astype(np.int64, copy=False), ints)
        return _hashes_one_by_one(column, ints)  # Some of them are too large for a Long.
    if pa.types.is_boolean(kind):
        hashes = boolean_hashes(column.fill_null(False).to_numpy(zero_copy_only=False))
        return _without_nulls(hashes, column)
    if pa.types.is_floating(kind) and ints != "json":
        return _without_nulls(double_hashes(_doubles(column)), column)
    # Floats are not dictionary-encoded, because a dictionary may merge 0.0 and -0.0. The other types in this condition can't be
    # encoded at all.
    if (
        pa.types.is_floating(kind)
        or pa.types.is_nested(kind)
        or pa.types.is_null(kind)
        or _is_extension(kind)
    ):
        return _hashes_one_by_one(column, ints)
    if len(column) == column.null_count:
        return np.zeros(len(column), np.uint32)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        hashed = _text_hashes(column.fill_null("") if column.null_count else column)
        if hashed is not None:
            return _without_nulls(hashed, column)
    encoded = column if pa.types.is_dictionary(kind) else column.dictionary_encode()
    distinct = _text_hashes(encoded.dictionary)
    if distinct is None:
        distinct = _hashes_one_by_one(encoded.dictionary, ints)
    return _without_nulls(distinct[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)], column)


def _is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


def _doubles(column: pa.Array) -> NDArray[np.float64]:
    """Return the numbers as doubles, with 0 for null. A double can hold every shorter float exactly."""
    return column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64, copy=False)  # type: ignore[no-any-return]


def _text_hashes(texts: pa.Array) -> NDArray[np.uint32] | None:
    """Return the hashes of an array of ASCII strings. None if the array has anything else, such as a null."""
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)) or texts.null_count:
        return None
    _, offset_buffer, data = texts.buffers()
    width = np.dtype(np.int32 if pa.types.is_string(texts.type) else np.int64)
    offsets = np.frombuffer(offset_buffer, width)[texts.offset : texts.offset + len(texts) + 1]
    units = np.frombuffer(data or b"", np.uint8)[: offsets[-1]]
    return ascii_hashes(units, offsets) if units.max(initial=0) < 0x80 else None


def _hashes_one_by_one(column: pa.Array, ints: str) -> NDArray[np.uint32]:
    hash_of = value_hasher(ints)
    values: list[Any] = python_values(column)
    return np.array([hash_of(value) & 0xFFFF_FFFF for value in values], np.uint32)


def _without_nulls(hashes: NDArray[np.uint32], column: pa.Array) -> NDArray[np.uint32]:
    """Return the hashes with 0 wherever ``column`` is null."""
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes
