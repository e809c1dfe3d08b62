"""Load-aware shuffle: Storm's default shuffle, which prefers local tasks and avoids tasks that lag behind (D6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar

from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import ByChooser

__all__ = ["LoadAwareShuffleGrouping", "mean_load"]

_MOST_WEIGHT = 100
#: A load that exceeds the least load by at most this much counts as the least.
_TOLERANCE = 0.05
#: At each refresh, the weight of a task within the tolerance grows by the first number, and that of any other task falls by the
#: second. So a task loses its tuples quickly and gets them back slowly.
_GAIN, _LOSS = 1, 10
_LEAST_SLOTS = 1000
_SLOTS_A_TASK = 5


@dataclass(frozen=True)
class LoadAwareShuffleGrouping(Grouping):
    """The grouping that prefers targets in the sender's worker, and among the targets in use those with less load (D6).

    Only the local targets are used while their mean load is at most ``topology.localityaware.higher.bound`` (0.8). Above that
    load all targets are used, until the mean load of the local ones is below ``topology.localityaware.lower.bound`` (0.2), and
    that of all is not above the higher bound. Tuples go round a ring of max(1000, 5n) slots for n targets. Each target in use has
    a share of the slots in proportion to its weight. At each refresh of the loads, the weight of a target within 0.05 of the
    least load grows by 1, up to 100. The weight of any other target in use falls by 10, down to 0. Between the two scopes, local
    targets and all targets, Storm has two more: the targets of a host and those of a rack. stormspark has only the first and the
    last scope.

    With ``stay_local``, remote targets are used only if there is no local one. That is Storm's load-aware form of a
    local-or-shuffle grouping (D7).

    >>> from random import Random
    >>> context = GroupingContext("lines", "default", ("line",), 1, (4, 5, 6), (5,), Random(7))
    >>> choose = LoadAwareShuffleGrouping().chooser(context)
    >>> {choose(["a"]) for _ in range(1000)}
    {5}
    >>> choose.refresh_load({4: 0.5, 5: 0.9})
    >>> {choose(["a"]) for _ in range(1000)}
    {4, 5, 6}
    """

    kind: ClassVar[str] = "load_aware_shuffle"
    single: ClassVar[bool] = True
    stay_local: bool = False

    @property
    def follows_load(self) -> bool:
        """True, always."""
        return True

    def candidates(self, targets: tuple[int, ...], local_targets: tuple[int, ...]) -> tuple[int, ...]:
        """Return all targets; with ``stay_local`` only the local ones, if there are any."""
        return (local_targets or targets) if self.stay_local else targets

    def chooser(self, context: GroupingContext) -> _Ring:
        """Return a ring of the targets in use, which advances by one slot per tuple."""
        return _Ring(self.candidates(context.targets, context.local_targets), context)

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ByChooser:
        """Return a layout that runs the chooser over the rows. In the layout no target is local, and none has a load."""
        return ByChooser(self, targets, ints)

    def describe(self) -> str:
        """Return ``load_aware_shuffle``, or ``local_or_load_aware_shuffle`` with ``stay_local``."""
        return f"local_or_{self.kind}" if self.stay_local else self.kind


def mean_load(tasks: Sequence[int], loads: Mapping[int, float]) -> float:
    """Return the mean load of ``tasks``; a task whose load is unknown counts as 0.

    >>> mean_load((4, 5), {4: 0.5})
    0.25
    """
    return sum(loads.get(task, 0.0) for task in tasks) / len(tasks)


class _Ring:
    """The chooser of one sender: a ring of slots, in which each target in use has slots in proportion to its weight."""

    def __init__(self, targets: tuple[int, ...], context: GroupingContext) -> None:
        self._targets = targets
        self._local = context.local_targets
        self._in_use = context.local_targets or targets
        self._higher_bound = context.higher_bound
        self._lower_bound = context.lower_bound
        self._random = context.random
        self._weights = dict.fromkeys(targets, _MOST_WEIGHT)
        self._next: Callable[[], int]
        self._lay_out()

    def __call__(self, values: Sequence[Any]) -> int:
        return self._next()

    def refresh_load(self, loads: Mapping[int, float]) -> None:
        """Choose the targets in use again, then adjust their weights."""
        in_use = self._choose_scope(loads)
        changed = in_use != self._in_use
        if changed:
            self._in_use = in_use
            self._weights = dict.fromkeys(self._targets, _MOST_WEIGHT)
        tolerated = min(loads.get(task, 0.0) for task in in_use) + _TOLERANCE
        for task in in_use:
            before = self._weights[task]
            spare = loads.get(task, 0.0) > tolerated
            weight = max(0, before - _LOSS) if spare else min(_MOST_WEIGHT, before + _GAIN)
            self._weights[task] = weight
            changed |= weight != before
        # Storm shuffles the same ring again each second. Going on with the old ring deals tuples out just as evenly, and costs
        # nothing.
        if changed:
            self._lay_out()

    def _choose_scope(self, loads: Mapping[int, float]) -> tuple[int, ...]:
        if not self._local or self._local == self._targets:
            return self._targets
        if mean_load(self._in_use, loads) > self._higher_bound:
            return self._targets
        if self._in_use != self._local and mean_load(self._local, loads) >= self._lower_bound:
            return self._targets
        return self._local

    def _lay_out(self) -> None:
        slots = 1 if len(self._targets) == 1 else max(_LEAST_SLOTS, _SLOTS_A_TASK * len(self._targets))
        # The total is never 0: the least loaded target has just gained weight, and all targets start with some weight.
        total = sum(self._weights[task] for task in self._in_use)
        ring: list[int] = []
        for task in self._in_use:
            ring += [task] * int(self._weights[task] / total * slots)
        random = self._random
        while len(ring) < slots:  # Random targets fill the slots that rounding down has left over.
            ring.append(ring[random.randrange(len(ring))])
        random.shuffle(ring)
        self._next = cycle(ring).__next__
