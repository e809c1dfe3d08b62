"""A gate with a high and a low mark, as in Heron's stream manager (F9, F10)."""

from __future__ import annotations

__all__ = ["WaterMarks"]


class WaterMarks:
    """A gate that closes above ``high`` and opens again below ``low``. Between the two marks it stays as it is.

    Raises ValueError if the low mark is negative or not below the high mark.

    >>> gate = WaterMarks(high=100, low=50)
    >>> [gate.observe(level) for level in (80, 101, 80, 49, 80)]
    [False, True, True, False, False]
    """

    __slots__ = ("closed", "high", "low")

    def __init__(self, high: float, low: float) -> None:
        if not 0 <= low < high:
            msg = f"the low mark must be below the high mark, got low={low}, high={high}"
            raise ValueError(msg)
        self.high = high
        self.low = low
        self.closed = False

    def observe(self, level: float) -> bool:
        """Open or close the gate for a newly read level (W1); return whether it is closed."""
        if level > self.high:
            self.closed = True
        elif level < self.low:
            self.closed = False
        return self.closed
