"""None grouping: the user has no preference, so tasks are drawn at random (D8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import ByChooser

__all__ = ["NoneGrouping"]


@dataclass(frozen=True)
class NoneGrouping(Grouping):
    """The grouping that sends each tuple to a task drawn at random, each task as likely as any other (D8).

    Storm does the same, but Heron uses a shuffle grouping. The shares of the tasks are equal only on average. With
    `ShuffleGrouping` they differ by at most one tuple per sender.

    >>> from random import Random
    >>> context = GroupingContext("lines", "default", ("line",), 1, (4, 5), (), Random(7))
    >>> choose = NoneGrouping().chooser(context)
    >>> [choose(["a"]) for _ in range(6)]
    [4, 4, 5, 4, 5, 4]
    """

    kind: ClassVar[str] = "none"
    single: ClassVar[bool] = True

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Return a chooser that draws a target with ``context.random``."""
        targets, number, draw = context.targets, len(context.targets), context.random.random
        return lambda _values: targets[int(draw() * number)]

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ByChooser:
        """Return a layout that draws a partition for each row."""
        return ByChooser(self, targets, ints)
