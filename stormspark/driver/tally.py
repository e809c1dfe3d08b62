"""The tally of a topology: the driver's sum over the reports of all incarnations of all workers. Both engines use it.

Counters in a report are totals since the worker's process began. So only the latest report of each (worker, incarnation) is
needed, and a report that comes twice does no harm. The last totals of a dead incarnation stay in the sum. Only the pending
trees, queued tuples, calls and waiting tasks of a dead incarnation are left out, because they no longer exist.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from stormspark.backpressure import Pressure
from stormspark.driver.batch_counts import BatchCounts, Totals
from stormspark.driver.commit_log import CommitLog, Commits
from stormspark.driver.error_log import ErrorLog, TaskError
from stormspark.metrics import DataPoint, Durations, Histogram, TaskCounters, TopologyStatistics, summarise
from stormspark.metrics.sums import Sums, sums_of
from stormspark.plan.physical import PhysicalPlan
from stormspark.plan.rebalance import successor
from stormspark.worker.busy import Busy
from stormspark.worker.step import WorkerReport

__all__ = ["Tally"]


class Tally:
    """The tally of one topology, which is thread-safe. The topology's running time begins when the tally is made, and ends with
    `stop`. ``clock`` returns seconds, and ``wall_clock`` those since 1970.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        engine: str,
        pressure: Callable[[], Pressure] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._plan, self._engine, self._pressure, self._clock = plan, engine, pressure, clock
        self._wall_clock, self._error_log = wall_clock, ErrorLog()
        #: What earlier controllers of backpressure knew at their ends.
        self._earlier_pressure: Pressure | None = None
        self._lock, self._names = threading.Lock(), tuple(plan.components)
        #: By worker: the counters of its current incarnation.
        self._counters: dict[int, Mapping[int, TaskCounters]] = {}
        #: By task: the counters of all earlier incarnations together.
        self._past: dict[int, TaskCounters] = {}
        self._living: dict[int, int] = {}
        self._backlogs: dict[int, int] = {}
        self._last_failure: dict[str, str] = {}
        self._metrics: dict[str, dict[str, dict[int, DataPoint]]] = {}  # component, name, task
        #: The totals at the end of the last batch (`take_batch`).
        self._at_last_batch = Totals()
        #: See `TopologyStatistics.batches_ended` and `TopologyStatistics.flushes`.
        self._batches_ended = self._flushes = 0
        self._batch_times = Histogram()
        self._phases: dict[str, Histogram] = {}
        self._began = clock()
        self._commit_log = CommitLog(self._began)
        self._ended: float | None = None
        #: When the last reports came; None before the first ones. A report says how many calls were under way since then.
        self._reported_at: float | None = None
        #: For how many seconds `_in_calls` has been counted. `_in_calls`: by component, how many seconds all calls together have
        #: taken in this time, those under way included.
        self._counted = 0.0
        self._in_calls: defaultdict[str, float] = defaultdict(float)
        self._is_stopping = False
        #: See `TopologyStatistics.before_stop`. `_counts_last`: whether the next reports are the last ones that count for it.
        self._before_stop: tuple[int, float] | None = None
        self._counts_last = False
        #: See `TopologyStatistics.taken_back`.
        self._taken_back = 0
        self._last_taken_back = ""
        #: See `TopologyStatistics.dead_letters_in`.
        self.dead_letters_in: str | None = None
        #: Gets the readings of users' metrics of each report, and must not wait; None: nobody wants them.
        self.on_points: Callable[[Sequence[DataPoint]], None] | None = None
        #: By component: the call that blocked the event loop longest at a time.
        self._blocked_loop: dict[str, Busy] = {}
        #: By task: the calls that had not returned when the topology ended.
        self._not_returned: dict[str, Busy] = {}

    @property
    def plan(self) -> PhysicalPlan:
        """The plan whose workers report."""
        return self._plan

    @property
    def has_reports(self) -> bool:
        """Whether workers have reported since the topology was laid out by this plan."""
        return self._reported_at is not None

    def lay_out(self, plan: PhysicalPlan, pressure: Callable[[], Pressure] | None = None) -> None:
        """Count for other workers from now on, by another plan of the same topology. All earlier workers have ended.

        The totals stay. A task goes on with those of the task that had its index in its component, whatever its id was.
        """
        now_at = {task.id: successor(plan, task) for task in self._plan.tasks.values()}
        with self._lock:
            for worker in list(self._counters):
                self._end_incarnation(worker, in_order=True)
            self._counters, self._living, self._backlogs = {}, {}, {}
            past, self._past = self._past, {}
            for task, counted in past.items():
                self._past.setdefault(now_at[task], TaskCounters()).merge(counted)
            self._metrics = {
                component: {
                    name: {
                        now_at[task]: point._replace(task=now_at[task])
                        for task, point in points.items()
                        if task in now_at
                    }
                    for name, points in named.items()
                }
                for component, named in self._metrics.items()
            }
            self._error_log.move_tasks(now_at)
            self._earlier_pressure = self.pressure()
            self._reported_at = None
            self._plan, self._pressure = plan, pressure

    def end_batch(self, *, flushes: bool = False) -> None:
        """Count a batch that has ended, with all its rounds. ``flushes`` says whether bolts flush in the next one."""
        with self._lock:
            self._batches_ended += 1
            self._flushes += flushes

    def add_batch(self, reports: Iterable[WorkerReport], seconds: float) -> None:
        """Add the reports of a batch, or of one of its rounds, and the ``seconds`` that it took."""
        with self._lock:
            self._batch_times.add(seconds)
            since_last = self._since_last_reports()
            self._counted += since_last
            for report in reports:
                self._add(report, since_last)
            if self._counts_last:
                self._counts_last = False
                self._count_before_stop()

    def add_last_reports(self, reports: Iterable[WorkerReport]) -> None:
        """Add reports that workers make when they have heard of the last commit, and at their close. They are no batch."""
        with self._lock:
            for report in reports:
                self._add(report, 0.0)

    def _add(self, report: WorkerReport, since_last: float) -> None:
        if self._living.get(report.worker, report.incarnation) != report.incarnation:
            self._end_incarnation(report.worker)
        self._counters[report.worker] = report.counters
        self._living[report.worker] = report.incarnation
        self._backlogs[report.worker] = report.backlog
        for task, counted in report.counters.items():
            self._in_calls[self._plan.tasks[task].component] += counted.calls_under_way * since_last
        for busy in report.blocked_loop:
            self._add_block(busy)
        for error in report.errors:
            self._error_log.add(report.worker, error, self._wall_clock())
        for failure in report.failures:
            self._last_failure[failure.component] = failure.text
        for point in report.data_points:
            named = self._metrics.setdefault(point.component, {}).setdefault(point.name, {})
            named[point.task] = point
        if report.data_points and self.on_points is not None:
            self.on_points(report.data_points)

    def _end_incarnation(self, worker: int, *, in_order: bool = False) -> None:
        """Keep the totals of a worker whose process has ended. What was under way in it is no more.

        Rows that a worker could not write before it died come again. Those of a worker that has ended ``in_order`` do not.
        """
        for task, counted in self._counters[worker].items():
            ended = replace(
                counted,
                pending=0,
                queued=0,
                queued_bytes=0,
                calls_under_way=0,
                waiting_calls=0,
                down=0,
                unwritten=counted.unwritten if in_order else 0,
            )
            self._past.setdefault(task, TaskCounters()).merge(ended)

    def take_batch(self) -> BatchCounts:
        """Return what was added since the last call. A batch that has ended calls this, whatever the number of its rounds."""
        with self._lock:
            totals = Totals()
            for counters in (self._past, *self._counters.values()):
                for task, counted in counters.items():
                    totals.add(self._plan.components[self._plan.tasks[task].component].kind, counted)
            before, self._at_last_batch = self._at_last_batch, totals
            return totals.since(before)

    def add_phases(self, seconds: Mapping[str, float]) -> None:
        """Add how many seconds each part of a batch took."""
        with self._lock:
            for phase, took in seconds.items():
                self._phases.setdefault(phase, Histogram()).add(took)

    def _since_last_reports(self) -> float:
        """Return how many seconds have passed since the last reports. Return 0 for the first ones, which include the start, and
        once the topology stops: then no new calls begin, but those under way may last.
        """
        before, self._reported_at = self._reported_at, self._clock()
        return 0.0 if before is None or self._is_stopping else self._reported_at - before

    def begin_to_stop(self) -> None:
        """Leave later reports out of the average number of calls under way, because the topology stops. Of `before_stop`, they
        are left out but for the next ones, which are about the work that goes on now.
        """
        with self._lock:
            if not self._is_stopping and self._ended is None:
                self._counts_last = True
                self._count_before_stop()
            self._is_stopping = True

    def _count_before_stop(self) -> None:
        if self._reported_at is not None:
            executed = sum(
                counted.executed
                for counters in (self._past, *self._counters.values())
                for task, counted in counters.items()
                if self._plan.components[self._plan.tasks[task].component].kind == "bolt"
            )
            self._before_stop = executed, self._reported_at - self._began

    def add_commit(self, batch: int, rounds: int) -> None:
        """Add a transaction that was committed after so many rounds. The reports of all its rounds have been added."""
        with self._lock:
            counted = {"spout": 0, "bolt": 0}
            for counters in (self._past, *self._counters.values()):
                for task, one in counters.items():
                    kind = self._plan.components[self._plan.tasks[task].component].kind
                    counted[kind] += one.emitted if kind == "spout" else one.executed
            self._commit_log.commit(
                batch,
                rounds,
                emitted=counted["spout"],
                executed=counted["bolt"],
                now=self._clock(),
                at=self._wall_clock(),
            )

    def add_taken_back(self, reason: str, batch: int) -> None:
        """Add an attempt at a transaction that was taken back, so that its batch runs again."""
        with self._lock:
            self._taken_back += 1
            self._last_taken_back = reason
            self._commit_log.take_back(batch, reason, at=self._wall_clock())

    def commits(self) -> Commits:
        """Return the last commits of transactions, and the last attempts that were taken back."""
        with self._lock:
            return self._commit_log.commits()

    def add_not_returned(self, calls: Iterable[Busy]) -> None:
        """Add calls of user code that had not returned when the topology ended."""
        with self._lock:
            for busy in calls:
                if busy.on_loop:
                    self._add_block(busy)
                else:
                    self._not_returned[busy.task] = busy

    def _add_block(self, busy: Busy) -> None:
        longest = self._blocked_loop.get(busy.component, busy)
        self._blocked_loop[busy.component] = max(longest, busy, key=lambda one: one.seconds)

    def stop(self) -> None:
        """Stop counting the topology's running time, because it has ended."""
        with self._lock:
            self._ended = self._ended or self._clock()

    def errors(self) -> Mapping[str, tuple[TaskError, ...]]:
        """Return the last errors of each component, the newest first."""
        with self._lock:
            return self._error_log.errors()

    def by_task(self) -> dict[int, TaskCounters]:
        """Return the counters of each task that has reported, those of its earlier incarnations included."""
        with self._lock:
            found: dict[int, TaskCounters] = {}
            for counters in (self._past, *self._counters.values()):
                for task, counted in counters.items():
                    found.setdefault(task, TaskCounters()).merge(counted)
            return found

    def sums(self) -> Sums:
        """Return the sums of the counters by component. This is cheaper than `statistics`."""
        with self._lock:
            tasks = self._plan.tasks
            components, edges = sums_of(
                self._names,
                [(edge.target, edge.source, edge.stream) for edge in self._plan.edges],
                (
                    (tasks[task].component, counted)
                    for counters in (self._past, *self._counters.values())
                    for task, counted in counters.items()
                ),
            )
            return Sums(
                self._names,
                components,
                edges,
                self._batch_times.count,
                self._batch_times.seconds,
                {phase: (times.seconds, times.count) for phase, times in self._phases.items()},
            )

    def pressure(self) -> Pressure | None:
        """Return what the controller of backpressure knows; None if there is no controller."""
        pressure = None if self._pressure is None else self._pressure()
        if pressure is None or self._earlier_pressure is None:
            return pressure
        return pressure.after(self._earlier_pressure)

    def durations(self) -> Durations:
        """Return how long batches, rounds included, and their parts took."""
        with self._lock:
            parts = {phase: times.since(Histogram()) for phase, times in self._phases.items()}
            return Durations(self._batch_times.since(Histogram()), parts)

    def statistics(self) -> TopologyStatistics:
        """Return a frozen snapshot of all statistics."""
        with self._lock:
            by_component: dict[str, list[TaskCounters]] = {name: [] for name in self._plan.components}
            for counters in (self._past, *self._counters.values()):
                for task, counted in counters.items():
                    by_component[self._plan.tasks[task].component].append(counted)
            return TopologyStatistics(
                topology=self._plan.topology,
                engine=self._engine,
                seconds=(self._ended or self._clock()) - self._began,
                batches=self._batch_times.count,
                batches_ended=self._batches_ended,
                flushes=self._flushes,
                batch_ms=self._batch_times.summary(),
                backlog=sum(self._backlogs.values()),
                pressure=self.pressure(),
                phases={phase: times.summary() for phase, times in self._phases.items()},
                before_stop=self._before_stop,
                taken_back=self._taken_back,
                last_taken_back=self._last_taken_back,
                dead_letters_in=self.dead_letters_in,
                components={
                    name: summarise(
                        plan.kind,
                        len(plan.tasks),
                        by_component[name],
                        self._error_log.last(name),
                        {metric: dict(points) for metric, points in self._metrics.get(name, {}).items()},
                        self._last_failure.get(name),
                        plan.calls_at_once,
                        self._in_calls[name] / self._counted if self._counted else 0.0,
                        self._blocked_loop[name].long_call if name in self._blocked_loop else None,
                        tuple(
                            busy.long_call for busy in self._not_returned.values() if busy.component == name
                        ),
                    )
                    for name, plan in self._plan.components.items()
                },
            )
