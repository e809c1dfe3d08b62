"""Families as Prometheus reads them: its text format, or OpenMetrics. The library of Prometheus writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from stormspark.reporting.family import BOUNDS, Distribution, Family

__all__ = ["Collected", "exposition"]


class Collected(Collector):
    """Families in the place of a registry of Prometheus's library."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield the families as the library has them."""
        return map(_metric, self._families)


def _metric(family: Family) -> Metric:
    names = list(family.samples[0].labels)
    metric: GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily
    if family.kind == "histogram":
        metric = HistogramMetricFamily(family.name, family.help, labels=names)
    elif family.kind == "counter":
        metric = CounterMetricFamily(family.name, family.help, labels=names)
    else:
        metric = GaugeMetricFamily(family.name, family.help, labels=names)
    for labels, value in family.samples:
        texts = list(labels.values())
        if isinstance(value, Distribution):
            assert isinstance(metric, HistogramMetricFamily)
            metric.add_metric(texts, _buckets(value), value.seconds)
        else:
            assert not isinstance(metric, HistogramMetricFamily)
            metric.add_metric(texts, value)
    return metric


def _buckets(value: Distribution) -> Sequence[tuple[str, float]]:
    bounds: Iterable[tuple[float, int]] = zip(BOUNDS, value.at_most, strict=True)
    return [*((repr(bound), float(count)) for bound, count in bounds), ("+Inf", float(value.total))]


def exposition(families: Sequence[Family], accept: str = "") -> tuple[bytes, str]:
    """Return the families in the format that an ``Accept`` header asks for, with its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(Collected(families)), content_type
