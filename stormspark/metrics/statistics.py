"""The statistics of a run: the counters of each task, and the summary of a topology that engines return.

The counters have Storm's meanings (J15): ``emitted`` counts calls of emit, ``transferred`` the copies that were delivered, and
``executed`` calls of execute. For a spout, ``acked`` and ``failed`` count the trees that ended in this way. For a bolt, they
count the tuples that the bolt acked and failed. Storm samples all these numbers (J13); stormspark counts exactly (W21).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from stormspark.backpressure import Pressure
from stormspark.metrics.frames import COLUMNS, SCHEMA, MakesFrames, rows
from stormspark.metrics.histogram import Histogram, LatencySummary
from stormspark.metrics.metric import DataPoint
from stormspark.metrics.page import statistics_html, statistics_line
from stormspark.metrics.streams import StreamCounts, merged_streams

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ComponentStatistics", "LongCall", "TaskCounters", "TopologyStatistics", "summarise"]

#: The JSON summary holds this many of the last changes of limits.
_CHANGES_SHOWN = 100


@dataclass
class TaskCounters:
    """Running totals of one task. They are plain attributes, because the tuple path adds to them."""

    emitted: int = 0
    transferred: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    failed_by_bolt: int = 0
    timed_out: int = 0
    worker_lost: int = 0
    pending: int = 0  # a gauge: a spout's open trees
    queued: int = 0  # a gauge: tuples that wait for this task, without those in calls that are under way
    restarts: int = 0
    errors: int = 0
    dead_letters: int = 0  # rows of a source that were given up
    shed: int = 0  # tuples that a bolt above its high mark did not take
    late: int = 0  # tuples that came to a windowed bolt after their window had fired
    #: How long a spout was not asked for tuples, for each reason (F6).
    skipped_backpressure_ms: float = 0.0
    skipped_max_spout_ms: float = 0.0
    skipped_inactive_ms: float = 0.0
    queued_bytes: int = 0  # a gauge: the estimated size of the tuples that wait for this task
    #: A gauge: how many calls of a bolt were under way at once since the previous report, on average. It is 0 for calls that
    #: hold up the worker.
    calls_under_way: float = 0.0
    #: A gauge: how many calls of an async bolt have not ended and began after its last flush. They may wait for tuples that don't
    #: come any more (`AsyncBolt.end_of_input`).
    waiting_calls: int = 0
    #: A gauge: 1 if an error has ended the task's instance and the next one has not started yet, because the task waits for its
    #: restart or because its restart lasts (W22).
    down: int = 0
    #: A gauge: 1 if the bolt's last ``end_of_input`` or ``post_save``, or a call at the end such as ``cleanup`` or ``close``, has
    #: raised an error, so that something may be unwritten.
    unwritten: int = 0
    #: The latencies: for a spout the times from emit to ack, for a bolt the times in execute.
    latency: Histogram = field(default_factory=Histogram)
    #: Of a bolt: how many tuples were acked after their execute had returned, and how many seconds after its start, together. The
    #: process latency of all other tuples is that of execute (J15).
    processed: int = 0
    process_seconds: float = 0.0
    #: By stream that the task emits on, if there are several.
    outputs: Mapping[str, StreamCounts] = field(default_factory=dict)
    #: By component and stream that a bolt reads, if there are several.
    inputs: Mapping[tuple[str, str], StreamCounts] = field(default_factory=dict)

    def work_done(self) -> int:
        """Return a number that grows whenever the task does something."""
        return self.emitted + self.executed + self.acked + self.failed + self.restarts

    def ended(self) -> int:
        """Return a number that grows whenever a call of a bolt on a thread ends, or a tuple is acked or failed.

        Emits do not count: a thread of a bolt's own may emit for ever, and its emits complete no tree.
        """
        return self.executed + self.acked + self.failed

    def merge(self, other: TaskCounters) -> None:
        """Add the totals of another task, or of an earlier incarnation of this one."""
        for name in (*_COUNTS, "processed", "process_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latency.merge(other.latency)
        if other.outputs:
            self.outputs = merged_streams(self.outputs, other.outputs)
        if other.inputs:
            self.inputs = merged_streams(self.inputs, other.inputs)


#: What is counted of a component, too (`ComponentStatistics`).
_COUNTS = tuple(
    name
    for name in TaskCounters.__dataclass_fields__
    if name not in ("latency", "processed", "process_seconds", "outputs", "inputs")
)


class LongCall(NamedTuple):
    """A call of user code that took very long, or that has not returned."""

    task: str
    #: The method and its line, in words, such as "execute of split[0] (split.py:7)".
    code: str
    seconds: float
    #: How many other calls of the same task have not returned either. They have not lasted as long.
    others: int = 0
    #: If this stands for the work of a child process: how many tuples the child was not through with, else 0.
    tuples: int = 0

    def left(self, tense: str = "had") -> str:
        """Return what was left to do, in words. ``tense`` is "had" or "has".

        >>> LongCall("ask[0]", "execute of ask[0] (ask.py:7)", 12.0, 19).left()
        'execute of ask[0] (ask.py:7) had not returned after 12 s (and 19 others)'
        >>> LongCall("ask[0]", "the child of ask[0]", 10.0, tuples=64).left()
        'the child of ask[0] had 64 tuples left after 10 s'
        """
        seconds = f"{self.seconds:,.0f} s"
        if self.tuples:
            return f"{self.code} {tense} {self.tuples:,} tuple{'s' * (self.tuples > 1)} left after {seconds}"
        others = f" (and {self.others:,} other{'s' * (self.others > 1)})" if self.others else ""
        return f"{self.code} {tense} not returned after {seconds}{others}"

    @property
    def it(self) -> str:
        """The pronoun for what was left to do."""
        return "them" if self.others or self.tuples > 1 else "it"


@dataclass(frozen=True)
class ComponentStatistics:
    """The statistics of one component of a running or ended topology."""

    kind: str
    tasks: int
    emitted: int
    transferred: int
    executed: int
    acked: int
    failed: int
    failed_by_bolt: int
    timed_out: int
    worker_lost: int
    pending: int
    queued: int
    restarts: int
    errors: int
    dead_letters: int
    shed: int
    late: int
    skipped_backpressure_ms: float
    skipped_max_spout_ms: float
    skipped_inactive_ms: float
    queued_bytes: int
    calls_under_way: float
    #: How many calls of an async bolt that flushes at the end of its input may wait for that.
    waiting_calls: int
    #: How many tasks wait for their restart.
    down: int
    #: How many tasks may have left something unwritten, because an error was raised by their last ``end_of_input`` or
    #: ``post_save``, or by a call at the end such as ``cleanup`` or ``close``.
    unwritten: int
    last_error: str | None
    #: The latencies: for a spout the times from emit to ack, for a bolt the times in execute.
    histogram: Histogram
    #: The latest reading of each user metric: by name, then by task (J18).
    metrics: Mapping[str, Mapping[int, DataPoint]] = field(default_factory=dict)
    #: For a spout, the last logged description of a failed tree or of timeouts. Not every failure is logged (W4).
    last_failure: str | None = None
    #: How many calls of a bolt may be under way at once, in all of its tasks together; 0 if its calls hold up the worker.
    calls_at_once: int = 0
    #: How many calls of a bolt were under way at once, on average over all rounds before the topology began to stop. It is 0 for
    #: calls that hold up the worker.
    mean_calls_under_way: float = 0.0
    #: The call that blocked the event loop of its worker longest at a time; None if none did so for a second (B1).
    blocked_loop: LongCall | None = None
    #: The calls that had not returned when the topology ended, so that their tasks got no ``close`` or ``cleanup`` (B1, C1).
    not_returned: tuple[LongCall, ...] = ()

    @property
    def latency(self) -> LatencySummary:
        """Mean and percentiles of `histogram`."""
        return self.histogram.summary()

    def as_json(self) -> dict[str, Any]:
        """Return the component's entry of the JSON summary: complete latency for a spout, execute latency for a bolt (J15)."""
        result = {name: value for name, value in vars(self).items() if name not in ("histogram", "metrics")}
        result["not_returned"] = [call._asdict() for call in self.not_returned]
        if self.blocked_loop is not None:
            result["blocked_loop"] = self.blocked_loop._asdict()
        if self.metrics:
            result["metrics"] = {
                name: {str(task): _json_value(point.value) for task, point in points.items()}
                for name, points in self.metrics.items()
            }
        result["complete_latency_ms" if self.kind == "spout" else "execute_latency_ms"] = asdict(self.latency)
        return result


