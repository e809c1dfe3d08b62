"""The last errors of each component, with when and where they came: what Storm keeps in ZooKeeper for its UI (J11)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from stormspark.worker.step import ErrorReport

__all__ = ["ErrorLog", "TaskError"]

#: Storm keeps as many errors of each component.
_KEPT = 10


class TaskError(NamedTuple):
    """An error of a task. ``at`` is in seconds since 1970, ``text`` the traceback or the message."""

    at: float
    component: str
    task: int
    worker: int
    text: str


class ErrorLog:
    """The last ten errors of each component.

    >>> log = ErrorLog()
    >>> for number in range(12): log.add(0, ErrorReport("split", 3, f"error {number}"), 1.0)
    >>> [one.text for one in log.errors()["split"]][:2], len(log.errors()["split"])
    (['error 11', 'error 10'], 10)
    """

    def __init__(self) -> None:
        self._errors: dict[str, deque[TaskError]] = {}

    def add(self, worker: int, error: ErrorReport, at: float) -> None:
        """Add an error that a worker has reported."""
        kept = self._errors.setdefault(error.component, deque(maxlen=_KEPT))
        kept.appendleft(TaskError(at, error.component, error.task, worker, error.text))

    def move_tasks(self, now_at: Mapping[int, int]) -> None:
        """Let each task have another id from now on.

        >>> log = ErrorLog()
        >>> log.add(0, ErrorReport("split", 3, "no"), 1.0)
        >>> log.move_tasks({3: 5})
        >>> log.errors()["split"][0].task
        5
        """
        for kept in self._errors.values():
            moved = [one._replace(task=now_at.get(one.task, one.task)) for one in kept]
            kept.clear()
            kept.extend(moved)

    def last(self, component: str) -> str | None:
        """Return the text of a component's last error; None if it had none."""
        kept = self._errors.get(component)
        return kept[0].text if kept else None

    def errors(self) -> Mapping[str, tuple[TaskError, ...]]:
        """Return the errors by component, the newest first."""
        return {component: tuple(kept) for component, kept in self._errors.items()}
