"""A running topology as the calls of its driver's REST API see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stormspark.operations.controls import Controllable, Controls
from stormspark.operations.facts import Watched, Watcher

__all__ = ["Operable", "Served"]


class Operable(Controllable, Watched, Protocol):
    """A running topology of either engine."""

    @property
    def log_folder(self) -> str | None:
        """The folder with the logs of tasks on this host."""


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
