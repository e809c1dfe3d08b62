"""A running topology as the calls of its driver's REST API see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from stormspark.driver.event_sampling import EventSampling
from stormspark.driver.source_lag import Lags
from stormspark.operations.controls import Controllable, Controls
from stormspark.operations.facts import Watched, Watcher

__all__ = ["Operable", "Served"]


class Operable(Controllable, Watched, Protocol):
    """A running topology of either engine."""

    @property
    def sampling(self) -> EventSampling:
        """Which share of what components emit is logged (J20)."""

    def lags(self) -> Lags:
        """Return how far the spouts that read Kafka are behind (K9). This may take some milliseconds."""

    @property
    def log_folder(self) -> str | None:
        """The folder with the logs of tasks on this host."""

    @property
    def error(self) -> BaseException | None:
        """Why the topology stopped by itself, or None."""

    def waits_for(self) -> str:
        """Return what the topology waits for before its first batch ends; an empty string if it is past that."""

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Give loggers these levels in all processes, and take back those of a former call."""

    def restart(self, workers: Collection[int]) -> None:
        """Let these workers start anew."""


@dataclass(frozen=True)
class Served:
    """What each call gets: the topology, what there is to say about it, and what may be done to it."""

    running: Operable
    watcher: Watcher
    controls: Controls

    @property
    def id(self) -> str:
        """The id of this run of the topology (A14)."""
        return self.running.storm_id
