"""Decides when a spout's tuples should stay in their workers: mostly while max spout pending holds the spout back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stormspark.backpressure.signals import SpoutLoad, TaskLoad

__all__ = ["LimitedSpout", "LocalPreference"]


class LimitedSpout(NamedTuple):
    """A spout with max spout pending: its tasks, and how many open trees each of them may have."""

    tasks: Sequence[int]
    limit: int


class LocalPreference:
    """One topology's preference for local tasks. ``spouts`` are the spouts with max spout pending. ``lower`` and ``higher`` are
    shares of a round's time.

    A tree that crosses workers ends with its round at the earliest. So if all trees of a spout cross workers, at most
    ``limit x tasks`` of them end per round. And each round takes at least its overhead, even if there is little to do. A tree
    that stays in one worker ends at once. Local tasks are better as long as they can do the work:

    - A spout begins to stay local if its limit holds it back, and all workers together work for at most ``lower`` of the round.
      Then a single worker could do all the work, and the rounds would hardly be longer.
    - It stays local while its limit holds it back, and the busiest worker works for at most ``higher`` of the round.
    - It also stays local while its trees begin faster than they could end if they crossed workers. A round takes at least its
      overhead, so at most ``limit x tasks / overhead`` trees could end per second. Then local tasks are faster, however busy the
      worker is.

    Otherwise the spout's tuples go to all tasks. In this example a round has an overhead of 0.3 s. At first the limit holds the
    spout back. Then its trees stay local, and about 1000 times as many trees end per second. In the end it emits little, so its
    tuples go to all tasks again.

    >>> preference = LocalPreference({"words": LimitedSpout((5, 6), 100)}, lower=0.2, higher=0.8)
    >>> def load(emitted, held): return {task: SpoutLoad(emitted, False, False, held=held) for task in (5, 6)}
    >>> preference.observe(load(100, held=True), 0.32, worked=[0.02, 0.01]); sorted(preference.staying)
    ['words']
    >>> preference.observe(load(300_000, held=False), 1.0, worked=[0.7, 0.7]); sorted(preference.staying)
    ['words']
    >>> preference.observe(load(3, held=False), 0.3, worked=[0.01, 0.01]); sorted(preference.staying)
    []
    """

    def __init__(self, spouts: Mapping[str, LimitedSpout], *, lower: float, higher: float) -> None:
        self._spouts, self._lower, self._higher = spouts, lower, higher
        #: The spouts that max spout pending held back in the last round.
        self.held: frozenset[str] = frozenset()
        #: The spouts whose tuples stay in their workers in the next round, where the grouping allows it.
        self.staying: frozenset[str] = frozenset()

    def observe(self, loads: Mapping[int, TaskLoad], seconds: float, *, worked: Sequence[float]) -> None:
        """Learn from a round that took ``seconds``. ``worked`` says how many seconds each worker worked."""
        held, staying = set(), set()
        for name, spout in self._spouts.items():
            mine = [load for task in spout.tasks if isinstance(load := loads.get(task), SpoutLoad)]
            if is_held := any(load.held for load in mine):
                held.add(name)
            emitted = sum(load.emitted for load in mine)
            if name in self.staying:
                busiest = max(worked, default=0.0)
                overhead = max(seconds - busiest, 0.0)
                stays = (is_held and busiest <= self._higher * seconds) or (
                    emitted * overhead > spout.limit * len(spout.tasks) * seconds
                )
            else:
                stays = is_held and sum(worked) <= self._lower * seconds
            if stays:
                staying.add(name)
        self.held, self.staying = frozenset(held), frozenset(staying)
