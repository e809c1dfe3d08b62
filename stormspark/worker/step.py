"""What a worker is asked for, and what it tells the driver when a batch ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stormspark.errors import ComponentError
from stormspark.metrics import DataPoint, TaskCounters

__all__ = ["ErrorReport", "Step", "WorkerReport", "fatal_error"]


class Step(NamedTuple):
    """One superstep of one attempt at one batch."""

    batch: int
    attempt: int
    superstep: int


@dataclass(frozen=True)
class ErrorReport:
    """An error of a task: raised by user code or reported with ``report_error`` (C4). ``text`` is its
    traceback.
    """

    component: str
    task: int
    text: str


@dataclass(frozen=True)
class WorkerReport:
    """The state of one worker at the end of a batch. Counters are totals since this process began."""

    worker: int
    incarnation: int
    batch: int
    counters: Mapping[int, TaskCounters]
    #: New ones since the last report, oldest first, a bounded number.
    errors: tuple[ErrorReport, ...]
    #: Why the topology has to stop, or None.
    fatal: ErrorReport | None
    #: Whether tuples wait in queues here, or in frames that wait for the next batch.
    backlog: int
    #: What users' metrics read since the last report (J18).
    data_points: tuple[DataPoint, ...] = ()


def fatal_error(reports: Iterable[WorkerReport]) -> ComponentError | None:
    """Why the topology has to stop after a batch with these reports, or None."""
    return next((ComponentError(report.fatal.text) for report in reports if report.fatal is not None), None)
