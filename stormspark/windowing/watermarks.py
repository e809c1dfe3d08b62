"""Watermarks: the progress of event time (C30)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

__all__ = ["Watermarks"]


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

    def advanced(self) -> int | None:
        """Return the watermark if it is higher than the last one returned, else None. Called once per interval."""
        seen = [timestamp for timestamp in self._greatest.values() if timestamp is not None]
        if not seen or len(seen) < len(self._greatest):
            return None
        watermark = min(seen) - self._lag
        if watermark <= self._last:
            return None
        self._last = watermark
        return watermark

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
