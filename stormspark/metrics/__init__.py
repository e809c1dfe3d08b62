"""Exact counters and latency histograms, and the frozen snapshots that engines report (J15, W21)."""

from stormspark.metrics.histogram import Histogram, LatencySummary
from stormspark.metrics.statistics import ComponentStatistics, TaskCounters, TopologyStatistics, summarise

__all__ = [
    "ComponentStatistics",
    "Histogram",
    "LatencySummary",
    "TaskCounters",
    "TopologyStatistics",
    "summarise",
]
