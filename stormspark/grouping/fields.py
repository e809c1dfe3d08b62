"""Fields grouping: equal keys go to the same task (D1-D3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Final

from stormspark.errors import InvalidTopologyError, ValueNotHashableError
from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.global_ import GlobalGrouping
from stormspark.grouping.hashing import value_hasher
from stormspark.grouping.key_memo import shared_memo
from stormspark.grouping.repartitioning import ById, SinglePartition

__all__ = ["FieldsGrouping"]

#: Storm's Thrift form of a global grouping is a fields grouping without fields, and the two are the same
#: (A7).
_GLOBAL: Final = GlobalGrouping()


@dataclass(frozen=True, init=False)
class FieldsGrouping(Grouping):
    """Send tuples with equal values in ``fields`` to the same task: the one that Storm sends them to (D1-D3).

    The task is number `fields_task_index` among the targets, so it stays the same while their number does
    (D17). "Equal" is Java's word: 1, 1.0 and True are three keys. ``fields`` is one name, or several in the
    order in which their values are hashed. Without fields, this is the global grouping (A7).

    Raises `InvalidTopologyError` for a field that is named twice or is no string. `chooser` raises it for one
    that the source stream doesn't declare. The chosen function raises `ValueNotHashableError` for a value
    without a stable hash (D2).

    >>> from random import Random
    >>> context = GroupingContext("split", "default", ("word", "n"), 1, (4, 5, 6), (), Random(7))
    >>> choose = FieldsGrouping("word").chooser(context)
    >>> choose(["storm", 1]), choose(["spark", 1]), choose(["storm", 2])
    (6, 4, 6)
    """

    kind: ClassVar[str] = "fields"
    single: ClassVar[bool] = True
    fields: tuple[str, ...]

    def __init__(self, fields: str | Iterable[str]) -> None:
        names = (fields,) if isinstance(fields, str) else tuple(fields)  # "word" is no list of four letters.
        for name in names:
            if not isinstance(name, str):
                msg = f"a fields grouping takes names of fields, got {name!r} of type {type(name).__name__}"
                raise InvalidTopologyError(msg)
            if names.count(name) > 1:
                msg = f"a fields grouping takes each field once, got {name!r} twice in {names!r}"
                raise InvalidTopologyError(msg)
        object.__setattr__(self, "fields", names)

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The grouping's fields."""
        return self.fields

    def candidates(self, targets: tuple[int, ...], local_targets: tuple[int, ...]) -> tuple[int, ...]:
        """All targets; the lowest only where there are no fields (A7)."""
        return targets if self.fields else _GLOBAL.candidates(targets, local_targets)

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Choose the target at Storm's index of the key; the tasks of keys seen before are remembered."""
        if not self.fields:
            return _GLOBAL.chooser(context)
        positions = [_position(field, context) for field in self.fields]
        memo = shared_memo(context.targets, context.ints, len(positions))
        key_of = itemgetter(*positions)

        def choose_uncached(values: Sequence[Any]) -> int:
            try:
                return memo.task_of(key_of(values))
            except ValueNotHashableError as error:
                raise self._placed(error, values, context) from None

        # TypeError: the key holds a list, which no dict looks up, or a value without a stable hash.
        if len(positions) > 1:

            def choose(values: Sequence[Any]) -> int:
                try:
                    return memo[key_of(values)]
                except TypeError:
                    return choose_uncached(values)

        else:
            (position,) = positions

            # One field is the common case, and so it takes half the time.
            def choose(values: Sequence[Any]) -> int:
                try:
                    return memo[values[position]]
                except TypeError:
                    return choose_uncached(values)

        return choose

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ById | SinglePartition:
        """Each row in the partition of its key's index; all in one where there are no fields (A7)."""
        if not self.fields:
            return _GLOBAL.repartitioning(targets, ints)
        return ById(self.fields, len(targets), ints)

    def describe(self) -> str:
        """``fields(word, n)``, or ``global`` where there are no fields (A7).

        >>> FieldsGrouping(["word", "n"]).describe()
        'fields(word, n)'
        """
        return f"fields({', '.join(self.fields)})" if self.fields else _GLOBAL.describe()

    def _placed(
        self, error: ValueNotHashableError, values: Sequence[Any], context: GroupingContext
    ) -> ValueNotHashableError:
        """Say in ``error`` which field of which stream it was."""
        hash_of = value_hasher(context.ints)
        for field in self.fields:
            try:
                hash_of(values[context.fields.index(field)])
            except ValueNotHashableError as error_of_field:
                place = f"field {field!r} of stream {context.stream!r} of {context.source!r}"
                return ValueNotHashableError(f"{place}: {error_of_field}")
        return error


def _position(field: str, context: GroupingContext) -> int:
    """Where ``field`` is among the source stream's fields."""
    if field not in context.fields:
        declared = ", ".join(map(repr, context.fields)) or "no fields"
        msg = (
            f"a fields grouping takes field {field!r} of stream {context.stream!r} of {context.source!r}, "
            f"which declares {declared} only"
        )
        raise InvalidTopologyError(msg)
    return context.fields.index(field)
