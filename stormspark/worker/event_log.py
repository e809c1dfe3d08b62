"""The event log of a worker: a sample of what its tasks emit, for whoever looks (J20).

As long as nobody looks, the outlets of tasks are as they were, so a tuple costs nothing more.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from stormspark.acker import Roots
from stormspark.acker.tree import Tree
from stormspark.api import EventInfo, EventLogger, WorkerUserContext
from stormspark.api.hook_classes import hook_class
from stormspark.config import Settings
from stormspark.private_files import PrivateLogFile, make_private
from stormspark.worker.sources.rows import message_id_of
from stormspark.worker.task import Task
from stormspark.worker.tuples.hooked_outlets import replace_inner
from stormspark.worker.tuples.outlets import Outlet, WrappedOutlet

__all__ = ["EventLog", "FileEventLogger"]

_log = logging.getLogger(__name__)

#: The class of Storm that writes what `FileEventLogger` writes.
_OF_STORM = "org.apache.storm.metric.FileBasedEventLogger"


class FileEventLogger(EventLogger):
    """Writes events into the file ``events.log`` of a folder, as Storm's ``FileBasedEventLogger`` does, and rotates it.

    Without a folder, events go to Python's logger ``stormspark.events``.
    """

    def __init__(self, folder: Path | None, settings: Settings) -> None:
        self._file: PrivateLogFile | None = None
        if folder is not None:
            megabytes, kept = settings.event_log_rotation_mb, settings.event_log_backup_count
            self._file = PrivateLogFile(
                make_private(folder) / "events.log",
                maxBytes=megabytes << 20,
                backupCount=kept,
                encoding="utf-8",
                errors="backslashreplace",
                delay=True,
            )
        self._logger = logging.getLogger("stormspark.events")

    def log(self, event: EventInfo) -> None:
        """Write a line."""
        if self._file is None:
            self._logger.info("%s", event)
        else:
            self._file.emit(logging.makeLogRecord({"msg": str(event)}))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class EventLog:
    """The event log of one worker. ``epoch`` returns the seconds since 1970 at which ``clock`` stood at 0.

    ``folder`` is the folder of the worker's logs, or None.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        conf: Mapping[str, Any],
        settings: Settings,
        context: WorkerUserContext,
        folder: Path | None,
        now: Callable[[], float],
        random: Random,
    ) -> None:
        self._tasks = list(tasks)
        self._conf, self._settings, self._context = conf, settings, context
        self._folder = None if folder is None else folder / f"worker-{context.this_worker_index}"
        self._now, self._random = now, random
        self._loggers: list[EventLogger] | None = None
        #: By component: which percentage of its tuples is logged.
        self._sampled: Mapping[str, float] = {}

    def follow(self, sampled: Mapping[str, float]) -> None:
        """Log these percentages of what components emit, from now on. The key "" stands for all components that have no key."""
        if sampled == self._sampled:
            return
        self._sampled = sampled
        if sampled and self._loggers is None:
            self._loggers = list(self._made())
        for task in self._tasks:
            percentage = sampled.get(task.component.id, sampled.get("", 0.0))
            replace_inner(task.outlets, partial(self._logged, percentage / 100))
            task.connect()

    def _logged(self, share: float, outlet: Outlet) -> Outlet:
        plain = outlet.unlogged if isinstance(outlet, _LoggedOutlet) else outlet
        return _LoggedOutlet(plain, share, self._random.random, self._add) if share else plain

    def _made(self) -> Iterable[EventLogger]:
        registered = self._conf.get("topology.event.logger.register") or [{"class": _OF_STORM}]
        for entry in registered:
            name = entry["class"]
            try:
                made = (
                    FileEventLogger(self._folder, self._settings) if name == _OF_STORM else hook_class(name)()
                )
                made.prepare(self._conf, entry.get("arguments"), self._context)
            except Exception:
                _log.error("event logger %s can't be made: %s", name, traceback.format_exc())
            else:
                yield made

    def _add(self, component: str, task: int, message_id: Any, values: tuple[Any, ...]) -> None:
        event = EventInfo(self._now(), component, task, message_id, values)
        for one in list(self._loggers or ()):
            try:
                one.log(event)
            except Exception:
                _log.error("event logger %r gets no more events: %s", one, traceback.format_exc())
                self._loggers = [other for other in self._loggers or () if other is not one]

    def close(self) -> None:
        """Close the loggers."""
        for one in self._loggers or ():
            try:
                one.close()
            except Exception:
                _log.error("event logger %r, raised in close: %s", one, traceback.format_exc())
        self._loggers = None


class _LoggedOutlet(WrappedOutlet):
    """An outlet that logs a share of the tuples that it sends. ``unlogged`` is the outlet inside."""

    def __init__(
        self,
        outlet: Outlet,
        share: float,
        draw: Callable[[], float],
        add: Callable[[str, int, Any, tuple[Any, ...]], None],
    ) -> None:
        super().__init__(outlet)
        self.unlogged, self._share, self._draw, self._add_event = outlet, share, draw, add

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        """See `Outlet.send`."""
        if self._draw() < self._share:
            self._note(values, roots)
        return super().send(values, roots)

    def deliver(self, values: tuple[Any, ...], roots: Roots, tasks: Sequence[int]) -> None:
        """See `Outlet.deliver`."""
        if self._draw() < self._share:
            self._note(values, roots)
        super().deliver(values, roots, tasks)

    def send_direct(self, task: int, values: tuple[Any, ...], roots: Roots) -> int:
        """See `Outlet.send_direct`."""
        if self._draw() < self._share:
            self._note(values, roots)
        return super().send_direct(task, values, roots)

    def _note(self, values: tuple[Any, ...], roots: Roots) -> None:
        source = self.source
        # The tree of a spout's tuple is new: it has no edge yet, and its account is that of the task.
        own = isinstance(roots, Tree) and roots.account.task == source.task
        message_id = message_id_of(roots.message_id) if own and isinstance(roots, Tree) else None
        self._add_event(source.component, source.task, message_id, values)
