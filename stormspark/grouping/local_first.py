"""Local-first grouping: JStorm's shuffle, which leaves the sender's worker only if the targets there have a high load (D7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.load_aware import mean_load
from stormspark.grouping.repartitioning import ByChooser
from stormspark.grouping.shuffle import round_robin

__all__ = ["LocalFirstGrouping"]


@dataclass(frozen=True)
class LocalFirstGrouping(Grouping):
    """The grouping that uses the targets in the sender's worker, in turn, while their mean load is below a bound (D7).

    If their mean load is not below the bound, or if that worker has no target, all targets are used in turn. The bound is
    ``topology.localityaware.higher.bound`` (0.8). Unlike the load-aware shuffle, this grouping gives all targets in use the same
    share, and returns to the local targets as soon as their load is below the bound.

    >>> from random import Random
    >>> context = GroupingContext("lines", "default", ("line",), 1, (4, 5, 6), (5,), Random(7))
    >>> choose = LocalFirstGrouping().chooser(context)
    >>> [choose(["a"]) for _ in range(3)]
    [5, 5, 5]
    >>> choose.refresh_load({5: 0.9})
    >>> sorted(choose(["a"]) for _ in range(3))
    [4, 5, 6]
    """

    kind: ClassVar[str] = "local_first"
    single: ClassVar[bool] = True

    @property
    def follows_load(self) -> bool:
        """Always true."""
        return True

    def chooser(self, context: GroupingContext) -> _LocalFirst:
        """Return a chooser that takes the local targets in turn, or all targets in turn."""
        return _LocalFirst(context)

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ByChooser:
        """Return a layout that runs the chooser over the rows. No target is local there, so all targets are chosen in turn."""
        return ByChooser(self, targets, ints)


class _LocalFirst:
    """The chooser of one sender: a round robin over its local targets, and another one over all targets."""

    def __init__(self, context: GroupingContext) -> None:
        self._local = context.local_targets
        self._bound = context.higher_bound
        self._anywhere = round_robin(context.targets, context.random)
        self._nearby = round_robin(self._local, context.random) if self._local else self._anywhere
        self._choose = self._nearby

    def __call__(self, values: Sequence[Any]) -> int:
        return self._choose(values)

    def refresh_load(self, loads: Mapping[int, float]) -> None:
        """Use the local targets while their mean load is below the bound, else all targets."""
        if self._local:
            self._choose = self._nearby if mean_load(self._local, loads) < self._bound else self._anywhere
