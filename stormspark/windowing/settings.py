"""The settings of a windowed bolt under Storm's keys (C25), and Storm's checks of them (C26)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from stormspark.errors import InvalidTopologyError
from stormspark.windowing.lengths import Count, Duration, Length

__all__ = [
    "IDLENESS",
    "LATE_TUPLE_STREAM",
    "LENGTH_COUNT",
    "LENGTH_DURATION",
    "MAX_LAG",
    "SLIDE_COUNT",
    "SLIDE_DURATION",
    "WATERMARK_INTERVAL",
    "WindowSettings",
]

LENGTH_COUNT: Final = "topology.bolts.window.length.count"
LENGTH_DURATION: Final = "topology.bolts.window.length.duration.ms"
SLIDE_COUNT: Final = "topology.bolts.window.sliding.interval.count"
SLIDE_DURATION: Final = "topology.bolts.window.sliding.interval.duration.ms"
MAX_LAG: Final = "topology.bolts.tuple.timestamp.max.lag.ms"
WATERMARK_INTERVAL: Final = "topology.bolts.watermark.event.interval.ms"
LATE_TUPLE_STREAM: Final = "topology.bolts.late.tuple.stream"
IDLENESS: Final = "stormspark.window.idleness.ms"


@dataclass(frozen=True)
class WindowSettings:
    """The window settings of a bolt. ``lag_ms``, ``watermark_interval_ms`` and ``idle_after_ms`` apply to event time only.

    >>> settings = WindowSettings.read({LENGTH_COUNT: 10})
    >>> settings.length, settings.slide, settings.watermark_interval_ms
    (Count(value=10), Count(value=1), 1000)
    """

    length: Length
    slide: Length
    lag_ms: int = 0
    watermark_interval_ms: int = 1000
    late_stream: str | None = None
    #: After how many milliseconds a stream is idle: by ``component`` or ``component/stream``, and for all others by ``""``.
    idle_after_ms: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, conf: Mapping[str, Any]) -> Self:
        """Read the settings from ``conf``. If the length or the slide is given as a count and as a duration, the count wins.

        This is as in Storm. Raises `InvalidTopologyError` if there is no length, or if a value is invalid. Numbers must be
        positive integers, but the lag may be 0.
        """
        length = _length(conf, LENGTH_COUNT, LENGTH_DURATION)
        if length is None:
            msg = (
                f"Window length is not specified: call with_window(...) or with_tumbling_window(...), "
                f"or set {LENGTH_COUNT} or {LENGTH_DURATION}"
            )
            raise InvalidTopologyError(msg)
        late = conf.get(LATE_TUPLE_STREAM)
        if late is not None and (not isinstance(late, str) or not late):
            msg = f"{LATE_TUPLE_STREAM} must be the id of a stream, got {late!r}"
            raise InvalidTopologyError(msg)
        return cls(
            length=length,
            slide=_length(conf, SLIDE_COUNT, SLIDE_DURATION) or Count(1),
            lag_ms=_integer(conf, MAX_LAG, 0, least=0),
            watermark_interval_ms=_integer(conf, WATERMARK_INTERVAL, 1000, least=1),
            late_stream=late,
            idle_after_ms=_idleness(conf.get(IDLENESS)),
        )

    def idle_after(self, streams: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return after how many milliseconds each of these streams is idle. A stream that never is does not occur.

        >>> WindowSettings(Count(1), Count(1), idle_after_ms={"orders": 50}).idle_after([("orders", "default"), ("rates", "x")])
        {('orders', 'default'): 50}
        """
        found = {}
        for component, stream in streams:
            for name in (f"{component}/{stream}", component, ""):
                if name in self.idle_after_ms:
                    found[component, stream] = self.idle_after_ms[name]
                    break
        return found

    def check(
        self, *, event_time: bool, message_timeout_secs: float | None, max_spout_pending: int | None
    ) -> None:
        """Raise `InvalidTopologyError` for settings that can't work (C26).

        A tuple is acked when it leaves its last window, so its tree may be open for length + slide. So the durations among these
        two must together not exceed the message timeout (None: no timeout). The counts among them must together not exceed the
        number of trees that may be open (None or 0: no limit).
        """
        if self.late_stream is not None and not event_time:
            msg = (
                f"Late tuple stream {self.late_stream!r} can be defined only when specifying a timestamp: "
                f"call with_timestamp_field(name) or with_timestamp_extractor(function)"
            )
            raise InvalidTopologyError(msg)
        both = (self.length, self.slide)
        duration = sum(one.value for one in both if isinstance(one, Duration))
        if message_timeout_secs is not None and duration > message_timeout_secs * 1000:
            msg = (
                f"Window duration (length + sliding interval) of {duration} ms is more than topology.message.timeout.secs, "
                f"{message_timeout_secs:g} s, so its tuples would time out before they are acked: "
                f"raise the timeout above {duration / 1000:g} s, or choose a shorter window"
            )
            raise InvalidTopologyError(msg)
        count = sum(one.value for one in both if isinstance(one, Count))
        if max_spout_pending and count > max_spout_pending:
            msg = (
                f"Window count (length + sliding interval) of {count} tuples is more than topology.max.spout.pending, "
                f"{max_spout_pending}, so the window would wait for tuples that may not come: "
                f"raise the limit to {count} at least, or choose a smaller window"
            )
            raise InvalidTopologyError(msg)


def _length(conf: Mapping[str, Any], count: str, duration: str) -> Length | None:
    if conf.get(count) is not None:
        return Count(_integer(conf, count, 1, least=1))
    if conf.get(duration) is not None:
        return Duration(_integer(conf, duration, 1, least=1))
    return None


def _idleness(value: object) -> Mapping[str, int]:
    """Return the idleness by stream. ``value`` is a number of milliseconds, a mapping, or None."""
    found = {"": value} if not isinstance(value, Mapping) else value
    if value is None:
        return {}
    for name, after in found.items():
        if isinstance(after, bool) or not isinstance(after, int) or after < 1 or not isinstance(name, str):
            msg = (
                f"{IDLENESS} must be a number of milliseconds of at least 1, or such a number for each component or "
                f"component/stream, got {value!r}"
            )
            raise InvalidTopologyError(msg)
    return found  # type: ignore[return-value]


def _integer(conf: Mapping[str, Any], key: str, default: int, *, least: int) -> int:
    value = conf.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"{key} must be an integer of at least {least}, got {value!r} of type {type(value).__name__}"
        raise InvalidTopologyError(msg)
    return value
