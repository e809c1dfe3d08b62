"""Local-or-shuffle grouping: a tuple stays in the sender's worker if that worker has a target (D7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import Stay
from stormspark.grouping.shuffle import round_robin

__all__ = ["LocalOrShuffleGrouping"]


@dataclass(frozen=True)
class LocalOrShuffleGrouping(Grouping):
    """The grouping that shuffles among the targets in the sender's worker, or among all targets if that worker has none (D7).

    For a DataFrame there is no exchange: each row stays in its partition.

    >>> from random import Random
    >>> context = GroupingContext("lines", "default", ("line",), 1, (4, 5, 6), (5,), Random(7))
    >>> choose = LocalOrShuffleGrouping().chooser(context)
    >>> choose(["a"]), choose(["b"])
    (5, 5)
    """

    kind: ClassVar[str] = "local_or_shuffle"
    single: ClassVar[bool] = True

    def candidates(self, targets: tuple[int, ...], local_targets: tuple[int, ...]) -> tuple[int, ...]:
        """Return the local targets, or all targets if there is no local one."""
        return local_targets or targets

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Return a chooser that takes the candidates in turn, in an order that is shuffled once with ``context.random``."""
        return round_robin(self.candidates(context.targets, context.local_targets), context.random)

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> Stay:
        """Return the layout that leaves every row in its partition."""
        return Stay()
