"""A log file for each task (X53e). It also receives the task's prints (W8).

Nobody reads the stdout of a worker process, so prints go to log files. A print or a log record of a thread that runs tasks goes
to the file of the task whose code the thread runs at that moment. Prints and log records of other threads, and those of the
worker itself, go to the worker's file.
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

#: A printed line that is longer than this is logged in pieces.
_LONGEST_LINE = 64 * 1024
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class TaskLogs(logging.Handler):
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
        self._current = self._worker
        self._thread = threading.get_ident()
        self._level_before = logging.NOTSET
        #: For each id of an executor's own thread, the task whose code runs on this thread.
        self._on_threads: dict[int, str] = {}

    def install(self) -> TaskLogs:
        """Take over the root logger, stdout and stderr of this process. Call this on the worker's thread."""
        self._thread = threading.get_ident()
        root = logging.getLogger()
        root.handlers[:] = [self]
        root.setLevel(self.level)
        sys.stdout = _Lines(logging.getLogger("stdout"), logging.INFO, sys.stdout)
        sys.stderr = _Lines(logging.getLogger("stderr"), logging.WARNING, sys.stderr)
        return self

    def join(self) -> None:
        """Get the records of this process too, which belongs to the user. Its other handlers and its prints stay as they are.

        Call `leave` at the end. The calling thread is the worker's thread, until another one calls `follow`.
        """
        self.follow()
        root = logging.getLogger()
        self._level_before = root.level
        root.setLevel(min(root.level, self.level))
        root.addHandler(self)

    def follow(self) -> None:
        """Take the calling thread for the worker's thread from now on."""
        self._thread = threading.get_ident()

    def leave(self) -> None:
        """Get no more records, and close all files."""
        root = logging.getLogger()
        root.removeHandler(self)
        if root.level == self.level:
            root.setLevel(self._level_before)
        for file in self._files.values():
            file.close()
        self.close()

    def enter(self, task: str | None) -> None:
        """Remember that the worker's thread now runs code of ``task``, or the worker's own code if ``task`` is None."""
        self._current = task or self._worker

    def enter_on_thread(self, task: str) -> None:
        """Remember that the calling thread runs code of a task from now on."""
        self._on_threads[threading.get_ident()] = task

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record to the file of the task whose code runs, or to the worker's file."""
        thread = record.thread
        name = self._current if thread == self._thread else self._on_threads.get(thread or 0, self._worker)
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
    """Log printed text that is not a whole line yet. Call this before the process ends."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Lines):
            stream.finish()


class _Lines:
    """A stand-in for stdout or stderr that turns whole lines into log records.

    As on a terminal, text after a carriage return replaces the text before it on the line. So only the end of a progress bar is
    logged. A line longer than `_LONGEST_LINE` is logged in pieces.
    """

    def __init__(self, logger: logging.Logger, level: int, stream: TextIO) -> None:
        self._logger = logger
        self._level = level
        self._stream = stream
        self._parts: list[str] = []  # the parts of the line that has not ended
        self._size = 0
        self._returned = False  # whether a carriage return came, after which the next text replaces the line
        self._lock = threading.Lock()
        self.encoding = "utf-8"

    def write(self, text: str) -> int:
        """Log the lines that ``text`` completes."""
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
        """Log the line that has not ended, because no more text will come."""
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
        """Cut pieces of a fixed length off a line that is too long to be kept, and return them."""
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
        """Do nothing, because lines are written when they are complete."""

    def isatty(self) -> bool:
        """Return false, because a log file is no terminal."""
        return False

    def fileno(self) -> int:
        """Return the descriptor of the real stream, for child processes."""
        return self._stream.fileno()
