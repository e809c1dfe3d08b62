"""Prints metrics."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from stormspark.reporting.report import Report
from stormspark.reporting.reporter import Reporter, ReporterSettings

__all__ = ["ConsoleReporter"]


class ConsoleReporter(Reporter):
    """Prints all samples to the driver's standard output (Storm's ``ConsoleStormReporter``)."""

    def prepare(self, settings: ReporterSettings, conf: Mapping[str, Any]) -> None:
        """Begin."""
        self._settings = settings

    def report(self, report: Report) -> None:
        """Print the time, and a line for each sample."""
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(report.at))
        lines = [f"{one.name} = {one.value:.10g}" for one in report.flat(self._settings.takes)]
        sys.stdout.write("\n".join([f"-- metrics of {report.topology} at {at}", *lines, ""]))
        sys.stdout.flush()
