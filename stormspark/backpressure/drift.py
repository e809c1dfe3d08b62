"""A test that distinguishes a change from noise: Page's CUSUM test, in both directions."""

from __future__ import annotations

__all__ = ["Drift"]

#: A value that is at most this far from zero is never taken for a change.
_ALLOWED = 0.3
#: An excess is how far a value is above `_ALLOWED`. Excesses are added up, and the excess of a small value is negative, but the
#: sum never falls below zero. Values below zero have a sum of their own. If a sum is more than this number, a change is assumed.
_ENOUGH = 1.4


class Drift:
    """A watch over the logarithm of a ratio that should be 1. Once the watch is sure of a deviation, it returns the size of the
    deviation.

    The watch gets one value per round. A ratio of 5.5 counts as a change at once, a ratio of 2 after four rounds, a ratio of 1.5
    after fourteen, and a ratio of 1.3 never. Noise of 30 % per round (sigma of a lognormal distribution) is mistaken for a change
    less than once in ten thousand rounds.

    >>> drift = Drift()
    >>> [drift.observe(x) for x in (0.4, -0.4, 0.1, -2.3)]
    [None, None, None, -2.3]
    >>> [drift.observe(x) for x in (0.7, 0.7, 0.7, 0.7)]
    [None, None, None, 0.7]
    """

    __slots__ = ("_count", "_excess", "_sum")

    def __init__(self) -> None:
        self._excess = [0.0, 0.0]
        self._sum = [0.0, 0.0]
        self._count = [0, 0]

    def observe(self, x: float) -> float | None:
        """Take the next value. Return the mean of the values since they began to deviate, or ``x`` if it is large enough alone.

        Return None while no change is certain.
        """
        for side, distance in enumerate((x, -x)):
            beyond = distance - _ALLOWED
            if beyond > _ENOUGH:
                self.reset()
                return x
            self._excess[side] += beyond
            if self._excess[side] <= 0:
                self._excess[side], self._sum[side], self._count[side] = 0.0, 0.0, 0
                continue
            self._sum[side] += x
            self._count[side] += 1
            if self._excess[side] > _ENOUGH:
                mean = self._sum[side] / self._count[side]
                self.reset()
                return mean
        return None

    def reset(self) -> None:
        """Forget all earlier values."""
        self.__init__()  # type: ignore[misc]
