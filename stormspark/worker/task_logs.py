"""A log file for each task (X53e), and ``print`` that does no harm (W8).

In a worker process nothing but log files listens to stdout. What a task prints or logs goes to its own file,
by the task that the worker's thread is in at the moment; what other threads and the worker itself say goes to
the worker's.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

__all__ = ["TaskLogs"]

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class TaskLogs(logging.Handler):
    """Routes log records to ``<directory>/<component>-<index>.log``, rotated at ``max_bytes``,
    ``backup_count`` old ones kept.
    """

    def __init__(self, directory: Path, worker: int, level: str, max_bytes: int, backup_count: int) -> None:
        super().__init__(level)
        self.directory = directory
        self._max_bytes = max_bytes
        self._backup_count = backup_count
        self._files: dict[str, RotatingFileHandler] = {}
        self._worker = f"worker-{worker}"
        self._current = self._worker
        self._thread = threading.get_ident()
        directory.mkdir(parents=True, exist_ok=True)

    def install(self) -> TaskLogs:
        """Take over the root logger, stdout and stderr of this process; call it on the thread that runs
        tasks.
        """
        self._thread = threading.get_ident()
        root = logging.getLogger()
        root.handlers[:] = [self]
        root.setLevel(self.level)
        sys.stdout = _Lines(logging.getLogger("stdout"), logging.INFO, sys.stdout)
        sys.stderr = _Lines(logging.getLogger("stderr"), logging.WARNING, sys.stderr)
        return self

    def enter(self, task: str | None) -> None:
        """The worker's thread begins to run a task, or None: it does something of its own."""
        self._current = task or self._worker

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record to the file of the task that runs."""
        name = self._current if record.thread == self._thread else self._worker
        self._file(name).emit(record)

    def _file(self, name: str) -> RotatingFileHandler:
        handler = self._files.get(name)
        if handler is None:
            stem = re.sub(r"[^\w.-]", "_", name.replace("[", "-").rstrip("]"))
            path = self.directory / f"{stem}.log"
            handler = RotatingFileHandler(
                path, maxBytes=self._max_bytes, backupCount=self._backup_count, encoding="utf-8", delay=True
            )
            handler.setFormatter(logging.Formatter(_FORMAT))
            self._files[name] = handler
        return handler


class _Lines:
    """Stands for stdout or stderr: whole lines become log records."""

    def __init__(self, logger: logging.Logger, level: int, stream: TextIO) -> None:
        self._logger = logger
        self._level = level
        self._stream = stream
        self._rest = ""
        self.encoding = "utf-8"

    def write(self, text: str) -> int:
        """Log what is complete of ``text``."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line:
                self._logger.log(self._level, "%s", line)
        return len(text)

    def flush(self) -> None:
        """Lines are written when they are complete."""

    def isatty(self) -> bool:
        """A log file is no terminal."""
        return False

    def fileno(self) -> int:
        """The real stream's, for children."""
        return self._stream.fileno()
