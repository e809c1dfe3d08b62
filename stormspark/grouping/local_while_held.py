"""Local-while-held grouping: an even grouping, such as shuffle, that stays in the sender's worker while max spout pending holds
its spouts back (B4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import Repartitioning
from stormspark.grouping.shuffle import round_robin

__all__ = ["LocalWhileHeldGrouping", "without_wrapping"]


@dataclass(frozen=True)
class LocalWhileHeldGrouping(Grouping):
    """The grouping that either acts like ``otherwise``, or takes the targets in the sender's worker in turn (B4).

    `LocalWhileHeld.stay_local` switches from one to the other. The choices of ``otherwise`` must not depend on a tuple's values.
    A tree that crosses workers ends with its round at the earliest, and a tree that stays in its worker may end at once. So local
    targets are better while max spout pending holds back ``spouts``, the spouts that the tuples come from. A phase of planning
    makes this grouping, and users do not. If the sender's worker has no target, this grouping always acts like ``otherwise``.

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
        """Return the tasks that ``otherwise`` may choose."""
        return self.otherwise.candidates(targets, local_targets)

    def chooser(self, context: GroupingContext) -> LocalWhileHeld:
        """Return a chooser that begins with all targets."""
        return LocalWhileHeld(self.otherwise.chooser(context), context)

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> Repartitioning:
        """Return the layout of ``otherwise``, because a DataFrame has no spouts that could be held back."""
        return self.otherwise.repartitioning(targets, ints)

    def describe(self) -> str:
        """Return the description of ``otherwise``, with the addition that tuples may stay local."""
        return f"{self.otherwise.describe()}, local while held"


def without_wrapping(grouping: Grouping) -> Grouping:
    """Return the grouping that the user declared. Planning may have wrapped it into a `LocalWhileHeldGrouping`."""
    return grouping.otherwise if isinstance(grouping, LocalWhileHeldGrouping) else grouping


class LocalWhileHeld:
    """The chooser of one sender. It calls the chooser ``anywhere``, or takes the sender's local targets in turn."""

    def __init__(self, anywhere: Callable[[Sequence[Any]], int], context: GroupingContext) -> None:
        local = context.local_targets
        self._anywhere = anywhere
        self._nearby = round_robin(local, context.random) if local else anywhere
        self._choose = anywhere

    def __call__(self, values: Sequence[Any]) -> int:
        return self._choose(values)

    def stay_local(self, stay: bool) -> None:
        """From now on take the local targets if ``stay`` is true, else choose as ``anywhere`` does."""
        self._choose = self._nearby if stay else self._anywhere
