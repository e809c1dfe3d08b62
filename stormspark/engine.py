"""The seam between engines and the tools that watch them: what a topology that runs looks like from outside."""

from __future__ import annotations

from typing import Protocol

from stormspark.metrics import TopologyStatistics

__all__ = ["RunningTopology"]


class RunningTopology(Protocol):
    """A topology that an engine runs; both engines hand out such an object.

    ``error`` is None while all is well, else why the topology stopped by itself.
    """

    @property
    def name(self) -> str:
        """The topology's name."""

    @property
    def error(self) -> BaseException | None:
        """Why the topology stopped by itself, or None."""

    @property
    def log_folder(self) -> str | None:
        """Where the logs of tasks are, on each host that runs workers; None where they go to this process's own log."""

    def statistics(self) -> TopologyStatistics:
        """What has been done so far; also after the end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, at most ``timeout`` seconds; true if it has."""

    def stop(self) -> None:
        """End it at the next batch boundary: spouts are deactivated and closed, bolts cleaned up (B1, C1)."""

    def kill(self) -> None:
        """End it at once: no ``close``, no ``cleanup`` (B1: neither is guaranteed)."""
