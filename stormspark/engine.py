"""The seam between engines and the tools that watch them: what a topology that runs looks like from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

from stormspark.errors import TopologyAlreadyRunningError
from stormspark.metrics import TopologyStatistics
from stormspark.worker.stories.story import Story

__all__ = ["AliveTopologies", "RunningTopology"]


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

    def stories(self, root: int | str | None = None) -> list[Story]:
        """What became of trees that failed, and of some that did not, newest first: all that are kept, or those of one root."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, at most ``timeout`` seconds; true if it has."""

    def stop(self) -> None:
        """End it at the next batch boundary: spouts are deactivated and closed, bolts cleaned up (B1, C1)."""

    def kill(self) -> None:
        """End it at once: no ``close``, no ``cleanup`` (B1: neither is guaranteed)."""


_R = TypeVar("_R", bound=RunningTopology)


class AliveTopologies:
    """The topologies that one engine runs in this process, by name: there are no two of one name (A14)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starting: set[str] = set()
        # Weak, because what runs is held by its own thread, and what has ended concerns nobody here.
        self._started: WeakValueDictionary[str, RunningTopology] = WeakValueDictionary()

    def start(self, name: str, begin: Callable[[], _R]) -> _R:
        """Call ``begin`` to start a topology; raises `TopologyAlreadyRunningError` if one of that name runs."""
        with self._lock:
            before = self._started.get(name)
            if name in self._starting or (before is not None and not before.wait(0)):
                msg = f"a topology named {name!r} runs already (A14); end it first, or choose another name"
                raise TopologyAlreadyRunningError(msg)
            self._starting.add(name)
        try:
            running = begin()
            self._started[name] = running
        finally:
            self._starting.discard(name)
        return running
