"""Shows warnings and errors to somebody who watches a topology, one line each. The logs have the details."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from stormspark.ui.output import comes_from_component
from stormspark.ui.printable import printable
from stormspark.worker.host.logger_levels import LevelledHandler

__all__ = ["TRACEBACK", "LogLines", "before_traceback", "one_line_of"]

#: The line in which Python's tracebacks begin.
TRACEBACK = "Traceback (most recent call last):"


class LogLines(LevelledHandler):
    """A log handler that passes this package's warnings and errors to ``say`` while its ``with`` block lasts.

    A bolt that fails each of its tuples must not make everything else scroll away. So after ``burst`` lines, the handler shows at
    most one line per ``every`` seconds, with the number of lines that were left out.

    >>> with LogLines(print):
    ...     logging.getLogger("stormspark.spark").warning("worker %d was lost", 1)
    worker 1 was lost
    """

    def __init__(self, say: Callable[[str], None], burst: int = 5, every: float = 5.0) -> None:
        super().__init__(logging.WARNING)
        self._say = say
        self._burst = burst
        self._every = every
        self._shown = 0
        self._shown_at = float("-inf")
        self._left_out = 0
        self._logger = logging.getLogger("stormspark")

    def __enter__(self) -> Self:
        self._logger.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._logger.removeHandler(self)
        if self._left_out:
            lines = "line" if self._left_out == 1 else "lines"
            self._say(f"and {self._left_out:,} more such {lines}")

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record, or count it. What components log themselves is not shown here, see `TaskOutput`."""
        if comes_from_component(record):
            return
        if self._shown >= self._burst and record.created - self._shown_at < self._every:
            self._left_out += 1
            return
        left_out = f" (earlier lines that were left out: {self._left_out:,})" if self._left_out else ""
        self._shown, self._shown_at, self._left_out = self._shown + 1, record.created, 0
        self._say(one_line(record) + left_out)


def one_line(record: logging.LogRecord) -> str:
    r"""Return a record's message in one line. Of several lines, only the first and the last stay.

    So of a traceback only the error at its end stays, and what stands before the traceback.

    >>> text = "split[0]: starts again:\nsplit.py:7: Traceback (most recent call last):\n  File ...\nValueError: no number"
    >>> one_line(logging.makeLogRecord({"msg": text}))
    'split[0]: starts again: split.py:7: ValueError: no number'
    """
    error = record.exc_info[1] if record.exc_info else None
    reason = f": {type(error).__name__}: {(str(error).splitlines() or [''])[0]}" if error else ""
    return one_line_of(record.getMessage()) + printable(reason)


def one_line_of(text: str) -> str:
    """Return a message in one line, as `one_line` does."""
    lines = text.strip().splitlines() or [""]
    if len(lines) > 1:
        first = [] if lines[0].endswith(TRACEBACK) else [lines[0]]
        lines = [*first, before_traceback(lines), lines[-1].strip()]
    return printable(" ".join(filter(None, lines)))


def before_traceback(lines: Sequence[str]) -> str:
    """Return what stands before a traceback in the line in which it begins, such as the line of code that raised the error.

    >>> before_traceback(["split.py:7: Traceback (most recent call last):", "  File ...", "ValueError: no number"])
    'split.py:7:'
    """
    return next((line.removesuffix(TRACEBACK).rstrip() for line in lines if line.endswith(TRACEBACK)), "")
