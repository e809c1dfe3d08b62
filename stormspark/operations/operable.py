"""A running topology as the calls of its driver's REST API see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from stormspark.checkpoint.state_components import StatePlace
from stormspark.driver.commit_log import Commits
from stormspark.driver.event_sampling import EventSampling
from stormspark.driver.source_lag import Lags
from stormspark.metrics import TopologyStatistics
from stormspark.operations.controls import Controllable, Controls
from stormspark.operations.facts import Watched, Watcher
from stormspark.operations.log_levels import LogLevels
from stormspark.operations.page.recorder import Recordable, Recorder
from stormspark.reporting.measured import Measured
from stormspark.worker.busy import Busy
from stormspark.worker.stories.story import Story

__all__ = ["Operable", "Served"]


class Operable(Controllable, Watched, Recordable, Measured, Protocol):
    """A running topology of either engine."""

    @property
    def sampling(self) -> EventSampling:
        """Which share of what components emit is logged (J20)."""

    def commits(self) -> Commits:
        """Return the last commits and the last attempts that were taken back, if batches are transactions."""

    @property
    def state_table(self) -> StatePlace | None:
        """Where the table is to which batches commit the state; None if there is none."""

    def lags(self) -> Lags:
        """Return how far the spouts that read Kafka are behind (K9). This may take some milliseconds."""

    def statistics(self) -> TopologyStatistics:
        """Return the counters and latencies of the topology so far."""

    def calls_under_way(self) -> list[Busy]:
        """Return the calls of user code that run now, the most important first."""

    def stories(self, root: int | str | None = None) -> list[Story]:
        """Return the stories of failed and some other trees, newest first; with ``root`` only those of that tree or message."""

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

    @cached_property
    def recorder(self) -> Recorder:
        """What the topology did in the last hours."""
        return Recorder(self.running)

    @cached_property
    def levels(self) -> LogLevels:
        """The levels of loggers that commands have set."""
        return LogLevels(self.running.set_log_levels, self.running.plan.settings.log_level)

    @property
    def id(self) -> str:
        """The id of this run of the topology (A14)."""
        return self.running.storm_id
