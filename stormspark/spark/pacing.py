"""Pacing: how long to wait between two micro-batches in which nothing happens.

A batch costs about 0.2 s of CPU, whether or not anything happens in it. Without pauses, a topology that waits for work would use
all the CPU that it can get. Storm has the same problem: its executors spin (B12). So batches follow each other at once while
something happens, and ever more slowly while nothing does.

A pause does not delay work that workers can find themselves. Workers look at their spouts and timers during a pause, and report
when there is something to do (`Worker.stirs`). But only Spark sees new rows of a source, and only before a batch. And if batches
are transactions, spouts may only emit inside a batch. In these two cases the longest pause is shorter. It is also shorter while a
tree is open, because message timeouts count at most one second of the time between two batches (E10). And it is shorter while
work goes on outside of a worker, such as in a child process of a component.
"""

from __future__ import annotations

from typing import Self

from stormspark.plan.physical import PhysicalPlan

__all__ = ["Pacing"]

#: A pause is at most this share of the time since something last happened, so that a short silence leads only to short pauses.
#: The second share is for topologies in which only a batch can find out that there is work. In such a topology, work that comes
#: after t seconds of silence waits for at most a quarter of t.
_SHARE, _SHARE_BLIND = 1.0, 0.25
#: In a topology in which only a batch can find out that there is work, the work never waits for longer than this, in seconds.
_LONGEST_BLIND = 0.25
#: The longest pause while a tree is open or work goes on outside of workers. Together with the time that Spark needs to begin the
#: next batch, this pause is shorter than one second. Message timeouts count a gap of up to one second in full.
_LONGEST_UNDER_WAY = 0.75


class Pacing:
    """The pauses between the batches of one topology. This class reads no clock; all times are in seconds.

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
        """Return the pacing for a topology. With ``available_now`` or a trigger interval, there are no pauses."""
        if available_now or plan.settings.trigger_interval_ms:
            return cls(0.0, _SHARE)
        longest = plan.settings.idle_pause_ms / 1000
        if plan.exactly_once or plan.sources:
            return cls(min(longest, _LONGEST_BLIND), _SHARE_BLIND)
        return cls(longest, _SHARE)

    def pause_after(self, now: float, *, idle: bool, at_rest: bool = True) -> float:
        """Return how long to wait after a batch that ended at ``now``.

        ``idle`` says that nothing happened in the batch. ``at_rest`` says that no tree is open, and that no work goes on outside
        of workers.
        """
        if not idle or self._quiet_since is None:
            self._quiet_since = now
        longest = self._longest if at_rest else min(self._longest, _LONGEST_UNDER_WAY)
        return round(min((now - self._quiet_since) * self._share, longest), 3)
