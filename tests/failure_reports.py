"""A failure is named at once, and one that can't be shown as usual is shown plainly, and the run goes on.

A whole run takes 20 minutes, and pytest tells of failures at its end, if there is one.

pytest builds what it shows of a failure in the process that ran the test, and an exception there ends the run, with
pytest-xdist all of it. Where tests start threads it is likely. Before Python 3.12 the garbage collector runs finalizers and
callbacks, and with them other threads, while ``ast.parse`` makes its objects. What they run may parse too: each traceback
does, for its carets. Then the first one raises ``SystemError: AST constructor recursion depth mismatch``. So nothing is
collected while a report is made.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Generator

import pytest

__all__ = ["NamedAtOnce", "pytest_runtest_makereport"]


class NamedAtOnce:
    """Writes the name of a test that fails to the terminal when it fails."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write it on a line of its own, after the letter, with the first line of the error."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)  # a process that has died leaves none
            why = "" if crash is None else f": {crash.message.partition(chr(10))[0]:.300}"
            self._terminal.write_line(f" {report.when} of {report.nodeid}{why}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of a test's setup, call or teardown, whatever becomes of it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    except Exception as error:
        return _plain(item, call, error)
    finally:
        if collects:
            gc.enable()


def _plain(item: pytest.Item, call: pytest.CallInfo[None], error: Exception) -> pytest.TestReport:
    """A failure's report, of nothing that can raise."""
    failure = _text(call.excinfo.value) if call.excinfo else ""
    return pytest.TestReport(
        item.nodeid,
        item.location,
        dict.fromkeys(item.keywords, 1),
        "failed",
        f"{failure}\nIts report could not be made: {_text(error)}",
        call.when,  # type: ignore[arg-type]  # never that of a collection
        [(f"Captured {key} {when}", content) for when, key, content in item._report_sections],
        call.duration,
        call.start,
        call.stop,
    )


def _text(error: BaseException) -> str:
    """A traceback, or as much of it as can be had: Python 3.13 parses for more of it than 3.12 does."""
    try:
        return "".join(traceback.format_exception(error))
    except Exception:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        return f"{_message(error)}, whose traceback can't be shown, at {''.join(map(str, last))}"


def _message(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, which can't be shown"
