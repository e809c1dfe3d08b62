"""The allowance of a spout's task. It says how many tuples the task may still emit in this round, and why the task stops before
the round ends.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import inf

from stormspark.metrics import TaskCounters

__all__ = ["UNLIMITED", "RoundAllowance", "StopReason"]

#: The number that means "no limit". No spout ever emits so many tuples.
UNLIMITED = 1 << 62


class StopReason(Enum):
    """The reason why a spout is not called for a while. The value is the name of the counter that adds up these pauses (F6)."""

    #: The spout is not active.
    INACTIVE = "skipped_inactive_ms"
    #: The spout has emitted as many tuples as it may in this round.
    LIMIT = "skipped_backpressure_ms"
    #: As many trees are open as max spout pending allows.
    MAX_PENDING = "skipped_max_spout_ms"


class RoundAllowance:
    """The allowance of one task. Times are seconds of the worker's clock.

    >>> counters = TaskCounters()
    >>> allowance = RoundAllowance(counters)
    >>> allowance.begin(100); allowance.use(100)
    >>> allowance.stop(StopReason.LIMIT, now=1.0); allowance.go_on(now=1.5)
    >>> counters.skipped_backpressure_ms, allowance.hungry, allowance.limited
    (500.0, True, True)
    """

    def __init__(self, counters: TaskCounters) -> None:
        self._counters = counters
        #: How many tuples the spout may still emit in this round.
        self.left = UNLIMITED
        #: How many tuples the spout has emitted since the last `take_emitted`.
        self.emitted = 0
        #: Whether the spout has emitted anything in this round.
        self.used = False
        #: `hungry`: whether the spout had more to emit when it was stopped in this round, except by max spout pending. `limited`:
        #: whether its limit has stopped it.
        self.hungry = self.limited = False
        #: Whether max spout pending stopped the spout in this round.
        self.held = False
        #: Why the spout is not called now, and since when; None while the spout is called.
        self._stopped: tuple[StopReason, float] | None = None
        #: Until when the spout was called, at a given time at the latest. A call of a spout with a thread of its own may go on
        #: after `stop`, and that time is no pause.
        self.called_until: Callable[[float], float] = lambda now: -inf

    def begin(self, limit: int | None) -> None:
        """Begin a round, in which the spout may emit ``limit`` tuples, or any number of tuples if ``limit`` is None."""
        self.left = UNLIMITED if limit is None else limit
        self.hungry = self.limited = self.held = self.used = False

    def use(self, emitted: int) -> None:
        """Count tuples that the spout has emitted. A call that emits several tuples may exceed the limit (B4)."""
        self.emitted += emitted
        self.left -= emitted
        self.used |= emitted > 0

    def stop(self, reason: StopReason, now: float) -> None:
        """Remember why the spout is not called from now on, although it may have tuples."""
        if reason is StopReason.LIMIT:
            self.hungry = self.limited = True
        elif reason is StopReason.MAX_PENDING:
            self.hungry = False  # a higher limit would not let the spout emit more
            self.held = True
        self._stopped = reason, now

    def pause(self, now: float) -> None:
        """Remember that max spout pending holds the spout back while the worker waits, but for this moment only.

        The spout may be called again within this round, so `held` and `hungry` do not change.
        """
        if self._stopped is None:
            self._stopped = StopReason.MAX_PENDING, now

    @property
    def is_stopped(self) -> bool:
        """Whether the spout is not called now, for any of the reasons."""
        return self._stopped is not None

    @property
    def waits_for_acks(self) -> bool:
        """Whether max spout pending is why the spout is not called now."""
        return self._stopped is not None and self._stopped[0] is StopReason.MAX_PENDING

    def go_on(self, now: float) -> None:
        """Count the time since `stop`, because the spout is called again."""
        if self._stopped is not None:
            reason, since = self._stopped
            if reason is not StopReason.INACTIVE:
                since = min(max(since, self.called_until(now)), now)
            counters, name = self._counters, reason.value
            setattr(counters, name, getattr(counters, name) + (now - since) * 1000)
            self._stopped = None

    def take_emitted(self) -> int:
        """Return how many tuples were emitted since the last call of this method."""
        emitted, self.emitted = self.emitted, 0
        return emitted
