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
from pathlib import Path
from typing import TextIO

from stormspark.private_files import PrivateLogFile, make_private

__all__ = ["TaskLogs", "end_of_output"]

#: A printed line that is longer is logged in pieces.
_LONGEST_LINE = 64 * 1024
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class TaskLogs(logging.Handler):
    """Routes log records to ``<directory>/<component>-<index>.log``, rotated at ``max_bytes``,
    ``backup_count`` old ones kept.
    """

    def __init__(self, directory: Path, worker: int, level: str, max_bytes: int, backup_count: int) -> None:
        super().__init__(level)
        self.directory = make_private(directory)
        self._max_bytes = max_bytes
        self._backup_count = backup_count
        self._files: dict[str, PrivateLogFile] = {}
        self._worker = f"worker-{worker}"
        self._current = self._worker
        self._thread = threading.get_ident()

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

    def _file(self, name: str) -> PrivateLogFile:
        handler = self._files.get(name)
        if handler is None:
            stem = re.sub(r"[^\w.-]", "_", name.replace("[", "-").rstrip("]"))
            path = self.directory / f"{stem}.log"
            handler = PrivateLogFile(
                path, maxBytes=self._max_bytes, backupCount=self._backup_count, encoding="utf-8", delay=True
            )
            handler.setFormatter(logging.Formatter(_FORMAT))
            self._files[name] = handler
        return handler


def end_of_output() -> None:
    """Log what is printed and no whole line yet: this process ends."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Lines):
            stream.finish()


class _Lines:
    """Stands for stdout or stderr: whole lines become log records.

    As on a terminal, what comes after a carriage return replaces the line so far: of a progress bar its end is logged. What is
    kept of a line that does not end is bounded.
    """

    def __init__(self, logger: logging.Logger, level: int, stream: TextIO) -> None:
        self._logger = logger
        self._level = level
        self._stream = stream
        self._parts: list[str] = []  # of the line that has not ended
        self._size = 0
        self._returned = False  # to its beginning
        self._lock = threading.Lock()
        self.encoding = "utf-8"

    def write(self, text: str) -> int:
        """Log what is complete of ``text``."""
        with self._lock:
            *ended, rest = text.split("\n")
            lines = []
            for line in ended:
                self._add(line)
                lines += self._cut()
                lines.append(self._take())
            self._add(rest)
            lines += self._cut()
        self._log(lines)
        return len(text)

    def finish(self) -> None:
        """Log what there is of a line that has not ended: nothing more will come."""
        with self._lock:
            line = self._take()
        self._log([line])

    def _add(self, text: str) -> None:
        for number, part in enumerate(text.split("\r")):
            self._returned |= number > 0
            if part:
                if self._returned:
                    self._take()
                self._parts.append(part)
                self._size += len(part)

    def _cut(self) -> list[str]:
        """Pieces of a line that is too long to be kept."""
        if self._size <= _LONGEST_LINE:
            return []
        line = self._take()
        whole = len(line) // _LONGEST_LINE * _LONGEST_LINE
        self._add(line[whole:])
        return [line[at : at + _LONGEST_LINE] for at in range(0, whole, _LONGEST_LINE)]

    def _take(self) -> str:
        line = "".join(self._parts)
        self._parts, self._size, self._returned = [], 0, False
        return line

    def _log(self, lines: list[str]) -> None:
        for line in lines:
            if line:
                self._logger.log(self._level, "%s", line)

    def flush(self) -> None:
        """Lines are written when they are complete."""

    def isatty(self) -> bool:
        """A log file is no terminal."""
        return False

    def fileno(self) -> int:
        """The real stream's, for children."""
        return self._stream.fileno()
