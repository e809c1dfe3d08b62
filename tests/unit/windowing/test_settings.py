"""Lengths, and the settings of windows (C23, C25, C26)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stormspark.errors import InvalidTopologyError
from stormspark.windowing import Count, Duration, WindowSettings, as_duration, as_length


def test_durations_are_milliseconds() -> None:
    """Durations are whole milliseconds, however they are made, and their repr shows the unit (C23)."""
    assert Duration.of(1500) == Duration(1500) == Duration.seconds(1.5) == Duration.minutes(0.025)
    assert Duration.hours(1) < Duration.days(1) == as_duration(timedelta(days=1), "x")
    assert Duration.seconds(2.3).value == 2300
    assert (str(Duration(5)), str(Count(5))) == ("Duration(5 ms)", "Count(5)")


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3", None])
def test_a_count_is_a_positive_integer(wrong: Any) -> None:
    """A count must be a positive integer (C23)."""
    with pytest.raises(InvalidTopologyError, match="Count must be a positive integer"):
        Count(wrong)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "3", None])
def test_a_duration_is_not_negative(wrong: Any) -> None:
    """A duration must be an integer that is not negative (C23)."""
    with pytest.raises(InvalidTopologyError, match="not negative"):
        Duration(wrong)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), True, "3", None])
def test_a_duration_is_made_of_a_number(wrong: Any) -> None:
    """A duration in seconds must be a finite number (C23)."""
    with pytest.raises(InvalidTopologyError, match="finite number"):
        Duration.seconds(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            10,
            r"length must be Count\(n\), a Duration or a datetime.timedelta, got 10 of type int; did you mean",
        ),
        ("10s", "got '10s' of type str$"),
        (None, "got None"),
        (True, "got True of type bool$"),
        (Duration(0), "length must be positive"),
        (timedelta(microseconds=10), "length must be positive"),
        (timedelta(seconds=-1), "length must be positive"),
    ],
)
def test_a_length_is_a_count_or_a_duration(wrong: Any, message: str) -> None:
    """A window's length must be a positive count or duration (C23)."""
    with pytest.raises(InvalidTopologyError, match=message):
        as_length(wrong, "length")


def test_a_lag_may_be_nothing_but_not_negative_nor_a_count() -> None:
    """A lag may be zero, but it is neither negative nor a count (C23)."""
    assert as_duration(timedelta(0), "lag") == Duration(0)
    with pytest.raises(InvalidTopologyError, match="lag must be not negative"):
        as_duration(timedelta(seconds=-1), "lag")
    with pytest.raises(InvalidTopologyError, match="lag must be a Duration or a datetime"):
        as_duration(Count(1), "lag")


KEYS = {
    "count": "topology.bolts.window.length.count",
    "duration": "topology.bolts.window.length.duration.ms",
    "slide_count": "topology.bolts.window.sliding.interval.count",
    "slide_duration": "topology.bolts.window.sliding.interval.duration.ms",
    "lag": "topology.bolts.tuple.timestamp.max.lag.ms",
    "interval": "topology.bolts.watermark.event.interval.ms",
    "late": "topology.bolts.late.tuple.stream",
}


def read(**settings: Any) -> WindowSettings:
    return WindowSettings.read({KEYS[name]: value for name, value in settings.items()})


def test_storms_keys_and_defaults() -> None:
    """C23, C25: slide 1, lag 0, a watermark a second; a count wins over a duration, null is not set."""
    assert read(count=5) == WindowSettings(Count(5), Count(1), 0, 1000, None)
    assert read(duration=5, slide_duration=7, lag=3, interval=50, late="late") == WindowSettings(
        Duration(5), Duration(7), 3, 50, "late"
    )
    assert read(count=5, duration=9, slide_count=2, slide_duration=9).slide == Count(2)
    assert read(count=None, duration=9).length == Duration(9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "Window length is not specified: .*with_window.*topology.bolts.window.length.count"),
        ({"count": None}, "Window length is not specified"),
        ({"count": 0}, "length.count must be an integer of at least 1, got 0"),
        ({"duration": "5s"}, "length.duration.ms must be an integer of at least 1, got '5s' of type str"),
        ({"count": 5, "slide_duration": -5}, "sliding.interval.duration.ms must be .* got -5"),
        ({"count": True}, "got True of type bool"),
        ({"count": 5, "lag": -1}, "max.lag.ms must be an integer of at least 0"),
        ({"count": 5, "interval": 0}, "watermark.event.interval.ms must be an integer of at least 1"),
        ({"count": 5, "late": ""}, "late.tuple.stream must be the id of a stream"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    """A wrong or missing setting of a window is rejected, with the name of the setting (C25, C26)."""
    with pytest.raises(InvalidTopologyError, match=message):
        read(**settings)


def check(
    timeout: float | None = 30, pending: int | None = None, event: bool = True, **settings: Any
) -> None:
    read(**settings).check(event_time=event, message_timeout_secs=timeout, max_spout_pending=pending)


def test_settings_that_fit() -> None:
    """C26: up to the limits; no timeout and no limit of pending tuples is no limit."""
    check(duration=20_000, slide_duration=10_000)
    check(duration=30_000, slide_count=1000)
    check(duration=10**9, slide_duration=10**9, timeout=None)
    check(count=6, slide_count=4, pending=10)
    check(count=10**9, slide_count=10**9, pending=0)
    check(count=10, slide_duration=30_000, pending=10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"duration": 20_000, "slide_duration": 10_001},
            "of 30001 ms is more than topology.message.timeout.secs, 30 s",
        ),
        ({"duration": 30_001}, "raise the timeout above 30.001 s"),
        ({"count": 5, "slide_duration": 30_001}, "topology.message.timeout.secs"),
        (
            {"count": 6, "slide_count": 5, "pending": 10},
            "of 11 tuples is more than topology.max.spout.pending, 10",
        ),
        ({"count": 11, "slide_duration": 1, "pending": 10}, "raise the limit to 11"),
        ({"duration": 5, "slide_count": 11, "pending": 10}, "topology.max.spout.pending"),
        ({"count": 5, "late": "late", "event": False}, "can be defined only when specifying a timestamp"),
    ],
)
def test_settings_that_can_not_work(settings: dict[str, Any], message: str) -> None:
    """C26: Storm's checks, with what to do."""
    with pytest.raises(InvalidTopologyError, match=message):
        check(**settings)
