"""What a worker is asked for, and what it tells the driver when a batch ends."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from stormspark.api import SourceProgress
from stormspark.backpressure import TaskLoad
from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.errors import ComponentError
from stormspark.metrics import DataPoint, TaskCounters
from stormspark.worker.round_orders import PLAIN_ORDERS, RoundOrders
from stormspark.worker.tuples.salvage import salvage

__all__ = [
    "ErrorReport",
    "Step",
    "TransactionReport",
    "WorkerReport",
    "fatal_error",
    "merge_loads",
    "merge_progress",
    "read_report",
]


class Step(NamedTuple):
    """One superstep of one attempt at one batch.

    ``superstep`` goes on counting where a batch is prolonged by further rounds: with S + 1 supersteps a round, the second one
    begins with superstep S + 1.
    """

    batch: int
    attempt: int
    superstep: int
    orders: RoundOrders = PLAIN_ORDERS


@dataclass(frozen=True)
class ErrorReport:
    """An error of a task: raised by user code or reported with ``report_error`` (C4). ``text`` is its
    traceback.
    """

    component: str
    task: int
    text: str


class TransactionReport(NamedTuple):
    """How far a worker is with a batch that is a transaction."""

    #: Tuples and rows that wait for another round.
    left: int
    #: Why the batch can't be committed, or None.
    aborts: str | None
    #: It is worked off here, and its changes are in ``file``, or are it; None where nothing has changed.
    prepared: bool
    file: FileDescription | ChangedRows | None
    #: Ids of rows of sources whose trees failed, by task.
    failed_rows: Mapping[int, tuple[Hashable, ...]]
    #: Whether bolts have to hear of the batch's end, and what a later attempt has to know of this one (`EarlierAttempts`).
    begun: bool = False
    announced: Mapping[str, bytes] | None = None
    #: Whether ``aborts`` is storage or a broker that is away, and no user code.
    outside: bool = False
    #: Tuples that bolts keep over its end, and that are not in their state.
    held: int = 0


@dataclass(frozen=True)
class WorkerReport:
    """The state of one worker at the end of a round. Counters are totals since this process began."""

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
    #: What was told of trees that failed since the last report, oldest first, a bounded number; these are no errors of tasks.
    failures: tuple[ErrorReport, ...] = ()
    #: How far the tasks of each source spout have come.
    sources: Mapping[str, SourceProgress] = field(default_factory=dict)
    #: For the durable acker: change sets that may not be written yet, oldest first, each with its number (`AckerLog`).
    acker: tuple[tuple[int, bytes], ...] = ()
    #: What each task did in this round, for the controller of backpressure.
    loads: Mapping[int, TaskLoad] = field(default_factory=dict)
    #: Seconds that the worker was at work in this round.
    worked: float = 0.0
    #: Seconds in which it went on between supersteps, since the last report.
    filled: float = 0.0
    #: Nothing happened here in this round, and nothing waits.
    idle: bool = False
    #: And nothing will happen that the worker would not see by itself: no tree is open, nothing is at work outside.
    at_rest: bool = False
    #: Of a topology whose batches are transactions: how the batch ends here.
    transaction: TransactionReport | None = None


def read_report(payload: bytes) -> WorkerReport:
    """A worker's report, without the readings of users' metrics that can't be unpickled here: these are errors of their tasks."""
    try:
        return pickle.loads(payload)  # type: ignore[no-any-return]
    except Exception:
        read = salvage(payload, keep=(WorkerReport, DataPoint))
        if not isinstance(read.whole, WorkerReport):
            raise
    report = read.whole
    errors = [
        ErrorReport(
            point.component,
            point.task,
            f"metric {point.name!r}: its value can't be unpickled in the driver: {reason}. Return numbers, strings, or lists and "
            f"dicts of them (J18)",
        )
        for point in report.data_points
        if (reason := read.damage_of(point.value)) is not None
    ]
    points = tuple(point for point in report.data_points if read.damage_of(point.value) is None)
    return replace(report, data_points=points, errors=(*report.errors, *errors))


def fatal_error(reports: Iterable[WorkerReport]) -> ComponentError | None:
    """Why the topology has to stop after a batch with these reports, or None."""
    return next((ComponentError(report.fatal.text) for report in reports if report.fatal is not None), None)


def merge_loads(reports: Iterable[WorkerReport]) -> dict[int, TaskLoad]:
    """What the tasks of all workers did in a round, by task id."""
    return {task: load for report in reports for task, load in report.loads.items()}


def merge_progress(told: Iterable[Mapping[str, SourceProgress]]) -> dict[str, SourceProgress]:
    """What several tasks, or workers, say of each source spout in one batch, as one.

    >>> merge_progress([{"s": SourceProgress(3, {"t-0": 7, "t-1": 2})}, {"s": SourceProgress(1, {"t-0": 5})}])
    {'s': SourceProgress(waiting=4, low_marks={'t-0': 5, 't-1': 2}, came=0, limit=None)}
    """
    by_component: dict[str, list[SourceProgress]] = {}
    for one in told:
        for component, progress in one.items():
            by_component.setdefault(component, []).append(progress)
    return {component: _merged(progress) for component, progress in by_component.items()}


def _merged(everything: Sequence[SourceProgress]) -> SourceProgress:
    marks: dict[str, int] = {}
    for one in everything:
        for partition, position in (one.low_marks or {}).items():
            marks[partition] = min(position, marks.get(partition, position))
    asked = all(one.low_marks is not None for one in everything)
    waiting, came = (sum(one.waiting for one in everything), sum(one.came for one in everything))
    return SourceProgress(waiting, marks if asked else None, came)
