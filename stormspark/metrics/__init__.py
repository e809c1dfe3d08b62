"""Metrics: exact counters, histograms of latencies, snapshots that engines return (J15, W21), and users' own metrics (J18)."""

from stormspark.metrics.durations import Durations
from stormspark.metrics.histogram import Histogram, LatencySummary
from stormspark.metrics.metric import (
    AssignableMetric,
    CombinedMetric,
    Counter,
    CountMetric,
    DataPoint,
    Distribution,
    Gauge,
    MeanReducer,
    Meter,
    Metric,
    MultiCountMetric,
    MultiReducedMetric,
    ReducedMetric,
    Reducer,
    StateMetric,
    Timer,
)
from stormspark.metrics.quiet import Quiet
from stormspark.metrics.shortfalls import Kind, Shortfall, shortfalls
from stormspark.metrics.statistics import (
    ComponentStatistics,
    LongCall,
    TaskCounters,
    TopologyStatistics,
    summarise,
)

__all__ = [
    "AssignableMetric",
    "CombinedMetric",
    "ComponentStatistics",
    "CountMetric",
    "Counter",
    "DataPoint",
    "Distribution",
    "Durations",
    "Gauge",
    "Histogram",
    "Kind",
    "LatencySummary",
    "LongCall",
    "MeanReducer",
    "Meter",
    "Metric",
    "MultiCountMetric",
    "MultiReducedMetric",
    "Quiet",
    "ReducedMetric",
    "Reducer",
    "Shortfall",
    "StateMetric",
    "TaskCounters",
    "Timer",
    "TopologyStatistics",
    "shortfalls",
    "summarise",
]
