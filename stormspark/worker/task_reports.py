"""The errors of a task, and the failures of trees, that the task reports to the driver. Their number per interval is limited
(C4).
"""

from __future__ import annotations

import logging
import re
import traceback
from collections import deque
from collections.abc import Callable

from stormspark.errors import ComponentError
from stormspark.java_names import meant
from stormspark.plan.physical import ComponentPlan
from stormspark.user_line import raised_at
from stormspark.worker.step import ErrorReport
from stormspark.working_folder import about_relative_path

__all__ = ["TaskReports"]

#: The driver keeps the last errors of each component, and sends them to whoever asks. A message may hold a whole tuple, or the
#: output of a program. So a report has at most so many characters, and so have its lines.
_MOST, _LONGEST_LINE = 100_000, 10_000
#: A line of code that awaits what a method of a collector returns.
_AWAITS_COLLECTOR = re.compile(r"\bawait\b.*\.(emit|emit_direct|ack|fail|reset_timeout|report_error)\b")


class TaskReports:
    """The reports of one task that the driver has not got yet. ``name`` is the task's name; ``clock`` returns seconds."""

    def __init__(self, component: ComponentPlan, task: int, name: str, clock: Callable[[], float]) -> None:
        self._component, self._task, self._name, self._clock = component, task, name, clock
        self._most = component.settings.errors_per_interval
        self._interval = component.settings.error_interval_secs
        #: The task's logger, for what stormspark itself says about the task. The component logs with the same logger.
        self.logger = logging.LoggerAdapter(
            logging.getLogger(f"stormspark.task.{component.id}"), {"is_report": True}
        )
        self.errors: list[ErrorReport] = []
        self.failures: list[ErrorReport] = []
        #: The times at which errors were reported.
        self._errors_at: deque[float] = deque(maxlen=self._most)
        #: For each kind of failure of trees, the times at which failures were reported.
        self._failures_at: dict[str, deque[float]] = {}

    def add_error(self, error: BaseException | str, remark: str = "") -> None:
        """Log an error and report it to the driver, unless too many errors were reported lately.

        The ``remark`` says what follows from the error. It ends with a colon.
        """
        now, reported_at = self._clock(), self._errors_at
        if not self._may_report(reported_at, now):
            return
        text = error if isinstance(error, str) else _at(error, "{}: ") + _traceback(error)
        if hint := self._hint(error):
            remark = f"{remark} {hint}:" if remark else f"{hint}:"
        if self._is_full(reported_at, now):
            last = (
                f"(the last one reported for now: more than {self._most} in {self._interval:g} s are counted only, see "
                f"topology.max.error.report.per.interval)"
            )
            remark = f"{last} {remark}" if remark else last
        if remark:
            # In a line before the error, because summaries show the last line, and that has to be the error itself.
            text = f"{remark}\n{text}"
        report = self.report_of(text)
        self.errors.append(report)
        self.logger.error("%s: %s", self._name, report.text)

    def add_restart(self, error: BaseException, number: int, allowed: int, pause: float) -> None:
        """Report an error after which the task starts again in ``pause`` seconds, as `add_error` does. This is restart ``number``
        in a row. If more than ``allowed`` restarts are needed, the task does not start again, so nothing is said about it.
        """
        when = f"in {pause:g} s" if pause else "at once"
        remark = f"starts again {when} (restart {number} of at most {allowed} in a row):"
        self.add_error(error, remark if number <= allowed else "")

    def add_failure(self, kind: str, text: str) -> None:
        """Log a failure of trees and report it to the driver. Each ``kind`` of failure has the same limit per interval as
        errors.
        """
        reported_at = self._failures_at.setdefault(kind, deque(maxlen=self._most))
        if self._may_report(reported_at, self._clock()):
            report = self.report_of(text)
            self.failures.append(report)
            self.logger.warning("%s: %s", self._name, report.text)

    def report_of(self, text: str) -> ErrorReport:
        """Make the report of an error of this task, or of a failure."""
        return ErrorReport(self._component.id, self._task, _bounded(text))

    def component_error(self, what: str, error: BaseException) -> ComponentError:
        """Make the error that stops the topology after ``error``. ``what`` says what has happened, like "raised in open"."""
        component = self._component
        text = "".join(traceback.format_exception(error))
        msg = (
            f"{component.kind} {component.id!r}, task {self._task} ({self._name}), declared at {component.declared_at}, "
            f"{what}: {type(error).__name__}: {error}{_at(error, ' (at {})')}\n{text}"
        )
        if hint := self._hint(error):
            msg = f"{msg.rstrip()}\n{hint}"
        return ComponentError(msg)

    def _hint(self, error: BaseException | str) -> str:
        """Return what to do about an error whose own words do not say it; otherwise nothing."""
        if isinstance(error, str):
            return ""
        return (
            self._about_imports(error)
            or self._about_threads(error)
            or _about_await(error)
            or about_relative_path(error)
            or _about_exit(error)
            or meant(error)
        )

    def _about_imports(self, error: BaseException) -> str:
        """Return what to do if executors have imported modules of one package on several threads at the same time."""
        if type(error).__name__ != "_DeadlockError":
            return ""
        return (
            f"another thread was importing the same package: import it at the top of the module of this {self._component.kind}, "
            f"and not in its methods"  # A16
        )

    def _about_threads(self, error: BaseException) -> str:
        """Return what to do if an object of sqlite3 was made on another thread because the user wants no threads; otherwise
        nothing.
        """
        of_sqlite = type(error).__module__ == "sqlite3" and "in that same thread" in str(error)
        component = self._component
        if not of_sqlite or component.threads_reason:
            return ""
        if component.settings.executor_threads == "never":
            instead = f"set stormspark.executor.threads of this {component.kind} to 'always'"
        elif component.says_that_it_computes:
            instead = f"remove waits = False from this {component.kind}"
        else:
            return ""
        return f"{instead}, so that all its calls come from one thread of its own"

    def take_errors(self) -> list[ErrorReport]:
        """Return the errors since the last call, oldest first."""
        errors, self.errors = self.errors, []
        return errors

    def take_failures(self) -> list[ErrorReport]:
        """Return the failures of trees since the last call, oldest first."""
        failures, self.failures = self.failures, []
        return failures

    def _may_report(self, reported_at: deque[float], now: float) -> bool:
        """Return whether there is room for one more report, and note its time."""
        if self._is_full(reported_at, now):
            return False
        reported_at.append(now)
        return True

    def _is_full(self, reported_at: deque[float], now: float) -> bool:
        return len(reported_at) == reported_at.maxlen and now - reported_at[0] < self._interval


