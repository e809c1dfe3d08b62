"""What the controller of backpressure says of itself: frozen snapshots for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["BoltPressure", "LimitChange", "Pressure", "SpoutPressure"]


class LimitChange(NamedTuple):
    """The limit of a spout, all its tasks together, from a moment on; None: no limit. ``seconds`` are the topology's."""

    seconds: float
    spout: str
    limit: int | None
    #: The bolt because of which, None for a topology that begins.
    because_of: str | None


@dataclass(frozen=True)
class SpoutPressure:
    """A spout as the controller sees it. ``limit`` is of a round, for all of its tasks; ``throttled_ms`` by bolt (F6, F11)."""

    limit: int | None
    throttled_by: str | None
    throttled_ms: Mapping[str, float]


@dataclass(frozen=True)
class BoltPressure:
    """A bolt: what waits for it, against its marks, and how long that takes."""

    queued: int
    queued_bytes: int
    high_mark: float
    high_mark_bytes: float
    #: What its busiest worker has to do for what waits.
    backlog_seconds: float
    above: bool


@dataclass(frozen=True)
class Pressure:
    """All of it at one moment."""

    spouts: Mapping[str, SpoutPressure]
    bolts: Mapping[str, BoltPressure]
    #: So many times a limit was set, changed or taken away.
    limit_changes: int
    #: The last ones.
    history: Sequence[LimitChange]
