"""Shuffle grouping: every task receives the same share (D5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Any, ClassVar

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import RoundRobin

__all__ = ["ShuffleGrouping", "round_robin"]


def round_robin(tasks: tuple[int, ...], random: Random) -> Callable[[Sequence[Any]], int]:
    """Return a chooser that takes ``tasks`` in turn, in an order that is shuffled once, whatever the values are (D5).

    >>> choose = round_robin((4, 5, 6), Random(1))
    >>> sorted(choose(()) for _ in range(6))
    [4, 4, 5, 5, 6, 6]
    """
    order = list(tasks)
    random.shuffle(order)
    # Storm increments before it reads, so the first pick is position 1 and position 0 comes last.
    next_task = cycle(order[1:] + order[:1]).__next__
    return lambda _values: next_task()


@dataclass(frozen=True)
class ShuffleGrouping(Grouping):
    """The grouping that sends tuples to all tasks in turn, in an order that each sender shuffles once (D5).

    The numbers of tuples that one sender gives to its tasks differ by at most one. Storm does the same with
    ``topology.disable.loadaware.messaging``. Storm's default instead follows load and prefers local tasks
    (`LoadAwareShuffleGrouping`, D6). Heron takes the task ids in ascending order and begins at an arbitrary one, which is just as
    even (D14). For a DataFrame this grouping is ``repartition(n)``.

    >>> context = GroupingContext("lines", "default", ("line",), 1, (4, 5), (), Random(7))
    >>> choose = ShuffleGrouping().chooser(context)
    >>> {choose(["a"]), choose(["a"])}
    {4, 5}
    """

    kind: ClassVar[str] = "shuffle"
    single: ClassVar[bool] = True

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Return a chooser that takes the targets in turn, in an order that is shuffled once with ``context.random``."""
        return round_robin(context.targets, context.random)

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> RoundRobin:
        """Return a layout with one partition per task. The partitions get the rows in turn."""
        return RoundRobin(len(targets))
