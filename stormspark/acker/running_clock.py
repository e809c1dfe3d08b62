"""The clock of message timeouts. It stands still while the topology can't run, as in an outage or a restart."""

from __future__ import annotations

from math import inf

__all__ = ["RunningClock"]


class RunningClock:
    """A clock that counts the seconds in which a topology was running.

    Time between two batches counts up to ``gap`` seconds, because planning a batch takes about that long. A longer gap is an
    outage, a restart or a pause, and must not fail tuples that nobody could work on (W2, W3). Time inside a batch counts up to
    ``longest`` seconds from one call of `advance` to the next. While a worker is in one long call of user code, it can't tell
    other workers which tuples merely wait. This limit keeps such tuples from timing out.

    >>> clock = RunningClock(gap=1.0)
    >>> clock.begin_batch(100.0); clock.advance(105.0)      # 5 s of work
    5.0
    >>> clock.end_batch(105.0); clock.begin_batch(405.0)    # 5 minutes in which nothing ran
    >>> clock.advance(405.5)
    6.5
    >>> clock = RunningClock(gap=1.0, longest=7.5)
    >>> clock.begin_batch(100.0); clock.advance(120.0)      # one call took 20 s
    7.5
    """

    __slots__ = ("_gap", "_in_batch", "_last", "_longest", "seconds")

    def __init__(self, gap: float, longest: float = inf) -> None:
        self._gap, self._longest = gap, longest
        self._last: float | None = None
        self._in_batch = False
        self.seconds = 0.0

    def begin_batch(self, now: float) -> None:
        """Begin a batch at ``now`` (monotonic seconds)."""
        # If a worker was lost, the last batch did not end, and the query was restarted. The time since then is a gap, too.
        if self._last is not None:
            self.seconds += min(max(now - self._last, 0.0), self._gap)
        self._last = now
        self._in_batch = True

    def advance(self, now: float) -> float:
        """Advance to ``now``, a time inside a batch. Return the seconds counted so far.

        Between two batches, or if ``now`` is before the time of the last call, no seconds are added.
        """
        if self._last is not None and self._in_batch:
            self.seconds += min(max(now - self._last, 0.0), self._longest)
            self._last = now
        return self.seconds

    def end_batch(self, now: float) -> None:
        """End the batch at ``now``, the end of its last superstep."""
        self.advance(now)
        self._in_batch = False
