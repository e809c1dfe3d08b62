"""The weight of a tuple: about how many bytes its values take, in memory and in a frame.

`sys.getsizeof` of a dict is the size of the dict's table, without the objects in the table. So `sys.getsizeof` is correct for
flat values only. For a container, `weight` looks at a few items and estimates the rest. It has to be fast, because it is called
while tuples are emitted. `exact` pickles tuples that are about to leave, and returns their real size.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import islice
from sys import getsizeof
from typing import Any

import cloudpickle

__all__ = ["exact", "shallow", "weight"]

#: Types whose objects hold no other objects, so that the shallow size is the whole size.
_FLAT = frozenset({int, float, bool, complex, str, bytes, bytearray, type(None)})
#: How many items of a container are weighed, at each depth. The other items are assumed to have the same weight on average.
_ITEMS = (8, 4, 2, 1, 1, 1)


def weight(values: Sequence[Any]) -> int:
    """Estimate how many bytes these values take. The cost of the call does not grow with their size.

    >>> weight(("to", 1)) < 200 and weight(({"key": ["x" * 1000] * 100},)) > 100_000
    True
    """
    total = shallow(values)
    return total if _FLAT.issuperset(map(type, values)) else max(total, sum(_walk(one, 0) for one in values))


def shallow(values: Sequence[Any]) -> int:
    """Return how many bytes these values take by themselves, without the objects that they hold."""
    try:
        return sum(map(getsizeof, values))
    except Exception:  # a user's class may do anything in __sizeof__
        return 0


def _walk(value: Any, depth: int) -> int:
    kind = type(value)
    if kind in _FLAT or depth == len(_ITEMS):
        return getsizeof(value)
    try:
        return max(getsizeof(value), _buffers(value)) + _inside(value, depth)
    except Exception:  # a user's class may do anything in __len__, __iter__ or __sizeof__
        return 0


def _buffers(value: Any) -> int:
    """Return how many bytes the value holds outside of Python's objects. Objects of NumPy, Arrow and others have this number in
    their attribute ``nbytes``.
    """
    size = getattr(value, "nbytes", 0)
    return size if type(size) is int else 0


def _inside(value: Any, depth: int) -> int:
    """Estimate the weight of the items or attributes of ``value``."""
    if isinstance(value, Mapping):
        return _items(list(islice(value.items(), _ITEMS[depth])), len(value), depth, _pair)
    if isinstance(value, list | tuple | Set):
        return _items(list(islice(value, _ITEMS[depth])), len(value), depth, _walk)
    attributes = getattr(value, "__dict__", None)
    if type(attributes) is dict and not isinstance(value, type):
        # More attributes are weighed than items of a container, because attributes are not alike.
        return sum(_walk(one, depth + 1) for one in islice(attributes.values(), 4 * _ITEMS[depth]))
    return 0


def _items(some: list[Any], count: int, depth: int, weigh: Callable[[Any, int], int]) -> int:
    if not some:
        return 0
    return sum(weigh(one, depth + 1) for one in some) * count // len(some)


def _pair(pair: tuple[Any, Any], depth: int) -> int:
    return _walk(pair[0], depth) + _walk(pair[1], depth)


class _Counter:
    """A file that only counts the bytes that are written to it."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: Any) -> int:
        # Pickle passes large objects as they are, without a copy.
        size = memoryview(data).nbytes
        self.size += size
        return size


def exact(tuples: Iterable[Sequence[Any]]) -> list[int]:
    """Return how many bytes each of these tuples adds to a pickle of all of them. An object that several tuples share counts
    once.

    Raises any error of pickling.

    >>> shared = "x" * 1000
    >>> [size // 1000 for size in exact([(shared,), (shared,), ("y" * 2000,)])]
    [1, 0, 2]
    """
    tuples = list(tuples)
    try:
        return _sizes(tuples, pickle.Pickler)
    except (Exception, SystemExit):
        return _sizes(tuples, cloudpickle.Pickler)  # pickles classes of a notebook or a script, too


def _sizes(tuples: Iterable[Sequence[Any]], pickler: Callable[..., pickle.Pickler]) -> list[int]:
    counter = _Counter()
    pickled = pickler(counter, 5)
    sizes = []
    for values in tuples:
        before = counter.size
        pickled.dump(values)
        sizes.append(counter.size - before)
    return sizes
