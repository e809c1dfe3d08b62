"""Fields grouping: equal keys go to the same task (D1-D3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.global_ import GlobalGrouping
from stormspark.grouping.key import MemoLookup, checked_names
from stormspark.grouping.key_memo import TaskMemo, shared_memo
from stormspark.grouping.repartitioning import ById, SinglePartition

__all__ = ["FieldsGrouping"]

#: A fields grouping without fields is a global grouping, because Storm's Thrift definition writes a global grouping in this way
#: (A7).
_GLOBAL: Final = GlobalGrouping()


@dataclass(frozen=True, init=False)
class FieldsGrouping(Grouping):
    """The grouping that sends tuples with equal values in ``fields`` to one task, which is the task that Storm chooses (D1-D3).

    `fields_task_index` computes the position of a key's task among the targets. So a key's task changes only if the targets
    change (D17). Values are equal if Java considers them equal: 1, 1.0 and True are three keys. ``fields`` is one name, or
    several in the order in which their values are hashed. Without fields, this is the global grouping (A7).

    Raises `InvalidTopologyError` for a field that is named twice or is not a string. `chooser` raises the same error for a field
    that the source stream doesn't declare. The function that `chooser` returns raises `ValueNotHashableError` for a value without
    a stable hash (D2).

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
        object.__setattr__(self, "fields", checked_names(fields, self.kind))

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The grouping's fields."""
        return self.fields

    def candidates(self, targets: tuple[int, ...], local_targets: tuple[int, ...]) -> tuple[int, ...]:
        """Return all targets, or only the lowest if there are no fields (A7)."""
        return targets if self.fields else _GLOBAL.candidates(targets, local_targets)

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Return a chooser that picks the target at the position of the key, and remembers the tasks of earlier keys."""
        if not self.fields:
            return _GLOBAL.chooser(context)
        memo = shared_memo(TaskMemo, context.targets, context.ints, len(self.fields))
        return MemoLookup(memo, self.fields, self.kind, context)

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ById | SinglePartition:
        """Return a layout that puts a row in the partition at its key's position, or all rows in one if there are no fields."""
        if not self.fields:
            return _GLOBAL.repartitioning(targets, ints)
        return ById(self.fields, len(targets), ints)

    def describe(self) -> str:
        """Return ``fields(word, n)``, or ``global`` if there are no fields (A7).

        >>> FieldsGrouping(["word", "n"]).describe()
        'fields(word, n)'
        """
        return f"fields({', '.join(self.fields)})" if self.fields else _GLOBAL.describe()
