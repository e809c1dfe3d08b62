"""The interface of a worker that its tasks use."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Protocol

from stormspark.acker import Ledger
from stormspark.api import TopologyContext
from stormspark.worker.busy import Busy
from stormspark.worker.stories.stories import Stories

if TYPE_CHECKING:
    from stormspark.worker.asynchronous.event_loop import EventLoop
    from stormspark.worker.task import Task

__all__ = ["Host"]


class Host(Protocol):
    """The interface of a worker that its tasks use. `stormspark.worker.services.TaskServices` implements it."""

    #: The worker's clock, which returns monotonic seconds.
    clock: Callable[[], float]
    ledger: Ledger
    stories: Stories

    def epoch(self) -> float:
        """Return the time, in seconds since 1970, at which `clock` stood at 0."""

    def context(self, task: Task) -> TopologyContext:
        """Return a context for a new instance of the task."""

    #: Whether user code has started threads of its own.
    guarded: bool
    #: The task whose ``execute`` or timer runs now.
    executing: Task | None

    @property
    def thread(self) -> int:
        """The id of the worker's thread."""

    def set_timer(
        self, task: Task, seconds: float, callback: Callable[[], None], first: float | None = None
    ) -> None:
        """Call ``callback`` every ``seconds``. If ``first`` is given, make the first call after ``first`` seconds."""

    def clear_timers(self, task: Task) -> None:
        """Drop all timers of the task, because its instance has ended."""

    def guard(self) -> None:
        """Prepare all tasks for calls from other threads, because user code has threads of its own."""

    @property
    def shared_executor(self) -> Executor:
        """The thread pool of the worker."""

    def gave_up(self, call: Busy | None) -> None:
        """Remember a call that had not returned when the topology stopped, if it is known which call that is."""

    @property
    def opening(self) -> bool:
        """Whether the worker is being opened. Meanwhile an error in ``open`` or ``prepare`` is raised."""

    def event_loop(self) -> EventLoop:
        """Return the event loop of the worker's async components."""
