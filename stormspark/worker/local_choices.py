"""The choosers that can keep tuples in this worker while max spout pending holds back the spouts of these tuples (B4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormspark.grouping import LocalWhileHeld, LocalWhileHeldGrouping
from stormspark.plan.physical import EdgePlan

__all__ = ["LocalChoices"]


class LocalChoices:
    """All choosers of one worker that can stay local. For each round, the driver says whether they do (`LocalPreference`)."""

    def __init__(self) -> None:
        self._choosers: list[tuple[LocalWhileHeld, frozenset[str]]] = []
        self._staying: frozenset[str] = frozenset()

    def follow(self, edge: EdgePlan, choose: Callable[..., Any]) -> None:
        """From now on, tell ``choose``, a sender's chooser for ``edge``, whether to stay local, if it can."""
        if isinstance(edge.grouping, LocalWhileHeldGrouping) and isinstance(choose, LocalWhileHeld):
            self._choosers.append((choose, frozenset(edge.grouping.spouts)))

    def begin_round(self, staying: frozenset[str]) -> None:
        """Begin a round in which the tuples of the spouts ``staying`` stay local, where the grouping allows it."""
        if staying != self._staying:
            self._staying = staying
            for choose, spouts in self._choosers:
                choose.stay_local(not spouts.isdisjoint(staying))