@dataclass(frozen=True, repr=False)
class TopologyStatistics:
    """The statistics of a whole topology at one moment. ``seconds`` is the wall time since the topology began to run.

    A notebook shows them as a table.
    """

    topology: str
    engine: str
    seconds: float
    batches: int
    batch_ms: LatencySummary
    components: Mapping[str, ComponentStatistics]
    #: How many tuples, rows, calls and acks wait anywhere: in queues, and in frames for the next round.
    backlog: int = 0
    #: Which bolts slow down which spouts, and how many tuples wait; None if there is no controller.
    pressure: Pressure | None = None
    #: The time of each part of a batch (``docs/batches.md``); empty if the engine does not measure parts.
    phases: Mapping[str, LatencySummary] = field(default_factory=dict)
    #: How many tuples the bolts had executed when the topology began to stop, and after how many seconds; None if it did not
    #: stop, or not yet. The batch that ran then is included.
    before_stop: tuple[int, float] | None = None
    #: If batches are transactions: how many attempts at batches were taken back, and the reason of the last one. What these
    #: attempts did is counted, too.
    taken_back: int = 0
    last_taken_back: str = ""
    #: Where the rows of sources are that were given up: a folder or a file; None if they are in the logs of tasks.
    dead_letters_in: str | None = None
    #: How many batches have ended. ``batches`` also counts further rounds of a batch, for which Spark reads no rows.
    batches_ended: int = 0
    #: How often bolts were told to flush at the end of the input. All bolts of one turn count once.
    flushes: int = 0

    @property
    def tuples_per_s(self) -> float:
        """How many tuples the bolts executed per second, without the time in which a stop waits for calls."""
        executed, seconds = self.before_stop or (self.total("executed", "bolt"), self.seconds)
        return executed / seconds if seconds else 0.0

    def total(self, name: str, kind: str | None = None) -> int:
        """Sum one counter over all components, or over those of one kind."""
        return sum(getattr(c, name) for c in self.components.values() if kind in (None, c.kind))

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame with a row for each component. The names of columns have units, such as ``latency_p99_ms``.

        Columns that count, such as ``acked``, count from the start. ``emitted_per_s`` and ``executed_per_s`` are means over the
        whole time. ``seconds`` is the same in all rows, so frames of several moments can be put under each other.

        >>> bolt = summarise("bolt", 2, [TaskCounters(executed=30, acked=30)], None)
        >>> frame = TopologyStatistics("words", "local", 10.0, 1, LatencySummary(), {"count": bolt}).to_pandas()
        >>> frame[["component", "tasks", "executed", "executed_per_s"]]
          component  tasks  executed  executed_per_s
        0     count      2        30             3.0
        """
        import pandas as pd

        frame = pd.DataFrame(rows(self), columns=[column.name for column in COLUMNS])
        # A column in which nothing is known, or that has no rows, has its type all the same.
        return frame.astype({column.name: column.dtype for column in COLUMNS})

    def to_spark(self, spark: MakesFrames) -> Any:
        """Return the rows and columns of `to_pandas` as a DataFrame of the session ``spark``."""
        return spark.createDataFrame(rows(self), SCHEMA)

    def __repr__(self) -> str:
        return statistics_line(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return statistics_html(self)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON summary of ``stormspark run --json``. ``docs/backpressure.md`` describes ``backpressure``."""
        return {
            "topology": self.topology,
            "engine": self.engine,
            "seconds": round(self.seconds, 3),
            "batches": self.batches,
            "batch_ms": asdict(self.batch_ms),
            "phases_ms": {name: asdict(phase) for name, phase in self.phases.items()},
            "backlog": self.backlog,
            "components": {name: component.as_json() for name, component in self.components.items()},
            "backpressure": None if self.pressure is None else _as_json(self.pressure, self.seconds),
            "dead_letters_in": self.dead_letters_in if self.total("dead_letters") else None,
        }


