"""Stand-ins for classes of Java and Storm that Flux files use for plain values (K23). They make Python values."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

from stormspark.api import Duration as WindowLength
from stormspark.api import Fields
from stormspark.errors import InvalidTopologyError


class TimeUnit(Enum):
    """A stand-in for Java's TimeUnit. The value of each unit is its length in seconds."""

    NANOSECONDS = 1e-9
    MICROSECONDS = 1e-6
    MILLISECONDS = 1e-3
    SECONDS = 1.0
    MINUTES = 60.0
    HOURS = 3600.0
    DAYS = 86400.0


def fields(names: Sequence[str]) -> Fields:
    """Stand in for the constructor of Storm's Fields. It takes a list, and never a single string."""
    return Fields(names)


def values(*items: Any) -> tuple[Any, ...]:
    """Stand in for the constructor of Storm's Values. Returns the values of a tuple."""
    return items


class WindowDuration(WindowLength):
    """A window's length, given in one of Java's time units. The class also has the static methods of `stormspark.Duration`.

    >>> WindowDuration(5, TimeUnit.SECONDS).value
    5000
    """

    def __init__(self, length: int, unit: TimeUnit = TimeUnit.MILLISECONDS) -> None:
        super().__init__(round(length * unit.value * 1000))


class Map(dict[str, Any]):
    """A mapping with Java's setters. It also stands for ``java.util.Properties`` and for Storm's ``Config``."""

    def put(self, key: str, value: Any) -> None:
        """Set one value."""
        self[key] = value

    def set_property(self, key: str, value: Any) -> None:
        """Set one value."""
        self[key] = value

    def put_all(self, other: Mapping[str, Any]) -> None:
        """Set several values."""
        self.update(other)


class List(list[Any]):
    """A list with Java's methods."""

    def __init__(self, items: list[Any] | int = 0) -> None:
        super().__init__(() if isinstance(items, int) else items)  # Java takes a number as the capacity

    def add(self, item: Any) -> None:
        """Append one item."""
        self.append(item)

    def add_all(self, items: Iterable[Any]) -> None:
        """Append several items."""
        self.extend(items)


class Set(set[Any]):
    """A set with Java's methods."""

    def __init__(self, items: list[Any] | int = 0) -> None:
        super().__init__(() if isinstance(items, int) else items)

    def add_all(self, items: Iterable[Any]) -> None:
        """Add several items."""
        self.update(items)


class Arrays:
    """A stand-in for ``java.util.Arrays``, with the only method that Flux files use."""

    @staticmethod
    def as_list(*items: Any) -> list[Any]:
        """Return the arguments as a list."""
        return list(items)


class Pattern:
    """A stand-in for ``java.util.regex.Pattern``, with its static method ``compile``."""

    #: Java's numbers for flags, and what Python has for them.
    _FLAGS = ((2, re.IGNORECASE), (4, re.VERBOSE), (8, re.MULTILINE), (32, re.DOTALL))
    #: Java's flags for Unicode in upper and lower case, and in classes such as ``\\w``. In Python both are so without a flag.
    _UNICODE = 64 | 256

    @staticmethod
    def compile(pattern: str, flags: int = 0) -> re.Pattern[str]:
        """Compile ``pattern`` as a regular expression of Python. Users must adapt Java's own syntax.

        Raises `InvalidTopologyError` for flags that Python does not have.

        >>> Pattern.compile("click.*", 2).flags == re.compile("click.*", re.IGNORECASE).flags
        True
        """
        left, meant = flags & ~Pattern._UNICODE, re.NOFLAG
        for number, flag in Pattern._FLAGS:
            if left & number:
                left, meant = left & ~number, meant | flag
        if left:
            msg = (
                f"the flags {flags} of Pattern.compile({pattern!r}, ...) contain {left}, which Python does not have: use "
                f"only CASE_INSENSITIVE (2), COMMENTS (4), MULTILINE (8), DOTALL (32), UNICODE_CASE (64) and "
                f"UNICODE_CHARACTER_CLASS (256)"
            )
            raise InvalidTopologyError(msg)
        return re.compile(pattern, meant)


class Duration:
    """A stand-in for ``java.time.Duration``. Its static methods return a `datetime.timedelta`.

    >>> Duration.of_hours(10), Duration.parse("PT1M30S")
    (datetime.timedelta(seconds=36000), datetime.timedelta(seconds=90))
    """

    ZERO = timedelta()
    _ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)

    @staticmethod
    def of_days(n: int) -> timedelta:
        """Return ``n`` days."""
        return timedelta(days=n)

    @staticmethod
    def of_hours(n: int) -> timedelta:
        """Return ``n`` hours."""
        return timedelta(hours=n)

    @staticmethod
    def of_minutes(n: int) -> timedelta:
        """Return ``n`` minutes."""
        return timedelta(minutes=n)

    @staticmethod
    def of_seconds(n: int) -> timedelta:
        """Return ``n`` seconds."""
        return timedelta(seconds=n)

    @staticmethod
    def of_millis(n: int) -> timedelta:
        """Return ``n`` milliseconds."""
        return timedelta(milliseconds=n)

    @staticmethod
    def parse(text: str) -> timedelta:
        """Parse a duration in the format of ISO 8601, such as PT8H6M12.5S."""
        found = Duration._ISO.fullmatch(text)
        if found is None or not any(found.groups()):
            msg = f"a duration must be written like PT8H6M12.5S, got {text!r}"
            raise InvalidTopologyError(msg)
        days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def path(name: str) -> Path:
    """Stand in for the constructor of ``java.io.File``."""
    return Path(name)


class Boxed:
    """A stand-in for a Java class such as Integer, whose objects are plain values in Python.

    The constructor and ``valueOf`` both make a value from a string or from another value.

    >>> Int("7"), Bool.value_of("TRUE"), Text(), Float(3)
    (7, True, '', 3.0)
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *value: Any) -> Any:
        """Stand in for Java's constructor."""
        return self._make(*value)

    def value_of(self, value: Any) -> Any:
        """Stand in for Java's static method ``valueOf``."""
        return self._make(value)


def _boolean(value: str | bool) -> bool:
    return str(value).lower() == "true"


Text, Int, Float, Bool = Boxed(str), Boxed(int), Boxed(float), Boxed(_boolean)
Decimal = Boxed(decimal.Decimal)
