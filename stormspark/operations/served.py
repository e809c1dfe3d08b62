"""The part of a running topology that commands from outside reach. Both engines' topologies inherit it."""

from __future__ import annotations

from collections.abc import Mapping

from stormspark.driver.error_log import TaskError
from stormspark.driver.tally import Tally
from stormspark.metrics import TaskCounters
from stormspark.operations.server import Server
from stormspark.running import TopologyHandle

__all__ = ["ServedTopology"]


class ServedTopology(TopologyHandle):
    """A topology whose driver may serve the REST API. The engine sets the tally and, if it serves, the server."""

    _tally: Tally
    _server: Server | None = None

    def by_task(self) -> dict[int, TaskCounters]:
        """Return the counters of each task that has reported, those of its earlier incarnations included."""
        return self._tally.by_task()

    def errors(self) -> Mapping[str, tuple[TaskError, ...]]:
        """Return the last errors of each component, the newest first."""
        return self._tally.errors()

    @property
    def was_killed_by_command(self) -> bool:
        """Whether somebody has killed the topology from outside, as with ``stormspark kill``."""
        return self._server is not None and self._server.was_killed

    def _close_server(self) -> None:
        if self._server is not None:
            self._server.close()
