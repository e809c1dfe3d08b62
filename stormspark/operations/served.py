"""The part of a running topology that commands from outside reach. Both engines' topologies inherit it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from stormspark.backpressure import Pressure
from stormspark.checkpoint.state_components import StatePlace
from stormspark.driver.commit_log import Commits
from stormspark.driver.error_log import TaskError
from stormspark.driver.event_sampling import EventSampling
from stormspark.driver.tally import Tally
from stormspark.errors import StatusError
from stormspark.metrics import Durations, TaskCounters
from stormspark.metrics.sums import Sums
from stormspark.operations.metrics_calls import served_families
from stormspark.operations.server import Server
from stormspark.reporting.families import families
from stormspark.reporting.measured import Measured
from stormspark.reporting.reporting import Reporting
from stormspark.running import TopologyHandle
from stormspark.worker.host.logger_levels import LoggerLevels

__all__ = ["ServedTopology"]


class ServedTopology(TopologyHandle):
    """A topology whose driver may serve the REST API, and sends metrics.

    The engine sets the tally, what sends metrics, and, if it serves, the server.
    """

    _tally: Tally
    _reporting: Reporting
    _sampling: EventSampling
    _server: Server | None = None
    _log_levels: LoggerLevels | None = None
    _is_over = False

    def by_task(self) -> dict[int, TaskCounters]:
        """Return the counters of each task that has reported, those of its earlier incarnations included."""
        return self._tally.by_task()

    @property
    def sampling(self) -> EventSampling:
        """Which share of what components emit goes to the event log; it can be changed at any time (J20)."""
        return self._sampling

    def durations(self) -> Durations:
        """Return how long batches and their parts took."""
        return self._tally.durations()

    def errors(self) -> Mapping[str, tuple[TaskError, ...]]:
        """Return the last errors of each component, the newest first."""
        return self._tally.errors()

    def sums(self) -> Sums:
        """Return the sums of the counters by component."""
        return self._tally.sums()

    def pressure(self) -> Pressure | None:
        """Return what the controller of backpressure knows; None if there is no controller."""
        return self._tally.pressure()

    def commits(self) -> Commits:
        """Return the last commits and the last attempts that were taken back, if batches are transactions."""
        return self._tally.commits()

    @property
    def state_table(self) -> StatePlace | None:
        """Where the table is to which batches commit the state; None if there is none."""
        return None

    @property
    def was_killed_by_command(self) -> bool:
        """Whether somebody has killed the topology from outside, as with ``stormspark kill``."""
        return self._server is not None and self._server.was_killed

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Give loggers of this process these levels, and take back those of a former call (J22)."""
        if self._log_levels is None:
            self._log_levels = LoggerLevels()
        if not self._is_over:
            self._log_levels.apply(levels)

    def restart(self, workers: Collection[int]) -> None:
        """Let these workers start anew (J6). Raises `StatusError` if the engine has no worker processes."""
        msg = (
            "the local engine's workers are no processes, so they can't be restarted: run the topology with --engine spark, or "
            "kill it and run it again"
        )
        raise StatusError(msg)

    def _begin_reporting(
        self, measured: Measured, log_folder: str | None, clock: Callable[[], float] | None = None
    ) -> None:
        """Send metrics of this topology, ``measured``, from now on. If a test drives the ``clock``, the engine calls
        `Reporting.step`.
        """
        if self._reporting.wants_points:
            self._tally.on_points = self._reporting.take
        server = self._server
        self._reporting.begin(
            measured,
            partial(families, measured) if server is None else partial(served_families, server.served),
            log_folder,
            clock,
        )

    def _close_server(self) -> None:
        self._is_over = True
        if self._log_levels is not None:
            self._log_levels.apply({})
        self._reporting.close()
        if self._server is not None:
            self._server.close()
