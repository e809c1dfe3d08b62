"""Writes metrics to files of comma-separated values, one for each name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormspark.errors import InvalidTopologyError
from stormspark.private_files import drivers_log_folder, make_private, open_private
from stormspark.reporting.report import Report
from stormspark.reporting.reporter import Reporter, ReporterSettings

__all__ = ["CsvReporter"]

#: A file that is larger gets the name ``NAME.csv.1``, in the place of the one that has it.
_MOST_BYTES = 1_000_000
_HEADER = "t,value\n"


class CsvReporter(Reporter):
    """Adds a line to ``FOLDER/NAME.csv`` for each sample: the seconds since 1970, and the value (Storm's ``CsvStormReporter``).

    The folder is ``csv.log.dir``, or ``csvmetrics`` in the folder with the topology's logs. A file has a megabyte at most, and
    the one before it is kept.
    """

    def prepare(self, settings: ReporterSettings, conf: Mapping[str, Any]) -> None:
        """Find the folder."""
        self._settings = settings
        self._folder: Path | None = None
        named = settings.get("csv.log.dir", None, str, "a folder")
        if named is not None:
            try:
                self._folder = make_private(named)
            except OSError as error:
                msg = f"topology.metrics.reporters: {settings.name!r}: csv.log.dir: {error}"
                raise InvalidTopologyError(msg) from error
        self._log_dir = conf.get("stormspark.log.dir")

    def report(self, report: Report) -> None:
        """Add a line to each file."""
        if self._folder is None:
            self._folder = make_private(drivers_log_folder(self._log_dir, report.topology) / "csvmetrics")
        for one in report.flat(self._settings.takes):
            self._add(self._folder / f"{one.name[-200:]}.csv", f"{int(report.at)},{one.value:.10g}\n")

    def _add(self, file: Path, line: str) -> None:
        descriptor = open_private(file)
        try:
            size = os.fstat(descriptor).st_size
            os.write(descriptor, (line if size else _HEADER + line).encode())
        finally:
            os.close(descriptor)
        if size > _MOST_BYTES:
            file.replace(f"{file}.1")
