"""Counters that all code of a process shares (J19).

In stormspark, several tasks share a process. Each task reads the metric ``__auto__`` from time to time. A reading returns the
counts of the whole process since the last reading by any task. So the sum over all tasks is correct, but the value of a single
task means nothing.
"""

from __future__ import annotations

import threading
from typing import Any

from stormspark.compat.heronpy.metrics import MultiCountMetric
from stormspark.metrics import Metric

__all__ = ["SharedCounts", "incr", "init", "root_name", "safe_incr"]

root_name = "__auto__"
metricsContainer = MultiCountMetric()  # noqa: N816 - heronpy's name
lock = threading.Lock()


def incr(key: str, to_add: int = 1) -> None:
    """Add to the counter ``key``. Not safe if several threads call it."""
    metricsContainer.incr(key, to_add)


def safe_incr(key: str, to_add: int = 1) -> None:
    """Add to the counter ``key``, from any thread."""
    with lock:
        metricsContainer.incr(key, to_add)


def init(metrics_collector: Any, metrics_bucket: float) -> None:
    """Do nothing, because every task reads the counters anyway."""


class SharedCounts(Metric):
    """A metric: the counts of the process since the last reading by any task, or None if nothing was counted."""

    def get_value_and_reset(self) -> dict[str, int] | None:
        """Return the counts, and begin at 0 again."""
        with lock:
            counts = metricsContainer.get_value_and_reset()
        return {key: count for key, count in counts.items() if count} or None
