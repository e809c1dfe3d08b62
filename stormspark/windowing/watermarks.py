"""Watermarks: the progress of event time (C30)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

__all__ = ["IdlingWatermarks", "Watermarks"]


class Watermarks:
    """Computes the watermark: the least of the streams' greatest timestamps, minus ``lag`` milliseconds.

    There is no watermark until every stream has delivered a tuple. So a quiet stream holds up all windows, as in Storm.

    >>> marks = Watermarks(["orders", "payments"], lag=5)
    >>> marks.track("orders", 110); marks.advanced()
    >>> marks.track("payments", 98); marks.advanced()
    93
    >>> marks.track("payments", 90); marks.advanced()
    """

    def __init__(self, streams: Iterable[Hashable], lag: int) -> None:
        self._greatest: dict[Hashable, int | None] = dict.fromkeys(streams)
        self._lag = lag
        self._last = 0  # event time begins in 1970

    def track(self, stream: Hashable, timestamp: int) -> None:
        """Note a tuple of ``stream``, late or not."""
        greatest = self._greatest.get(stream)
        if greatest is None or timestamp > greatest:
            self._greatest[stream] = timestamp

    def advanced(self, now: int = 0) -> int | None:
        """Return the watermark if it is higher than the last one returned, else None. Called once per interval. ``now`` is the
        time of the call, in milliseconds.
        """
        reached = self._reached(now)
        if reached is None or reached - self._lag <= self._last:
            return None
        self._last = reached - self._lag
        return self._last

    def _reached(self, now: int) -> int | None:
        seen = [timestamp for timestamp in self._greatest.values() if timestamp is not None]
        return min(seen) if seen and len(seen) == len(self._greatest) else None

    @property
    def behind(self) -> list[Any]:
        """The streams that hold up the watermark: those that have delivered nothing, or else those with the least timestamp."""
        silent = [stream for stream, timestamp in self._greatest.items() if timestamp is None]
        least = min((time for time in self._greatest.values() if time is not None), default=None)
        return silent or [stream for stream, timestamp in self._greatest.items() if timestamp == least]

    @property
    def progress(self) -> tuple[Any, ...]:
        """The state that is needed to continue later."""
        return self._last, {stream: time for stream, time in self._greatest.items() if time is not None}

    def restore(self, progress: tuple[Any, ...]) -> None:
        """Continue from `progress`. A new stream must deliver a tuple before there is a watermark. Streams that are no longer
        read are dropped.
        """
        self._last, greatest = progress
        for stream in self._greatest:
            self._greatest[stream] = greatest.get(stream)

    def begin_anew(self) -> None:
        """Forget all timestamps, because the input has ended."""
        self._greatest = dict.fromkeys(self._greatest)
        self._last = 0


class IdlingWatermarks(Watermarks):
    """Watermarks that do not wait for idle streams.

    A stream is *idle* if it has delivered nothing for its number of milliseconds in ``idle_after``. A stream that is not in
    ``idle_after`` is never idle. Idle streams are left out of the least timestamp. If all streams are idle, the greatest of their
    timestamps counts, as in Flink. ``now`` is the time at which the watermarks begin.

    >>> marks = IdlingWatermarks(["orders", "payments"], 0, {"payments": 1000}, now=0)
    >>> marks.track("orders", 110)
    >>> marks.advanced(now=999), marks.advanced(now=1000)
    (None, 110)
    >>> marks.track("payments", 98); marks.track("orders", 200)
    >>> marks.advanced(now=1500), marks.advanced(now=2500)
    (None, 200)
    """

    def __init__(
        self, streams: Iterable[Hashable], lag: int, idle_after: Mapping[Any, int], now: int
    ) -> None:
        super().__init__(streams, lag)
        self._idle_after = idle_after
        self._active: set[Hashable] = set()  # since the last interval
        self._active_at = dict.fromkeys(self._greatest, now)

    def track(self, stream: Hashable, timestamp: int) -> None:
        """Note a tuple of ``stream``, late or not. From now on, the stream is not idle."""
        self._active.add(stream)
        super().track(stream, timestamp)

    def _reached(self, now: int) -> int | None:
        self._active_at.update(dict.fromkeys(self._active, now))
        self._active.clear()
        awake = [stream for stream in self._greatest if not self._is_idle(stream, now)]
        if not awake:
            return max((time for time in self._greatest.values() if time is not None), default=None)
        seen = [timestamp for stream in awake if (timestamp := self._greatest[stream]) is not None]
        return min(seen) if len(seen) == len(awake) else None

    def _is_idle(self, stream: Hashable, now: int) -> bool:
        after = self._idle_after.get(stream)
        return after is not None and now - self._active_at[stream] >= after
