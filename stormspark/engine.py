"""The interface of a running topology, for the tools that watch it. Both engines implement it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

from stormspark.errors import TopologyAlreadyRunningError
from stormspark.metrics import TopologyStatistics
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.busy import Busy
from stormspark.worker.stories.story import Story

__all__ = ["AVAILABLE_NOW", "CONTINUOUS", "TRIGGERS", "AliveTopologies", "RunningTopology"]

#: How long a topology runs: until it is stopped, or until it has processed the rows that its sources have when it starts.
CONTINUOUS, AVAILABLE_NOW = "continuous", "available-now"
TRIGGERS = (CONTINUOUS, AVAILABLE_NOW)


class RunningTopology(Protocol):
    """A topology that an engine runs. Both engines return such an object from ``submit``."""

    @property
    def name(self) -> str:
        """The topology's name."""

    @property
    def plan(self) -> PhysicalPlan:
        """The physical plan that runs."""

    @property
    def error(self) -> BaseException | None:
        """The error that ended the topology, or None."""

    @property
    def log_folder(self) -> str | None:
        """The folder with the logs of tasks on this host; None if tasks log to this process's own log."""

    def statistics(self) -> TopologyStatistics:
        """Return the counters and latencies of the topology so far. They can be read after the topology's end, too."""

    def waits_for(self) -> str:
        """Return what the topology waits for before its first batch ends, in words; an empty string if it is past that."""

    def stories(self, root: int | str | None = None) -> list[Story]:
        """Return the stories of failed and some other trees, newest first. With ``root``, return only that tree's stories."""

    @property
    def was_killed_by_command(self) -> bool:
        """Whether somebody has killed the topology from outside, as with ``stormspark kill``."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the topology has ended, for at most ``timeout`` seconds. Return whether it has ended."""

    @property
    def close_secs(self) -> float:
        """How many seconds ``close`` and ``cleanup`` of a task may take when the topology stops, before they are given up."""

    def calls_under_way(self) -> list[Busy]:
        """Return the calls of user code that run now, as far as the engine knows, the most important first. Tuples that child
        processes have been given are calls, too.
        """

    def end_input(self) -> None:
        """End the input: once nothing comes for two batches, bolts flush what they hold, and the topology ends by itself.

        Rows that come meanwhile are still processed.
        """

    def stop(self) -> None:
        """End the topology at the next batch boundary: deactivate and close the spouts, clean up the bolts (B1, C1)."""

    def kill(self) -> None:
        """End the topology at once, without ``close`` and ``cleanup`` (B1: neither is guaranteed)."""


_R = TypeVar("_R", bound=RunningTopology)


class AliveTopologies:
    """The topologies that one engine runs in this process, by name. No two of them have the same name (A14)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starting: set[str] = set()
        # The references are weak: a running topology is kept alive by its own thread, and nobody looks up an ended one.
        self._started: WeakValueDictionary[str, RunningTopology] = WeakValueDictionary()

    def running(self) -> dict[str, RunningTopology]:
        """Return the topologies that run now, by name."""
        return {name: one for name, one in sorted(self._started.items()) if not one.wait(0)}

    def start(
        self, name: str, begin: Callable[[], _R], replaced: Callable[[RunningTopology], None] | None = None
    ) -> _R:
        """Start a topology by a call of ``begin``. If one of that name runs already, ``replaced`` ends it first. Raises
        `TopologyAlreadyRunningError` if there is no ``replaced``, or if one of that name is being started now.
        """
        with self._lock:
            before = self._started.get(name)
            runs = before is not None and not before.wait(0)
            if name in self._starting:
                msg = f"a topology named {name!r} is already running: it starts just now, in another thread; wait for it"
                raise TopologyAlreadyRunningError(msg)
            if runs and replaced is None:
                where = type(before).__module__.rpartition(".")[0]
                msg = (
                    f"a topology named {name!r} is already running; end it first, with "
                    f"{where}.running_topologies()[{name!r}].stop() or by submit(..., replace=True), or choose another name"
                )
                raise TopologyAlreadyRunningError(msg)
            self._starting.add(name)
        try:
            if runs and before is not None and replaced is not None:
                replaced(before)
            running = begin()
            self._started[name] = running
        finally:
            self._starting.discard(name)
        return running
