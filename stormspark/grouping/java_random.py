"""``java.util.Random`` in Python: the same numbers for the same seed as in Java (D12)."""

from __future__ import annotations

__all__ = ["JavaRandom"]

_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1
_MOST = (1 << 31) - 1


class JavaRandom:
    """Java's linear congruential generator of 48 bits.

    >>> random = JavaRandom(42)
    >>> [random.next_int(10) for _ in range(5)]
    [0, 3, 8, 4, 0]
    """

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def next_int(self, bound: int) -> int:
        """Return ``nextInt(bound)``: a number from 0 to ``bound`` - 1. ``bound`` is from 1 to 2**31 - 1."""
        bits = self._next_31()
        if bound & (bound - 1) == 0:  # A power of two: the high bits are more random than the low ones.
            return bound * bits >> 31
        # The last values below 2**31 would make some remainders more frequent than others, so skip them.
        while bits - bits % bound > _MOST - (bound - 1):
            bits = self._next_31()
        return bits % bound

    def _next_31(self) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> 17
