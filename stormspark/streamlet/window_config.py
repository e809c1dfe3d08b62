"""The length and the slide of an operation's windows (G23, G24)."""

from __future__ import annotations

from datetime import timedelta

from stormspark.errors import InvalidTopologyError
from stormspark.user_line import user_line
from stormspark.windowing import Count, Duration, Length, as_length

__all__ = ["WindowConfig"]


class WindowConfig:
    """The length and the slide of windows. Each may be a timedelta, a number of seconds, a `Duration` or a `Count`.

    >>> WindowConfig.create_sliding_window(10, 2)
    WindowConfig(Duration(10000 ms), Duration(2000 ms))
    >>> WindowConfig.create_tumbling_window(timedelta(minutes=1)).slide.value
    60000
    >>> WindowConfig.create_tumbling_count_window(100)
    WindowConfig(Count(100), Count(100))

    Raises `InvalidTopologyError` unless length and slide are positive. Heron's Python accepts only whole seconds, and only times
    below a day.
    """

    def __init__(self, window_duration: object, slide_interval: object) -> None:
        self.length = _length(window_duration, "the length of a window")
        self.slide = _length(slide_interval, "the slide of a window")

    @staticmethod
    def create_tumbling_window(window_duration: timedelta | float | Duration) -> WindowConfig:
        """Return windows that follow one another. Every element is in exactly one window."""
        return WindowConfig(window_duration, window_duration)

    @staticmethod
    def create_sliding_window(
        window_duration: timedelta | float | Duration, slide_interval: timedelta | float | Duration
    ) -> WindowConfig:
        """Return windows of ``window_duration`` that end every ``slide_interval``."""
        return WindowConfig(window_duration, slide_interval)

    @staticmethod
    def create_tumbling_count_window(count: int) -> WindowConfig:
        """Return windows of ``count`` elements each, which follow one another. Each task has windows of its own elements."""
        return WindowConfig(Count(count), Count(count))

    @staticmethod
    def create_sliding_count_window(count: int, slide: int) -> WindowConfig:
        """Return windows of the last ``count`` elements. A window ends after every ``slide`` new elements of its task."""
        return WindowConfig(Count(count), Count(slide))

    @property
    def holds_secs(self) -> float:
        """The longest time, in seconds, for which a window keeps an element.

        It is 0 if the length or the slide is a count, because then the time is unknown.
        """
        if isinstance(self.length, Count) or isinstance(self.slide, Count):
            return 0
        return (self.length.value + self.slide.value) / 1000

    def __repr__(self) -> str:
        return f"WindowConfig({self.length}, {self.slide})"


def _length(value: object, name: str) -> Length:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = timedelta(seconds=value)
    try:
        return as_length(value, name)
    except InvalidTopologyError as error:
        msg = f"{user_line()}: {error}; a plain number means seconds"
        raise InvalidTopologyError(msg) from error
