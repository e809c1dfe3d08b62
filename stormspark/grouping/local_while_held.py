"""Local-while-held grouping: an even grouping that stays in the worker while max spout pending holds the spouts (B4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import Repartitioning
from stormspark.grouping.shuffle import round_robin

__all__ = ["LocalWhileHeldGrouping"]


@dataclass(frozen=True)
class LocalWhileHeldGrouping(Grouping):
    """The grouping that is ``otherwise``, but takes the targets in the sender's worker, in turn, while it is told so (B4).

    ``otherwise`` must not depend on the values. A tree that crosses workers ends with its round at the earliest, and one that
    stays in its worker ends at once. So while max spout pending holds ``spouts``, whose tuples these are, local targets are
    better. A planning phase makes this grouping, and users do not. Without a local target it is ``otherwise``, always.

    >>> from random import Random
    >>> from stormspark.grouping import ShuffleGrouping
    >>> context = GroupingContext("lines", "default", ("line",), 1, (4, 5, 6), (5,), Random(7))
    >>> choose = LocalWhileHeldGrouping(ShuffleGrouping(), ("lines",)).chooser(context)
    >>> sorted(choose(["a"]) for _ in range(3))
    [4, 5, 6]
    >>> choose.stay_local(True)
    >>> [choose(["a"]) for _ in range(3)]
    [5, 5, 5]
    """

    kind: ClassVar[str] = "local_while_held"
    single: ClassVar[bool] = True
    otherwise: Grouping
    spouts: tuple[str, ...]

    def candidates(self, targets: tuple[int, ...], local_targets: tuple[int, ...]) -> tuple[int, ...]:
        """Return what ``otherwise`` may choose."""
        return self.otherwise.candidates(targets, local_targets)

    def chooser(self, context: GroupingContext) -> LocalWhileHeld:
        """Return a chooser that begins with all targets."""
        return LocalWhileHeld(self.otherwise.chooser(context), context)

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> Repartitioning:
        """Return the layout of ``otherwise``, because no spout is held in a DataFrame."""
        return self.otherwise.repartitioning(targets, ints)

    def describe(self) -> str:
        """Return the name of ``otherwise``, and that it may stay local."""
        return f"{self.otherwise.describe()}, local while held"


class LocalWhileHeld:
    """The chooser of one sender: ``anywhere``, or a round robin over its local targets."""

    def __init__(self, anywhere: Callable[[Sequence[Any]], int], context: GroupingContext) -> None:
        local = context.local_targets
        self._anywhere = anywhere
        self._nearby = round_robin(local, context.random) if local else anywhere
        self._choose = anywhere

    def __call__(self, values: Sequence[Any]) -> int:
        return self._choose(values)

    def stay_local(self, stay: bool) -> None:
        """From now on take the local targets, or all."""
        self._choose = self._nearby if stay else self._anywhere
