"""Sends metrics to a collector of OpenTelemetry, by OTLP over HTTP, with its library.

The library's instruments would count again what is counted already. So this makes the data that its exporter takes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stormspark.errors import StormsparkError
from stormspark.extras import require
from stormspark.reporting.family import BOUNDS, Distribution, Family
from stormspark.reporting.report import Report
from stormspark.reporting.reporter import Reporter, ReporterSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric, MetricsData

__all__ = ["OpenTelemetryReporter", "metrics_data"]

_TIMEOUT_SECS = 10.0
_EXPORTERS_LOG = "opentelemetry.exporter.otlp.proto.http.metric_exporter"


class OpenTelemetryReporter(Reporter):
    """Sends to ``otlp.endpoint``, such as ``http://collector:4318/v1/metrics``, with the ``otlp.headers``, a mapping.

    What is not set there comes from the environment, by OpenTelemetry's names (``OTEL_EXPORTER_OTLP_ENDPOINT`` and others).
    """

    def prepare(self, settings: ReporterSettings, conf: Mapping[str, Any]) -> None:
        """Make the exporter. Raises `UnsupportedEnvironmentError` without the extra ``opentelemetry``."""
        require("opentelemetry.exporter.otlp.proto.http.metric_exporter", "the reporter opentelemetry")
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        endpoint = settings.get("otlp.endpoint", None, str, "a URL")
        headers = settings.get("otlp.headers", None, Mapping, "a mapping")
        self._settings, self._began = settings, time.time()
        self._exporter = OTLPMetricExporter(
            endpoint=endpoint,
            headers=None if headers is None else {str(key): str(value) for key, value in headers.items()},
            timeout=_TIMEOUT_SECS,
        )

    def report(self, report: Report) -> None:
        """Send all families."""
        from opentelemetry.sdk.metrics.export import MetricExportResult

        me = threading.get_ident()
        said: list[str] = []

        def keep(record: logging.LogRecord) -> bool:
            """Keep what the exporter says of this report, in place of a line in the log for each."""
            if record.thread == me:
                said.append(record.getMessage())
            return record.thread != me

        log = logging.getLogger(_EXPORTERS_LOG)
        log.addFilter(keep)
        try:
            result = self._exporter.export(
                metrics_data(report, self._began), timeout_millis=_TIMEOUT_SECS * 1000
            )
        finally:
            log.removeFilter(keep)
        if result is not MetricExportResult.SUCCESS:
            raise StormsparkError(said[-1] if said else "the collector took nothing")

    def close(self) -> None:
        """End."""
        self._exporter.shutdown(timeout_millis=100)


def metrics_data(report: Report, began: float) -> MetricsData:
    """Return the families as OpenTelemetry has them: sums, gauges and histograms, cumulative since ``began``."""
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    resource = Resource.create({SERVICE_NAME: report.topology, SERVICE_INSTANCE_ID: report.storm_id})
    metrics = [_metric(family, int(began * 1e9), int(report.at * 1e9)) for family in report.families]
    scope = ScopeMetrics(InstrumentationScope("stormspark"), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, began: int, at: int) -> Metric:
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Gauge,
        Histogram,
        HistogramDataPoint,
        Metric,
        NumberDataPoint,
        Sum,
    )

    name = family.name.removesuffix("_total").replace("_", ".", 1)
    cumulative = AggregationTemporality.CUMULATIVE
    data: Histogram | Sum | Gauge
    if family.kind == "histogram":
        nothing: Any = None  # the extremes are not known, and the library has no type for that
        data = Histogram(
            [
                HistogramDataPoint(
                    dict(labels), began, at, one.total, one.seconds, _counts(one), BOUNDS, nothing, nothing
                )
                for labels, one in family.samples
                if isinstance(one, Distribution)
            ],
            cumulative,
        )
    else:
        points = [
            NumberDataPoint(dict(labels), began, at, value)
            for labels, value in family.samples
            if not isinstance(value, Distribution)
        ]
        data = Sum(points, cumulative, is_monotonic=True) if family.kind == "counter" else Gauge(points)
    return Metric(name, family.help, "s" if "_seconds" in family.name else "1", data)


def _counts(value: Distribution) -> list[int]:
    """Return how many durations are in each bucket alone."""
    cumulative = [*value.at_most, value.total]
    return [now - before for now, before in zip(cumulative, [0, *cumulative], strict=False)]
