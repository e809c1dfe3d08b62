"""The parts of the results of windowed operations: keys with values, windows, and keys in windows (G23, G24)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from stormspark.errors import InvalidTopologyError

__all__ = ["KeyValue", "KeyedWindow", "Window"]


class KeyValue(NamedTuple):
    """A key and its value. Any other pair works as well, for example a tuple or list of two items.

    >>> key, value = KeyValue("word", 1)
    """

    key: Any
    value: Any


@dataclass(frozen=True)
class Window:
    """The time of a window, in seconds since 1970. The window does not include its end.

    ``start_time`` is None for a window whose length is a number of elements.

    >>> Window(4.0, 10.0)
    Window {start_time: 4.0, end_time: 10.0}
    """

    start_time: float | None
    end_time: float

    # Code that was written for Heron reads these private attributes, because Heron's Window has no public ones.
    @property
    def _start_time(self) -> float | None:
        return self.start_time

    @property
    def _end_time(self) -> float:
        return self.end_time

    def __repr__(self) -> str:
        return f"Window {{start_time: {self.start_time}, end_time: {self.end_time}}}"


@dataclass(frozen=True)
class KeyedWindow:
    """A key, and the window to which its value belongs. Two keyed windows with the same key and the same window are equal.

    Raises `InvalidTopologyError` if ``window`` is not a `Window`.

    >>> KeyedWindow("word", Window(4.0, 10.0))
    KeyedWindow {key: word, window: Window {start_time: 4.0, end_time: 10.0}}
    """

    key: Any
    window: Window

    def __post_init__(self) -> None:
        if not isinstance(self.window, Window):
            msg = f"the window of a KeyedWindow must be a Window, got {self.window!r} of type {type(self.window).__name__}"
            raise InvalidTopologyError(msg)

    @property
    def _key(self) -> Any:
        return self.key

    @property
    def _window(self) -> Window:
        return self.window

    def __repr__(self) -> str:
        return f"KeyedWindow {{key: {self.key}, window: {self.window}}}"