def _as_json(pressure: Pressure, seconds: float) -> dict[str, Any]:
    """Return the JSON of ``pressure``: for each spout its limit and the bolts at fault, for each bolt its queue, and the last
    changes of limits.
    """
    return {
        "limit_changes": pressure.limit_changes,
        "spouts": {
            name: {
                "limit": spout.limit,
                "throttled_by": spout.throttled_by,
                "throttled_ms": {bolt: round(ms, 1) for bolt, ms in spout.throttled_ms.items()},
                "throttled_share": round(sum(spout.throttled_ms.values()) / 1000 / seconds, 4)
                if seconds
                else 0.0,
                "max_pending": spout.max_pending,
                "unfelt_max_pending": spout.unfelt_max_pending,
            }
            for name, spout in pressure.spouts.items()
        },
        "bolts": {name: asdict(bolt) for name, bolt in pressure.bolts.items()},
        "history": [change._asdict() for change in pressure.history[-_CHANGES_SHOWN:]],
    }


def _json_value(value: Any) -> Any:
    """Return a metric's value, or its repr if JSON can't express it."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)
    return value


def summarise(
    kind: str,
    tasks: int,
    counters: Iterable[TaskCounters],
    last_error: str | None,
    metrics: Mapping[str, Mapping[int, DataPoint]] | None = None,
    last_failure: str | None = None,
    calls_at_once: int = 0,
    mean_calls_under_way: float = 0.0,
    blocked_loop: LongCall | None = None,
    not_returned: tuple[LongCall, ...] = (),
) -> ComponentStatistics:
    """Add up the counters of a component's tasks and freeze them."""
    total = TaskCounters()
    for one in counters:
        total.merge(one)
    counts = {name: getattr(total, name) for name in _COUNTS}
    return ComponentStatistics(
        kind=kind,
        tasks=tasks,
        last_error=last_error,
        last_failure=last_failure,
        calls_at_once=calls_at_once,
        mean_calls_under_way=mean_calls_under_way,
        blocked_loop=blocked_loop,
        not_returned=not_returned,
        histogram=total.latency,
        metrics=metrics or {},
        **counts,
    )
