"""The step that a worker is to run, and the report that it sends to the driver at the end of a round."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from stormspark.api import SourceProgress
from stormspark.backpressure import TaskLoad
from stormspark.checkpoint.dead_letters import Letter
from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.errors import ComponentError
from stormspark.metrics import DataPoint, TaskCounters
from stormspark.worker.busy import Busy
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

    ``superstep`` counts all supersteps of a batch. With three supersteps per round, the second round begins with superstep 3.
    """

    batch: int
    attempt: int
    superstep: int
    orders: RoundOrders = PLAIN_ORDERS


@dataclass(frozen=True)
class ErrorReport:
    """An error of a task. User code has raised the error, or reported it with ``report_error`` (C4).

    ``text`` is the traceback or the message.
    """

    component: str
    task: int
    text: str


class TransactionReport(NamedTuple):
    """A worker's report on a batch that is a transaction. It says how far the worker is with the batch."""

    #: How many tuples and rows wait for another round.
    left: int
    #: Why the batch can't be committed, or None.
    aborts: str | None
    #: Whether the worker has prepared the batch. If so, ``file`` describes the file of the batch's changes, or holds the
    #: changed rows themselves. ``file`` is None if nothing has changed.
    prepared: bool
    file: FileDescription | ChangedRows | None
    #: For each task, the ids of rows of sources whose trees failed.
    failed_rows: Mapping[int, tuple[Hashable, ...]]
    #: Whether a component takes part in the batch, so that bolts have to be told of the end of the batch.
    begun: bool = False
    #: The announcements that a later attempt at the batch has to repeat (`EarlierAttempts`); None if there are no announcements
    #: to make now.
    announced: Mapping[str, bytes] | None = None
    #: Whether ``aborts`` names storage or a broker that can't be reached, and not user code.
    outside: bool = False
    #: How many tuples bolts hold beyond the end of the batch, outside of their state.
    held: int = 0
    #: How many calls are under way on threads of executors. They count in ``left``, too.
    calls: int = 0


@dataclass(frozen=True)
class WorkerReport:
    """The report of one worker at the end of a round. Counters are totals since this process began."""

    worker: int
    incarnation: int
    batch: int
    counters: Mapping[int, TaskCounters]
    #: The errors since the last report, oldest first; their number is bounded.
    errors: tuple[ErrorReport, ...]
    #: Why the topology has to stop, or None.
    fatal: ErrorReport | None
    #: How many tuples, rows, calls and acks wait in this worker: in queues, and in frames for the next round.
    backlog: int
    #: The readings of users' metrics since the last report (J18).
    data_points: tuple[DataPoint, ...] = ()
    #: The failures of trees since the last report, oldest first; their number is bounded. They do not count as errors of tasks.
    failures: tuple[ErrorReport, ...] = ()
    #: How far the tasks of each source spout have come.
    sources: Mapping[str, SourceProgress] = field(default_factory=dict)
    #: Change sets for the durable acker that may not be in its journal yet, oldest first, each with its number (`AckerLog`).
    acker: tuple[tuple[int, bytes], ...] = ()
    #: For each task, its work in this round and how much waits for it. The controller of backpressure uses this.
    loads: Mapping[int, TaskLoad] = field(default_factory=dict)
    #: For how many seconds the worker was at work in this round.
    worked: float = 0.0
    #: For how many seconds the worker filled gaps between supersteps since the last report.
    filled: float = 0.0
    #: Whether spouts emitted after superstep 0 of this round. If so, the trees of these tuples may need another round to end.
    emitted_late: bool = False
    #: Whether tuples wait, or calls of spouts or bolts on threads, of async bolts or of multilang bolts go on, or have completed
    #: something in this round. If the topology stops, it needs another round to work that off and to complete the trees. Emits
    #: of a bolt's own threads complete nothing. Always false once the topology waits for no call any more.
    goes_on: bool = False
    #: Whether nothing happened in this worker in this round, and nothing waits.
    idle: bool = False
    #: Whether the worker is idle, no tree is open, and no bolt has tuples outside of the worker. If so, the worker notices new
    #: work by itself, and the driver may pause for longer.
    at_rest: bool = False
    #: For each spout, whether all of its tasks here say that they emit nothing more; None if they don't say (`Spout.is_done`).
    spouts_done: Mapping[str, bool | None] = field(default_factory=dict)
    #: Once the input has ended: how many tuples each bolt still holds.
    held: Mapping[str, int] = field(default_factory=dict)
    #: How far the worker is with the batch, if batches are transactions.
    transaction: TransactionReport | None = None
    #: For each component that has blocked the event loop, the call that did so longest at a time since this process began.
    blocked_loop: tuple[Busy, ...] = ()
    #: The rows of sources that were given up since the last report, or since the batch before if this is another attempt.
    letters: tuple[Letter, ...] = ()


def read_report(payload: bytes) -> WorkerReport:
    """Unpickle a worker's report. Readings of users' metrics that this process can't unpickle become errors of their tasks."""
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
            f"dicts of them",
        )
        for point in report.data_points
        if (reason := read.damage_of(point.value)) is not None
    ]
    points = tuple(point for point in report.data_points if read.damage_of(point.value) is None)
    return replace(report, data_points=points, errors=(*report.errors, *errors))


def fatal_error(reports: Iterable[WorkerReport]) -> ComponentError | None:
    """Return the error with which the topology has to stop after a round with these reports; None if the topology goes on."""
    return next((ComponentError(report.fatal.text) for report in reports if report.fatal is not None), None)


def merge_loads(reports: Iterable[WorkerReport]) -> dict[int, TaskLoad]:
    """Merge the loads of all workers' tasks in one round, by task id."""
    return {task: load for report in reports for task, load in report.loads.items()}


def merge_progress(reports: Iterable[Mapping[str, SourceProgress]]) -> dict[str, SourceProgress]:
    """Merge the progress that several tasks, or several workers, report for each source spout in one batch.

    >>> merge_progress([{"s": SourceProgress(3, {"t-0": 7, "t-1": 2})}, {"s": SourceProgress(1, {"t-0": 5})}])
    {'s': SourceProgress(waiting=4, low_marks={'t-0': 5, 't-1': 2}, came=0, limit=None)}
    """
    by_component: dict[str, list[SourceProgress]] = {}
    for report in reports:
        for component, progress in report.items():
            by_component.setdefault(component, []).append(progress)
    return {component: _merged(progress) for component, progress in by_component.items()}


def _merged(everything: Sequence[SourceProgress]) -> SourceProgress:
    marks: dict[str, int] = {}
    for one in everything:
        for partition, position in (one.low_marks or {}).items():
            marks[partition] = min(position, marks.get(partition, position))
    all_have_marks = all(one.low_marks is not None for one in everything)
    waiting, came = (sum(one.waiting for one in everything), sum(one.came for one in everything))
    return SourceProgress(waiting, marks if all_have_marks else None, came)
