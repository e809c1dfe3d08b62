"""Global grouping: one task gets the whole stream (D10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import SinglePartition

__all__ = ["GlobalGrouping"]


@dataclass(frozen=True)
class GlobalGrouping(Grouping):
    """The grouping that sends each tuple to the task with the lowest id (D10).

    >>> from random import Random
    >>> context = GroupingContext("counts", "default", ("word", "n"), 1, (4, 5, 6), (), Random(7))
    >>> GlobalGrouping().chooser(context)(["a", 1])
    4
    """

    kind: ClassVar[str] = "global"
    single: ClassVar[bool] = True

    def candidates(self, targets: tuple[int, ...], local_targets: tuple[int, ...]) -> tuple[int, ...]:
        """Return the lowest task only."""
        return targets[:1]

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Return a function that always chooses the lowest target."""
        lowest = context.targets[0]
        return lambda _values: lowest

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> SinglePartition:
        """Return a layout with all rows in one partition, that of the lowest task."""
        return SinglePartition()