def _bounded(text: str) -> str:
    """Return a text of a report without the middle of what is too long: of its lines, and of the text."""
    if len(text) <= _LONGEST_LINE:
        return text
    lines = [_without_middle(line, _LONGEST_LINE) for line in text.split("\n")]
    return _without_middle("\n".join(lines), _MOST)


def _without_middle(text: str, most: int) -> str:
    """Return at most about ``most`` characters of a text: its beginning and its end.

    >>> _without_middle("0123456789", 4)
    '01 ... (6 characters are left out) ... 89'
    """
    left_out = len(text) - most
    if left_out <= 0:
        return text
    half = most // 2
    return f"{text[:half]} ... ({left_out:,} characters are left out) ... {text[-half:]}"


def _about_exit(error: BaseException) -> str:
    """Return what to do in place of ``sys.exit``; nothing if the error is another one."""
    if not isinstance(error, SystemExit) and not isinstance(error.__cause__, SystemExit):
        return ""
    return (
        "sys.exit, exit and quit end no worker, because it runs other tasks, too: return, or raise another exception if "
        "something is wrong"
    )


def _about_await(error: BaseException) -> str:
    """Return what to do about an ``await`` of what a method of a collector returns, which is None; otherwise nothing."""
    if not (isinstance(error, TypeError) and "NoneType" in str(error) and "await" in str(error)):
        return ""
    lines = traceback.extract_tb(error.__traceback__)
    if not (lines and _AWAITS_COLLECTOR.search(lines[-1].line or "")):
        return ""
    return "call emit, ack and fail of the collector without await, because they never wait"


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def _at(error: BaseException, text: str) -> str:
    """Return ``text`` with the line of user code that raised ``error``. If no such line is known, return nothing."""
    line = raised_at(error)
    return "" if line is None else text.format(line)
