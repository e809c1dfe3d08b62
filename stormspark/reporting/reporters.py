"""Runs the reporters of a topology, in the driver, each on a thread of its own (J18).

A reporter that fails, or waits for a host that is gone, holds up nobody else. The topology never waits for one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from stormspark.errors import InvalidTopologyError, StormsparkError
from stormspark.plan.physical import PhysicalPlan
from stormspark.reporting.registered import class_of
from stormspark.reporting.report import Report
from stormspark.reporting.reporter import REPORTERS, Reporter, ReporterSettings
from stormspark.reporting.throttled_log import ThrottledLog

__all__ = ["Sender", "senders_of"]

_log = logging.getLogger(__name__)

_SINKS = {
    "console": "console:ConsoleReporter",
    "csv": "csv_files:CsvReporter",
    "graphite": "graphite:GraphiteReporter",
    "statsd": "statsd:StatsdReporter",
    "opentelemetry": "open_telemetry:OpenTelemetryReporter",
}
#: The stock reporters by their short names, and by the names of Storm's that they stand for.
STOCK = {name: f"stormspark.reporting.sinks.{place}" for name, place in _SINKS.items()} | {
    f"org.apache.storm.metrics2.reporters.{name.capitalize()}StormReporter": f"stormspark.reporting.sinks.{_SINKS[name]}"
    for name in ("console", "csv", "graphite")
}


def senders_of(plan: PhysicalPlan) -> list[Sender]:
    """Return the reporters that a topology names. Raises `InvalidTopologyError` for one that can't be.

    A class of Java, such as that for JMX, has no effect, and a warning says so.
    """
    found: list[Sender] = []
    for entry in plan.conf.get(REPORTERS) or ():
        settings = ReporterSettings.read(entry)
        cls = class_of(settings.name, REPORTERS, STOCK, Reporter)
        if cls is None:
            _log.warning(
                "%s names %s, which is no class of Python: it reports nothing; choose one of %s, or write a "
                "stormspark.reporting.Reporter, and name it as module:Class",
                REPORTERS,
                settings.name,
                ", ".join(_SINKS),
            )
            continue
        try:
            reporter: Reporter = cls()
            reporter.prepare(settings, plan.conf)
        except StormsparkError:
            raise
        except (Exception, SystemExit) as error:
            msg = f"{REPORTERS}: {settings.name!r} could not begin: {type(error).__name__}: {error}"
            raise InvalidTopologyError(msg) from error
        found.append(Sender(settings, reporter))
    return found


class Sender:
    """One reporter. `begin`, then, if a test drives the clock, `step`; then `end` and `join`."""

    def __init__(self, settings: ReporterSettings, reporter: Reporter) -> None:
        self._settings, self._reporter = settings, reporter
        self._failures = ThrottledLog(f"metrics reporter {settings.name}")
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, make: Callable[[], Report], clock: Callable[[], float] | None = None) -> None:
        """Report regularly what ``make`` returns. There is a thread for it, unless a test drives the ``clock``."""
        self._make, self._clock = make, clock or time.monotonic
        self._next = self._clock() + self._settings.period_secs
        if clock is None:
            name = f"reporter {self._settings.name}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._ends.wait(max(0.0, self._next - self._clock())):
            self.step()
        self._finish()

    def step(self) -> None:
        """Report if it is time."""
        now = self._clock()
        if now >= self._next:
            self._next = max(self._next + self._settings.period_secs, now)
            self._report()

    def _report(self) -> None:
        try:
            self._reporter.report(self._make())
        except (
            Exception,
            SystemExit,
        ) as error:  # in a thread, exit would end the thread alone, without a word
            self._failures.failed(error)
        else:
            self._failures.worked()

    def _finish(self) -> None:
        self._report()
        try:
            self._reporter.close()
        except (Exception, SystemExit) as error:
            self._failures.failed(error)

    def end(self) -> None:
        """Begin to end: report once more."""
        self._ends.set()
        if self._thread is None:
            self._finish()

    def join(self, seconds: float) -> None:
        """Wait for the last report, for a number of seconds at most."""
        if self._thread is not None:
            self._thread.join(seconds)
