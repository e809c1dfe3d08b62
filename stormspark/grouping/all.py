"""All grouping: every task gets a copy (D9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import CopyToEach

__all__ = ["AllGrouping"]


@dataclass(frozen=True)
class AllGrouping(Grouping):
    """The grouping that sends each tuple to every task (D9). The copies are separate edges of the tuple's tree.

    >>> from random import Random
    >>> context = GroupingContext("rules", "default", ("rule",), 1, (4, 5, 6), (), Random(7))
    >>> AllGrouping().chooser(context)(["a"])
    (4, 5, 6)
    """

    kind: ClassVar[str] = "all"
    single: ClassVar[bool] = False

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], tuple[int, ...]]:
        """Choose all targets, always."""
        targets = context.targets
        return lambda _values: targets

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> CopyToEach:
        """Return a layout with one partition per task. Each partition has every row."""
        return CopyToEach(len(targets))
