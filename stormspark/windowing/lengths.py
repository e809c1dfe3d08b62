"""The length and the slide of a window: a number of tuples, or a duration (C23)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Self, TypeAlias

from stormspark.errors import InvalidTopologyError

__all__ = ["Count", "Duration", "Length", "as_duration", "as_length"]


@dataclass(frozen=True, order=True)
class Count:
    """A number of tuples; raises `InvalidTopologyError` for less than one.

    >>> Count(10).value
    10
    """

    value: int

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 1:
            msg = f"a window's Count must be a positive integer, got {self.value!r}"
            raise InvalidTopologyError(msg)

    def __str__(self) -> str:
        return f"Count({self.value})"


@dataclass(frozen=True, order=True)
class Duration:
    """A duration in milliseconds; raises `InvalidTopologyError` for a negative number.

    Wherever a duration is expected, a `datetime.timedelta` will do, too.

    >>> Duration(1500) == Duration.of(1500) == Duration.seconds(1.5)
    True
    >>> Duration.minutes(2).value, Duration.hours(1).value, Duration.days(1).value
    (120000, 3600000, 86400000)
    """

    value: int

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            msg = f"a Duration must be a number of milliseconds that is not negative, got {self.value!r}"
            raise InvalidTopologyError(msg)

    @classmethod
    def of(cls, milliseconds: int) -> Self:
        """Return a duration of this many milliseconds, as in Storm."""
        return cls(milliseconds)

    @classmethod
    def seconds(cls, n: float) -> Self:
        """Return a duration of ``n`` seconds, to the nearest millisecond."""
        return cls(_milliseconds(n, 1000))

    @classmethod
    def minutes(cls, n: float) -> Self:
        """Return a duration of ``n`` minutes."""
        return cls(_milliseconds(n, 60_000))

    @classmethod
    def hours(cls, n: float) -> Self:
        """Return a duration of ``n`` hours."""
        return cls(_milliseconds(n, 3_600_000))

    @classmethod
    def days(cls, n: float) -> Self:
        """Return a duration of ``n`` days."""
        return cls(_milliseconds(n, 86_400_000))

    def __str__(self) -> str:
        return f"Duration({self.value} ms)"


Length: TypeAlias = Count | Duration


def _milliseconds(n: float, unit: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int | float) or not math.isfinite(n):
        msg = f"a Duration must be created with a finite number, got {n!r}"
        raise InvalidTopologyError(msg)
    return round(n * unit)


def as_length(value: object, name: str) -> Length:
    """Return ``value`` as a length that a window can have. Raises `InvalidTopologyError`, whose message calls the value ``name``.

    >>> as_length(timedelta(seconds=2), "length")
    Duration(value=2000)
    """
    if isinstance(value, Count):
        return value
    return as_duration(value, name, "Count(n), a Duration or a datetime.timedelta", least=1)


def as_duration(
    value: object, name: str, wanted: str = "a Duration or a datetime.timedelta", *, least: int = 0
) -> Duration:
    """Return ``value`` as a duration of at least ``least`` milliseconds.

    Raises `InvalidTopologyError`, whose message calls the value ``name``.
    """
    if isinstance(value, timedelta):
        milliseconds = round(value / timedelta(milliseconds=1))
    elif isinstance(value, Duration):
        milliseconds = value.value
    else:
        plain = type(value) in (int, float)
        hint = (
            f"; did you mean Duration.seconds({value}) or Duration({value}), in milliseconds?"
            if plain
            else ""
        )
        msg = f"{name} must be {wanted}, got {value!r} of type {type(value).__name__}{hint}"
        raise InvalidTopologyError(msg)
    if milliseconds < least:
        msg = f"{name} must be {'positive' if least else 'not negative'}, got {value!r}"
        raise InvalidTopologyError(msg)
    return Duration(milliseconds)
