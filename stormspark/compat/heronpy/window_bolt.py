"""Windowed bolts. The time at which a tuple arrives decides which windows it belongs to (C22).

A tuple is acked when it has left the last of its windows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque, namedtuple
from typing import Any

from stormspark.compat.heronpy.components import Bolt
from stormspark.compat.heronpy.constants import TOPOLOGY_TICK_TUPLE_FREQ_SECS
from stormspark.compat.heronpy.state import StatefulComponent

__all__ = ["HoldsWindow", "SlidingWindowBolt", "TumblingWindowBolt", "WindowContext"]

#: The start and the end of a window, in whole seconds since 1970.
WindowContext = namedtuple("WindowContext", "start end")


class HoldsWindow(Bolt, StatefulComponent):
    """The common base of both bolts. It keeps the tuples of the window, which are also the bolt's state."""

    def init_state(self, stateful_state: Any) -> None:
        """Keep the state. It contains the tuples of the window."""
        self.saved_state = stateful_state

    def pre_save(self, checkpoint_id: Any) -> None:
        """Put the tuples of the window into the state."""
        self.saved_state["tuples"] = self.current_tuples

    @abstractmethod
    def processWindow(self, window_info: Any, tuples: list[Any]) -> None:  # noqa: N802 - heronpy's name
        """Process a window. ``window_info`` is a `WindowContext`. ``tuples`` are the tuples of the window, the oldest first."""

    def _begin(self, config: dict[str, Any], ticks: int) -> None:
        config[TOPOLOGY_TICK_TUPLE_FREQ_SECS] = str(ticks)
        self.current_tuples: deque[Any] = deque()
        if hasattr(self, "saved_state") and "tuples" in self.saved_state:
            self.current_tuples = self.saved_state["tuples"]

    def ack_all(self) -> None:
        """Ack the tuples of the window and forget them, because the input has ended and the window is processed."""
        for one in self.current_tuples:
            self.ack(self._tuple_of(one))
        self.current_tuples.clear()

    def _tuple_of(self, held: Any) -> Any:
        return held

    def _now(self) -> int:
        return int(self.delegate.now())

    def _secs(self, config: dict[str, Any], key: str) -> int:
        value = config.get(key)
        try:
            seconds = int(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            seconds = 0
        if seconds < 1:
            msg = (
                f"{type(self).__name__}: {key} must be a number of seconds above 0, in the component's config, got {value!r} "
                f""
            )
            raise ValueError(msg)
        return seconds


class SlidingWindowBolt(HoldsWindow):
    """A bolt that processes the tuples of the last ``slidingwindowbolt_duration_secs``.

    A window is processed every ``slidingwindowbolt_slideinterval_secs``. Without a slide interval, each window begins where the
    last one ended.

    A subclass with its own ``initialize`` must call the ``initialize`` of this class.
    """

    WINDOW_DURATION_SECS = "slidingwindowbolt_duration_secs"
    WINDOW_SLIDEINTERVAL_SECS = "slidingwindowbolt_slideinterval_secs"

    def initialize(self, config: dict[str, Any], context: Any) -> None:
        """Read the length and the slide of the windows, and request ticks. Raises ValueError if one of them is not valid."""
        self.window_duration = self._secs(config, self.WINDOW_DURATION_SECS)
        slides = self.WINDOW_SLIDEINTERVAL_SECS in config
        self.slide_interval = (
            self._secs(config, self.WINDOW_SLIDEINTERVAL_SECS) if slides else self.window_duration
        )
        if self.slide_interval > self.window_duration:
            msg = (
                f"{type(self).__name__}: {self.WINDOW_SLIDEINTERVAL_SECS} must be at most {self.WINDOW_DURATION_SECS}, got "
                f"{self.slide_interval} and {self.window_duration}"
            )
            raise ValueError(msg)
        self._begin(config, self.slide_interval)

    def process(self, tup: Any) -> None:
        """Add a tuple to the window, and remove the tuples that are too old."""
        now = self._now()
        self.current_tuples.append((tup, now))
        self._expire(now)

    def process_tick(self, tup: Any) -> None:
        """Process the window at its end, and then ack tuples that are older than it."""
        now = self._now()
        window = WindowContext(now - self.window_duration, now)
        self.processWindow(window, [one for one, _ in self.current_tuples])
        self._expire(now)

    def _tuple_of(self, held: Any) -> Any:
        return held[0]

    def _expire(self, now: int) -> None:
        while self.current_tuples and now - self.window_duration > self.current_tuples[0][1]:
            self.ack(self.current_tuples.popleft()[0])


class TumblingWindowBolt(HoldsWindow):
    """A bolt that processes the tuples of one window after another. Each window is ``tumblingwindowbolt_duration_secs`` long.

    A subclass with its own ``initialize`` must call the ``initialize`` of this class.
    """

    WINDOW_DURATION_SECS = "tumblingwindowbolt_duration_secs"

    def initialize(self, config: dict[str, Any], context: Any) -> None:
        """Read the length of the window, and request ticks. Raises ValueError if the length is not valid."""
        self.window_duration = self._secs(config, self.WINDOW_DURATION_SECS)
        self._begin(config, self.window_duration)

    def process(self, tup: Any) -> None:
        """Add a tuple to the window."""
        self.current_tuples.append(tup)

    def process_tick(self, tup: Any) -> None:
        """Process the window at its end, and ack its tuples."""
        now = self._now()
        self.processWindow(WindowContext(now - self.window_duration, now), list(self.current_tuples))
        for one in self.current_tuples:
            self.ack(one)
        self.current_tuples.clear()
