"""Recognises pairs of a key and a value, and chooses a key's partition (G24).

Heron uses Python's own ``hash``, which by default differs for strings from process to process. `key_hash` gives the same result
in every process. As with ``hash``, equal keys have equal hashes. As in a dict, 1, 1.0 and True are the same key.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from itertools import cycle
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from stormspark.errors import EmitError, StormsparkError
from stormspark.grouping import CustomStreamGrouping, GlobalStreamId, Grouping, GroupingContext
from stormspark.grouping.hashing import value_hash
from stormspark.grouping.repartitioning import ByChooser

__all__ = ["ByFunction", "ByKey", "is_pair", "key_hash"]


def is_pair(element: object) -> bool:
    """Return whether an element is a pair: an iterable of length two that is not a str or bytes.

    >>> is_pair(("word", 1)), is_pair(["word", 1]), is_pair("ab"), is_pair(("word", 1, 2))
    (True, True, False, False)
    """
    if type(element) is tuple:
        return len(element) == 2
    return isinstance(element, Iterable) and not isinstance(element, str | bytes) and _length(element) == 2


def _length(element: Any) -> int | None:
    try:
        return len(element)
    except TypeError:
        return None


@lru_cache(maxsize=1 << 16, typed=True)  # typed: some values with equal hashes can't be compared
def key_hash(key: Any) -> int:
    """Return a number that is the same for equal keys, in every process.

    Raises `ValueNotHashableError` for a key without a stable hash. Use strings or numbers as keys, or tuples or frozen
    dataclasses of strings and numbers. Raises TypeError for a key that Python can't hash.

    >>> key_hash(1) == key_hash(True) == key_hash(1.0), key_hash(("storm", 1)) == key_hash(("storm", 1.0))
    (True, True)
    """
    if isinstance(key, str):
        return crc32(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, numbers.Number | np.bool_):
        return hash(key) if key == key else 0  # noqa: PLR0124 - the hash of NaN depends on its place in memory
    if isinstance(key, bytes):
        return crc32(key)
    if isinstance(key, tuple):
        return _folded(map(key_hash, key))
    if isinstance(key, frozenset):
        return sum(map(key_hash, key))
    if isinstance(key, Enum):
        return crc32(key.name.encode())
    if is_dataclass(key):
        compared = (one.name for one in fields(key) if one.compare)
        return _folded(key_hash(getattr(key, name)) for name in compared)
    return value_hash(key)


def _folded(hashes: Iterable[int]) -> int:
    folded = 1
    for one in hashes:
        folded = (31 * folded + one) & 0xFFFF_FFFF_FFFF_FFFF
    return folded


@dataclass(frozen=True)
class ByKey(Grouping):
    """Sends pairs with equal keys to the same task.

    If ``strict`` is true, the chooser raises `EmitError` for an element that is no pair. Otherwise such elements go to the tasks
    in turn.

    >>> from random import Random
    >>> choose = ByKey().chooser(GroupingContext("map-1", "output", ("_output_",), 1, (4, 5, 6), (), Random(7)))
    >>> choose([("storm", 1)]) == choose([("storm", 2)])
    True
    """

    kind: ClassVar[str] = "key"
    single: ClassVar[bool] = True
    strict: bool = True

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Return a chooser that uses the key's hash. If there is only one target, the chooser does not look at the element."""
        targets, tasks = context.targets, len(context.targets)
        strict, turns = self.strict, cycle(context.targets)
        if tasks == 1:
            (only,) = targets
            return lambda values: only

        def choose(values: Sequence[Any]) -> int:
            element = values[0]
            if is_pair(element):
                try:
                    return targets[key_hash(element[0]) % tasks]
                except (StormsparkError, TypeError, LookupError) as error:
                    raise _refused(context, element, f"{type(error).__name__}: {error}") from error
            if strict:
                raise _refused(context, element, "it must be a pair of a key and a value")
            return next(turns)

        return choose

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ByChooser:
        """Return a layout that runs the chooser over the rows."""
        return ByChooser(self, targets, ints)


def _refused(context: GroupingContext, element: object, why: str) -> EmitError:
    return EmitError(
        f"stage {context.source!r} gives {element!r:.200} of type {type(element).__name__} to stage {context.consumer!r}, which "
        f"groups by keys: {why}"
    )


class ByFunction(CustomStreamGrouping):
    """Sends an element to the partition or the partitions that ``function(element, num_partitions)`` returns."""

    def __init__(self, function: Callable[[Any, int], int | Iterable[int]]) -> None:
        self.function = function

    def prepare(self, context: GroupingContext, stream: GlobalStreamId, target_tasks: list[int]) -> None:
        """Keep the target tasks."""
        self.tasks = target_tasks

    def choose_tasks(self, task: int, values: Sequence[Any]) -> list[int]:
        """Call the function. It returns indexes of partitions, from 0. An index is taken modulo the number of partitions."""
        chosen = self.function(values[0], len(self.tasks))
        return [self.tasks[partition % len(self.tasks)] for partition in _partitions(chosen)]


def _partitions(chosen: Any) -> Iterator[int]:
    for partition in chosen if isinstance(chosen, Iterable) and not isinstance(chosen, str) else (chosen,):
        if not isinstance(partition, numbers.Integral) or isinstance(partition, bool):
            msg = f"a repartition function must return the number of a partition, or several numbers, got {chosen!r:.200}"
            raise TypeError(msg)
        yield int(partition)
