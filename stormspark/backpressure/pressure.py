"""Frozen snapshots of what the controller of backpressure knows. They are shown to users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

__all__ = ["BoltPressure", "LimitChange", "Pressure", "SpoutPressure"]


class LimitChange(NamedTuple):
    """A change of a spout's limit, which is for all tasks of the spout together. A ``limit`` of None means no limit.

    ``seconds`` is how long the topology had run when the limit changed.
    """

    seconds: float
    spout: str
    limit: int | None
    #: The bolt that was last at fault; None if the limit is removed, or if no bolt was at fault since the topology began.
    because_of: str | None


@dataclass(frozen=True)
class SpoutPressure:
    """A spout as the controller sees it.

    ``limit`` is per round, for all of the spout's tasks together; None means no limit. ``throttled_by`` is the bolt that limits
    the spout now, or `controller.OPEN_TREES`; None if nothing does. ``throttled_ms`` says for how long each such cause has
    limited the spout (F6, F11).
    """

    limit: int | None
    throttled_by: str | None
    throttled_ms: Mapping[str, float]
    #: Max spout pending: how many open trees each of its tasks may have; None if it has no such limit, or acking is off.
    max_pending: int | None = None
    #: The smallest max spout pending that would not slow the spout; see `PendingCost`. None if nothing is known.
    unfelt_max_pending: int | None = None


@dataclass(frozen=True)
class BoltPressure:
    """A bolt's waiting tuples, its high water marks, and whether it is above one of them.

    A tuple in a call that is under way does not wait. But it counts against the marks, so ``above`` counts it, too.
    """

    queued: int
    queued_bytes: int
    high_mark: float
    high_mark_bytes: float
    #: The seconds that the busiest of the bolt's workers needs for the bolt's waiting tuples. Until a call of the bolt has ended,
    #: this is a lower bound.
    backlog_seconds: float
    above: bool
    #: For how many seconds the first call of one of the bolt's tasks has lasted; 0 if no first call is under way.
    first_call_secs: float = 0.0


@dataclass(frozen=True)
class Pressure:
    """All spouts and bolts at one moment."""

    spouts: Mapping[str, SpoutPressure]
    bolts: Mapping[str, BoltPressure]
    #: How many times a limit was set, changed or removed.
    limit_changes: int
    #: The last changes of limits.
    history: Sequence[LimitChange]

    def after(self, earlier: Pressure) -> Pressure:
        """Return this with the totals of an earlier controller of the same topology added.

        >>> one = Pressure({"lines": SpoutPressure(None, None, {"count": 20.0})}, {}, 2, ())
        >>> both = one.after(one)
        >>> both.spouts["lines"].throttled_ms, both.limit_changes
        ({'count': 40.0}, 4)
        """
        spouts = {}
        for name, spout in self.spouts.items():
            totals = Counter(spout.throttled_ms)
            if name in earlier.spouts:
                totals.update(earlier.spouts[name].throttled_ms)
            spouts[name] = replace(spout, throttled_ms=dict(totals))
        return replace(self, spouts=spouts, limit_changes=self.limit_changes + earlier.limit_changes)
