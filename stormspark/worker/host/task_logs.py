"""A log file for each task (X53e). It also receives the task's prints (W8).

A print or a log record goes to the file of the task whose code the printing thread runs at that moment; see
`stormspark.worker.host.task_threads`. Prints and log records of other threads, and those of the worker itself, go to the worker's
file. What becomes of the process's own logging, stdout and stderr depends on whose process it is:

- `TaskLogs.install`: a worker process. Nobody reads its stdout, so everything goes to files.
- `TaskLogs.take_over`: the program ``stormspark``, which runs a local topology. Everything goes to files, and to a function that
  shows it to the user.
- `TaskLogs.join`: a program or a notebook that embeds a local topology. Its logging and its prints stay as they are. The files
  get a copy.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import zlib
from collections.abc import Callable
from contextvars import Context
from functools import partial
from pathlib import Path
from typing import Any

from stormspark.private_files import PrivateLogFile, make_private
from stormspark.worker.host.logger_levels import LevelledHandler
from stormspark.worker.host.printing import CopiedStream, LogStream, end_of_output
from stormspark.worker.host.task_threads import TaskThreads, running_code

__all__ = ["PRINTS", "TaskLogs", "file_name"]

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
#: The names of the streams that tasks print to, which are the names of loggers in the files. Each has the level of its lines.
PRINTS = {"stdout": logging.INFO, "stderr": logging.WARNING}


#: Names of files have at most 255 bytes, also with the number of an old file.
_LONGEST_NAME = 200
#: The names of workers' files, without their suffix.
_OF_A_WORKER = re.compile(r"worker-\d+")


class TaskLogs(LevelledHandler):
    """A handler that routes the log records of a task to ``<directory>/<component>-<index>.log``, and all others to
    ``<directory>/worker-<n>.log``.

    Each file is rotated at ``max_bytes``, and ``backup_count`` old files are kept.
    """

    def __init__(self, directory: Path, worker: int, level: str, max_bytes: int, backup_count: int) -> None:
        super().__init__(level)
        self.directory = make_private(directory)
        self._max_bytes = max_bytes
        self._backup_count = backup_count
        self._files: dict[str, PrivateLogFile] = {}
        self._worker = f"worker-{worker}"
        self.threads = TaskThreads()
        self._show: Callable[[str | None, logging.LogRecord], None] | None = None
        #: Functions that undo what `take_over` and `join` have done to this process, the last one first.
        self._undo: list[Callable[[], object]] = []
        #: The same, for what `join` has done for all topologies of this process.
        self._undo_for_all: list[Callable[[], object]] = []
        self._is_guest = self._has_left = False

    # -- three kinds of processes --------------------------------------------------------------------------------

    def install(self) -> TaskLogs:
        """Take over the root logger, stdout and stderr of a worker process. Call this on the worker's thread."""
        self.follow()
        root = logging.getLogger()
        root.handlers[:] = [self]
        root.setLevel(self.level)
        for name in PRINTS:
            setattr(sys, name, LogStream(partial(self._print, name), getattr(sys, name)))
        return self

    def take_over(self, show: Callable[[str | None, logging.LogRecord], None]) -> None:
        """Take over the logging, stdout and stderr of a program that exists for this topology. Call `leave` at the end.

        ``show`` gets each record that goes to the file of a task, with the name of the task, and each line that another thread
        prints, with None. Handlers that write to the console are removed meanwhile, because ``show`` shows the same lines.
        """
        self.follow()
        self._show = show
        root = logging.getLogger()
        self._undo.append(partial(root.setLevel, root.level))
        for logger in (root, *_loggers()):
            for handler in [one for one in logger.handlers if _writes_to_console(one)]:
                if logger is root or logger.propagate:
                    logger.removeHandler(handler)
                    self._undo.append(partial(logger.addHandler, handler))
        root.setLevel(self.level)
        root.addHandler(self)
        for name in PRINTS:
            self._replace(name, LogStream(partial(self._print, name), getattr(sys, name)))

    def join(self) -> None:
        """Get a copy of what tasks log and print in this process, which belongs to the user. Call `leave` at the end.

        The user's handlers get the records that they got before, and no others. The calling thread is the worker's thread, until
        another one calls `follow`.
        """
        self.follow()
        self._is_guest = True
        root = logging.getLogger()
        if self.level < root.level:
            level = root.level
            self._undo_for_all.append(partial(self._set_level_back, level))
            only_before = partial(_passed_before, level)
            for handler in root.handlers:
                if not isinstance(handler, TaskLogs):
                    handler.addFilter(only_before)
                    self._undo_for_all.append(partial(handler.removeFilter, only_before))
            root.setLevel(self.level)
        root.addHandler(self)
        for name in PRINTS:
            self._replace(name, CopiedStream(partial(self._print, name), self._runs_task, getattr(sys, name)))

    def _set_level_back(self, level: int) -> None:
        root = logging.getLogger()
        if root.level == self.usual_level:  # else the user has changed it meanwhile
            root.setLevel(level)

    def _replace(self, name: str, stream: Any) -> None:
        setattr(sys, name, stream)

        def put_back() -> None:
            end_of_output(stream)
            stream.is_over = True
            # If somebody has replaced the stream since, they will put it back. It goes on as a copy of the real stream.
            while getattr(getattr(sys, name), "is_over", False):
                setattr(sys, name, getattr(sys, name).stream)

        self._undo.append(put_back)

    def leave(self) -> None:
        """Get no more records, give the process back, and close all files."""
        root = logging.getLogger()
        root.removeHandler(self)
        others = [one for one in root.handlers if isinstance(one, TaskLogs)]
        if others:
            others[0]._undo_for_all += self._undo_for_all
            self._undo_for_all = []
        for undo in (self._undo, self._undo_for_all):
            while undo:
                undo.pop()()
        self.threads.forget()
        self.acquire()  # another thread may be about to write a record
        try:
            self._has_left = True
            for file in self._files.values():
                file.close()
        finally:
            self.release()
        self.close()

    # -- whose code runs -----------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Take the calling thread for the worker's thread from now on."""
        self.threads.follow()

    def enter(self, task: str | None) -> None:
        """Remember that the worker's thread now runs code of ``task``, or the worker's own code if ``task`` is None."""
        self.threads.current = task

    def enter_on_thread(self, task: str) -> None:
        """Remember that the calling thread runs code of a task from now on."""
        self.threads.enter_on_thread(task)

    def context_of(self, task: str) -> Context:
        """Return a context for a coroutine of a task."""
        return self.threads.context_of(task)

    def _runs_task(self) -> bool:
        code = running_code()
        return code is not None and code.threads is self.threads and code.task is not None

    # -- records -------------------------------------------------------------------------------------------------

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record to the file of the task whose code runs, or to the worker's file."""
        code = running_code(record.thread)
        if self._has_left or (code is not None and code.threads is not self.threads):
            return  # the topology has ended, or another topology of this process gets the record
        task = None if code is None else code.task
        self._file(task or self._worker).emit(record)
        if self._show is not None and (task is not None or record.name in PRINTS):
            # Logging never raises. If the message has no format, the file has reported that already.
            with contextlib.suppress(Exception):
                self._show(task, record)
        if self._is_guest and (code is not None or self is _first()):
            _last_resort(record)

    def _print(self, stream: str, line: str) -> None:
        level = PRINTS[stream]
        if level >= self.usual_level:
            self.handle(logging.LogRecord(stream, level, stream, 0, line, None, None))

    def _file(self, name: str) -> PrivateLogFile:
        handler = self._files.get(name)
        if handler is None:
            path = self.directory / (f"{name}.log" if name == self._worker else file_name(name))
            handler = PrivateLogFile(
                path,
                maxBytes=self._max_bytes,
                backupCount=self._backup_count,
                encoding="utf-8",
                delay=True,
                errors="backslashreplace",  # a name of a file may have half a character
            )
            handler.setFormatter(logging.Formatter(_FORMAT))
            self._files[name] = handler
        return handler


