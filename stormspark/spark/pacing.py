"""How long to wait between two micro-batches in which nothing happens.

A batch costs the same whether anything happens in it or not, some 0.2 s of CPU, so a topology that waits for work would use all
the CPU it can get. Storm has the same trouble: its executors spin (B12). So batches follow each other at once while
something happens, and ever more slowly while nothing does.

Nobody waits for that where workers see themselves that there is something to do: they look at their spouts and timers meanwhile,
and say so (`Worker.stirs`). Rows of a source are seen by Spark alone, and only before a batch, and the spouts of
transactions may only be asked inside one: there the longest pause is shorter. So it is where a tree is open, because its
timeout counts a second of what is between two batches (E10), and where something is at work outside of its worker.
"""

from __future__ import annotations

from typing import Self

from stormspark.plan.physical import PhysicalPlan

__all__ = ["Pacing"]

#: A pause is at most this share of the time since something happened, so that bursts and short silences change nothing. Where
#: only a batch can tell that there is something to do, what comes after t seconds of silence waits for a quarter of t at most ...
_SHARE, _SHARE_BLIND = 1.0, 0.25
#: ... and never longer than this, in seconds.
_LONGEST_BLIND = 0.25
#: Where something is under way: with the time until a batch begins that is less than the gap that timeouts count.
_LONGEST_UNDER_WAY = 0.75


class Pacing:
    """Says how long to wait; knows no clock. Seconds.

    >>> pacing = Pacing(longest=5.0, share=1.0)
    >>> pacing.pause_after(10.0, idle=False)
    0.0
    >>> [pacing.pause_after(now, idle=True) for now in (10.2, 10.6, 11.4)]
    [0.2, 0.6, 1.4]
    >>> pacing.pause_after(20.1, idle=True), pacing.pause_after(30.1, idle=True, at_rest=False)
    (5.0, 0.75)
    >>> pacing.pause_after(40.1, idle=False)
    0.0
    """

    def __init__(self, longest: float, share: float) -> None:
        self._longest, self._share = longest, share
        self._quiet_since: float | None = None

    @classmethod
    def of(cls, plan: PhysicalPlan, *, available_now: bool = False) -> Self:
        """What is right for a topology. One that is to end with its sources' rows, or whose trigger is set, is never held up."""
        if available_now or plan.settings.trigger_interval_ms:
            return cls(0.0, _SHARE)
        longest = plan.settings.idle_pause_ms / 1000
        if plan.exactly_once or plan.sources:
            return cls(min(longest, _LONGEST_BLIND), _SHARE_BLIND)
        return cls(longest, _SHARE)

    def pause_after(self, now: float, *, idle: bool, at_rest: bool = True) -> float:
        """How long to wait after a batch that ended ``now``. ``at_rest``: nothing is under way, in open trees or outside."""
        if not idle or self._quiet_since is None:
            self._quiet_since = now
        longest = self._longest if at_rest else min(self._longest, _LONGEST_UNDER_WAY)
        return round(min((now - self._quiet_since) * self._share, longest), 3)
