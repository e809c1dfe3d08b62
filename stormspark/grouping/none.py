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
    """Send each tuple to a task drawn at random, each as likely as any other (D8).

    Storm does this; Heron shuffles. The shares are even only on average, whereas `ShuffleGrouping` is even to within one
    tuple.

    >>> from random import Random
    >>> context = GroupingContext("lines", "default", ("line",), 1, (4, 5), (), Random(7))
    >>> choose = NoneGrouping().chooser(context)
    >>> [choose(["a"]) for _ in range(6)]
    [4, 4, 5, 4, 5, 4]
    """

    kind: ClassVar[str] = "none"
    single: ClassVar[bool] = True

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Draw a target with ``context.random``."""
        targets, number, draw = context.targets, len(context.targets), context.random.random
        return lambda _values: targets[int(draw() * number)]

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ByChooser:
        """Draw a partition for each row."""
        return ByChooser(self, targets, ints)
