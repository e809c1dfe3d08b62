"""Counters that all code of a process shares (J19).

Here several tasks may share a process. Each reading of ``__auto__`` takes what the whole process has counted since the last
one, whichever task it is told under: the sum over tasks is right, a single task's share says nothing.
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
    """Add to the counter ``key``; for code of one thread."""
    metricsContainer.incr(key, to_add)


def safe_incr(key: str, to_add: int = 1) -> None:
    """Add to the counter ``key``, whatever thread this is."""
    with lock:
        metricsContainer.incr(key, to_add)


def init(metrics_collector: Any, metrics_bucket: float) -> None:
    """Nothing to do: every task reads the counters by itself."""


class SharedCounts(Metric):
    """What the process has counted since anybody read it; None where that is nothing."""

    def get_value_and_reset(self) -> dict[str, int] | None:
        """Take it."""
        with lock:
            counts = metricsContainer.get_value_and_reset()
        return {key: count for key, count in counts.items() if count} or None
