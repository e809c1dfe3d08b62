"""Lets an interrupt cancel the user's own Spark jobs, and not those of running topologies.

PySpark's handler of SIGINT cancels all jobs of the session. If a notebook's cell is interrupted, the batches that topologies run
just then would fail, and run again. Jupyter puts its own handler back before each cell, so this concerns the cell that starts
Spark, and programs and shells outside of Jupyter.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NoReturn

from pyspark import SparkContext

__all__ = ["spare_jobs"]

_PYSPARKS = "SparkContext._do_init.<locals>.signal_handler"


def spare_jobs(context: SparkContext, groups: Callable[[], Iterable[str]]) -> None:
    """If PySpark's handler of SIGINT is in place, replace it by one that leaves the jobs in ``groups`` alone.

    A handler of the user's stays. Only the main thread can set a handler; in any other thread, this function does nothing.
    """
    before = signal.getsignal(signal.SIGINT)
    is_pysparks = getattr(before, "__qualname__", "") == _PYSPARKS
    if not is_pysparks or threading.current_thread() is not threading.main_thread():
        return

    def interrupted(number: int, frame: FrameType | None) -> NoReturn:
        try:
            _cancel_others(context, groups)
        finally:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)


def _cancel_others(context: SparkContext, groups: Callable[[], Iterable[str]]) -> None:
    tracker = context.statusTracker()
    # The groups come last: a topology's job that begins meanwhile is spared, or not among the active ones.
    active = tracker.getActiveJobsIds()
    spared = {job for group in set(groups()) for job in tracker.getJobIdsForGroup(group)}
    for job in active:
        if job not in spared:
            context._jsc.sc().cancelJob(job)
