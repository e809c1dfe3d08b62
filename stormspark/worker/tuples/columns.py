"""How one column of a frame's tuples travels: texts, ints and floats as arrays, which take a quarter of what pickle takes.

Only for values that come back as what they were: exactly these types, and in their ranges. All others are pickled, as a tuple.
"""

# columns.pxd beside this module gives `packed` its C signature, with which Cython compiles it. When you change the
# signature, change both files and check with `make compiled`.

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

__all__ = ["Column", "packed", "unpacked"]

#: A column on its way: texts are joined, ints and floats are arrays of 64 bits.
Column: TypeAlias = "str | array[Any] | tuple[Any, ...]"

#: Between two texts: no other character is so seldom part of one.
_BETWEEN = "\x1f"


def packed(values: Sequence[Any]) -> Column:
    r"""The column of these values.

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
    """The values of a column.

    >>> [list(unpacked(packed(values))) for values in (["to", "", "be"], [1, -(2**40)], [0.5], [None, "x"])]
    [['to', '', 'be'], [1, -1099511627776], [0.5], [None, 'x']]
    """
    return column.split(_BETWEEN) if type(column) is str else column
