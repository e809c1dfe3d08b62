"""The rule for when a failed row of a source is emitted again (K4)."""

from __future__ import annotations

from dataclasses import dataclass

from stormspark.errors import InvalidTopologyError

__all__ = ["ExponentialBackoff"]


@dataclass(frozen=True)
class ExponentialBackoff:
    """Storm's KafkaSpoutRetryExponentialBackoff. All times are in seconds.

    The first retry comes after ``initial_delay``. From the second on, the n-th retry comes after ``period`` times 2 to the
    power of n - 1, but after ``max_delay`` at most. After ``max_retries`` retries the row is given up and becomes a dead letter.
    ``max_retries=None`` means that no row is given up.

    >>> backoff = ExponentialBackoff(initial_delay=0, period=1, max_delay=5, max_retries=4)
    >>> [backoff.delay(fails) for fails in range(1, 6)]
    [0, 2.0, 4.0, 5, None]
    """

    initial_delay: float = 0.0
    period: float = 0.002
    max_delay: float = 10.0
    max_retries: int | None = None

    def __post_init__(self) -> None:
        if min(self.initial_delay, self.period, self.max_delay) < 0 or (self.max_retries or 0) < 0:
            msg = f"times and numbers of retries must not be negative, got {self!r}"
            raise InvalidTopologyError(msg)

    def delay(self, fails: int) -> float | None:
        """Return the seconds until a row that has failed ``fails`` times is emitted again; None if it is given up."""
        if self.max_retries is not None and fails > self.max_retries:
            return None
        if fails == 1:
            return self.initial_delay
        # The exponent is bounded, because the power would overflow after many fails.
        return min(self.max_delay, self.period * 2.0 ** min(fails - 1, 64))
