"""Shows what the tasks of a local topology log and print, above the progress line."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TextIO

from stormspark.ui.line import ProgressLine
from stormspark.worker.host.task_logs import PRINTS
from stormspark.worker.host.task_threads import running_code

__all__ = ["TaskOutput", "comes_from_component"]

#: The loggers of components. stormspark's own messages about a task come from the same loggers, and are marked as reports.
_COMPONENTS = ("stormspark.task.", "pystorm.component.")


class TaskOutput:
    """Writes the records of `TaskLogs.take_over` to the streams of this program, one line each or more.

    What a task prints appears as it is, on the stream that the task has printed to. What it logs goes to ``stderr`` and begins
    with the task's name. On a terminal, everything goes above the progress ``line``. If ``quiet``, nothing is shown.

    >>> import sys
    >>> from rich.console import Console
    >>> output = TaskOutput(ProgressLine(Console(file=sys.stdout)), sys.stdout, sys.stdout)
    >>> record = logging.makeLogRecord({"name": "mine", "levelname": "INFO", "levelno": 20, "msg": "seen"})
    >>> output.show("count[0]", record)
    count[0] INFO mine: seen
    >>> record.name = "stdout"
    >>> output.show("count[0]", record)
    seen
    """

    def __init__(self, line: ProgressLine, stdout: TextIO, stderr: TextIO, *, quiet: bool = False) -> None:
        self._line, self._quiet = line, quiet
        self._streams = {"stdout": stdout, "stderr": stderr}
        self._on_terminal = {name: line.is_live and stream.isatty() for name, stream in self._streams.items()}
        self._format = logging.Formatter().format
        self._lock = threading.Lock()

    def show(self, task: str | None, record: logging.LogRecord) -> None:
        """Show a record of a task; None is a thread that belongs to no task."""
        if self._quiet:
            return
        if record.name in PRINTS:
            self._write(record.name, record.getMessage())
        elif comes_from_component(record):
            name = "" if record.name.startswith(_COMPONENTS) else f"{record.name}: "
            self._write("stderr", f"{task} {record.levelname} {name}{self._format(record)}")

    def _write(self, stream: str, text: str) -> None:
        # Nobody may read the output any longer, as with `| head`. This is no error of the task that prints.
        with contextlib.suppress(OSError, ValueError):
            if self._on_terminal[stream]:
                self._line.say(text)
                return
            with self._lock:
                to = self._streams[stream]
                to.write(f"{text}\n")
                to.flush()


def comes_from_component(record: logging.LogRecord) -> bool:
    """Return whether code of a component has logged a record in this process, and not stormspark itself."""
    if record.name.startswith(_COMPONENTS):
        code = running_code(record.thread)
        return code is not None and code.task is not None and not getattr(record, "is_report", False)
    return record.name != "stormspark" and not record.name.startswith("stormspark.")
