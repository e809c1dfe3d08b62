"""``hashCode`` of ``java.time``'s classes, for Python's dates and times (D2).

As in `stormspark.grouping.java_hash`, the functions return an int whose low 32 bits are Java's hash. The module uses only
the types of ``datetime`` and never reads the current time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from stormspark.grouping.java_hash import long_hash

__all__ = ["HASHERS", "date_hash", "datetime_hash", "time_hash", "timedelta_hash"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def date_hash(day: date) -> int:
    """Hash a LocalDate: year, month and day, packed."""
    return (day.year & 0xFFFF_F800) ^ ((day.year << 11) + (day.month << 6) + day.day)


def time_hash(moment: time) -> int:
    """Hash a LocalTime: nanoseconds of the day, folded like a Long. For an OffsetTime, XOR that with the offset's seconds."""
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    local = long_hash((seconds * 1_000_000 + moment.microsecond) * 1000)
    offset = moment.utcoffset()
    return local if offset is None else local ^ (offset.days * 86_400 + offset.seconds)


def timedelta_hash(length: timedelta) -> int:
    """Hash a Duration: whole seconds, rounded down and folded like a Long, plus 51 times the remaining nanoseconds."""
    return long_hash(length.days * 86_400 + length.seconds) + 51 * 1000 * length.microseconds


def datetime_hash(moment: datetime) -> int:
    """Hash a LocalDateTime: date XOR time.

    With a time zone, hash an Instant: the hash is the same for the same moment in any zone.
    """
    if moment.utcoffset() is None:
        return date_hash(moment) ^ time_hash(moment.time())
    # Instant's formula is that of the Duration since 1970.
    return timedelta_hash(moment - _EPOCH)


#: The function that hashes the values of each type.
HASHERS: dict[type, Callable[[Any], int]] = {
    date: date_hash,
    datetime: datetime_hash,
    time: time_hash,
    timedelta: timedelta_hash,
}