def file_name(task: str) -> str:
    """Return the name of a task's file, which no other task and no worker has.

    >>> file_name("count[0]"), file_name("a b[0]"), file_name("a_b[0]"), file_name("worker[0]")
    ('count-0.log', 'a_b-0-88f1b73b.log', 'a_b-0.log', 'worker-0-58557cff.log')
    """
    plain = task.replace("[", "-").rstrip("]")
    stem = re.sub(r"[^\w.-]", "_", plain)
    if stem == plain and len(stem.encode()) <= _LONGEST_NAME and not _OF_A_WORKER.fullmatch(stem):
        return f"{stem}.log"
    short = stem.encode()[:_LONGEST_NAME].decode(errors="ignore")
    return f"{short}-{zlib.crc32(task.encode(errors='replace')):08x}.log"


def _loggers() -> list[logging.Logger]:
    """Return all loggers of this process but the root logger."""
    known = list(logging.Logger.manager.loggerDict.values())
    return [one for one in known if isinstance(one, logging.Logger)]


def _writes_to_console(handler: logging.Handler) -> bool:
    console = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return getattr(handler, "stream", None) in console


def _first() -> TaskLogs | None:
    return next((one for one in logging.getLogger().handlers if isinstance(one, TaskLogs)), None)


def _last_resort(record: logging.LogRecord) -> None:
    """Write a warning to stderr if the program has configured no logging, as Python does without this handler."""
    resort = logging.lastResort
    if record.name in PRINTS or resort is None or record.levelno < resort.level:
        return
    logger = _logger_of(record)
    while logger is not None:
        if any(not isinstance(one, TaskLogs) for one in logger.handlers):
            return
        logger = logger.parent if logger.propagate else None
    resort.handle(record)


def _passed_before(level: int, record: logging.LogRecord) -> bool:
    """Return whether a record would have reached the root logger's handlers while the root logger had this level."""
    logger = _logger_of(record)
    while logger is not None and logger.parent is not None:
        if logger.level:
            return True
        logger = logger.parent
    return logger is None or record.levelno >= level


def _logger_of(record: logging.LogRecord) -> logging.Logger | None:
    """Return the logger of a record; None if nobody has asked `logging` for it."""
    if record.name == "root":
        return logging.getLogger()
    known = logging.Logger.manager.loggerDict.get(record.name)
    return known if isinstance(known, logging.Logger) else None
