"""The encoding of one column of a frame's tuples.

A column of strings travels as one joined string, and a column of ints or floats as an array. Pickle writes and reads such an
object in less time than a tuple of the values. A column is encoded in this way only if every value comes back unchanged. So all
values have to be of exactly one of these types, no string may contain the separator, and no int may need more than 64 bits. Any
other column is pickled as a tuple.
"""

# columns.pxd beside this module gives a C signature for `packed`, and Cython compiles this module with that signature. When
# you change the signature, change both files and check with `make compiled`.

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

__all__ = ["Column", "packed", "unpacked"]

#: An encoded column: strings joined into one, ints and floats as an array of 64 bits each, anything else as a tuple.
Column: TypeAlias = "str | array[Any] | tuple[Any, ...]"

#: The separator between two strings. It is the "unit separator" of ASCII, which hardly any string contains.
_BETWEEN = "\x1f"


def packed(values: Sequence[Any]) -> Column:
    r"""Encode values as a column.

    >>> packed(["to", "be"]), packed([1, 2]), packed([1, 2.5]), packed([True]), packed(["a\x1fb"])
    ('to\x1fbe', array('q', [1, 2]), (1, 2.5), (True,), ('a\x1fb',))
    """
    kind = type(values[0])
    for value in values:
        if type(value) is not kind:
            return tuple(values)
    if kind is str:
        joined = _BETWEEN.join(values)
        if joined.count(_BETWEEN) == len(values) - 1:
            return joined
    elif kind is int:
        try:
            return array("q", values)
        except OverflowError:
            pass
    elif kind is float:
        return array("d", values)
    return tuple(values)


def unpacked(column: Column) -> Iterable[Any]:
    """Decode a column into its values.

    >>> [list(unpacked(packed(values))) for values in (["to", "", "be"], [1, -(2**40)], [0.5], [None, "x"])]
    [['to', '', 'be'], [1, -1099511627776], [0.5], [None, 'x']]
    """
    return column.split(_BETWEEN) if type(column) is str else column
