"""A simulated clock, for tests."""

from __future__ import annotations

__all__ = ["SimulatedClock"]


class SimulatedClock:
    """A clock that stands still until `advance` moves it.

    >>> clock = SimulatedClock()
    >>> clock.advance(1.5); clock()
    1.5
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def __call__(self) -> float:
        """Return the seconds that have passed."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass. Raises ValueError for a negative number."""
        if seconds < 0:
            msg = f"time can't go back, got {seconds!r}"
            raise ValueError(msg)
        self._seconds += seconds
