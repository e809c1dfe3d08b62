"""Formats numbers for people: short, and exact enough to compare."""

from __future__ import annotations

__all__ = ["level", "three_digits"]

_MEGABYTE = 1024 * 1024


def three_digits(number: float) -> str:
    """Format a latency with enough digits to compare it, whether it is microseconds or seconds.

    >>> [three_digits(number) for number in (0.00213, 0.5, 3.14159, 42.123, 1234.5)]
    ['0.002', '0.500', '3.14', '42.1', '1,234']
    """
    digits = 3 if number < 1 else 2 if number < 10 else 1 if number < 100 else 0
    return f"{number:,.{digits}f}"


def level(queued_bytes: float, mark: float) -> str:
    """Format queued bytes against their water mark.

    >>> level(102_760_448, 104_857_600), level(130_000, 104_857_600), level(700_000, 1_000_000)
    ('98 MB of 100', '0.12 MB of 100', '0.67 MB of 0.95')
    """
    return f"{_megabytes(queued_bytes)} MB of {_megabytes(mark)}"


def _megabytes(size: float) -> str:
    megabytes = size / _MEGABYTE
    return f"{megabytes:,.0f}" if megabytes >= 10 else f"{megabytes:.2g}"
