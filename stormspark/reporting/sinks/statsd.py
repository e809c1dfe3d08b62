"""Sends metrics to StatsD, with its client for Python."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from stormspark.extras import require
from stormspark.reporting.report import Report
from stormspark.reporting.reporter import Reporter, ReporterSettings

__all__ = ["StatsdReporter"]


class StatsdReporter(Reporter):
    """Sends to ``statsd.host`` (localhost) and ``statsd.port`` (8125), by UDP, names that begin with ``statsd.prefix``.

    Counters are sent as what was added since the last report, and all other samples as gauges.
    """

    def prepare(self, settings: ReporterSettings, conf: Mapping[str, Any]) -> None:
        """Read where to send. Raises `UnsupportedEnvironmentError` without the extra ``statsd``."""
        require("statsd", "the reporter statsd")
        self._settings = settings
        self._address = settings.host_and_port("statsd", 8125, "localhost")
        self._prefix = settings.get("statsd.prefix", None, str, "a string")
        self._last: dict[Hashable, float] = {}

    def report(self, report: Report) -> None:
        """Send all samples, many in each datagram."""
        from statsd import StatsClient

        # A client for each report, because it resolves the host's name once.
        client = StatsClient(*self._address, prefix=self._prefix)
        try:
            with client.pipeline() as pipeline:
                for key, (name, kind, value) in report.series(self._settings.takes):
                    if kind == "counter":
                        if added := value - self._last.get(key, 0):
                            pipeline.incr(name, added)
                        self._last[key] = value
                    else:
                        pipeline.gauge(name, value)
        finally:
            client.close()
