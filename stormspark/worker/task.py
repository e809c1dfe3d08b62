"""What spout tasks and bolt tasks share: their component's instance, counters, errors and restarts, and what a context offers."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Protocol

import cloudpickle

from stormspark.acker import Ledger, Roots, Verdict
from stormspark.api import EmitInfo, TaskHook, TopologyContext
from stormspark.backpressure import TaskLoad
from stormspark.checkpoint.state_table import TaskChanges
from stormspark.errors import CheckpointError, ComponentError, UnavailableError
from stormspark.metrics import DataPoint, Metric, TaskCounters
from stormspark.plan.physical import ComponentPlan, TaskPlan
from stormspark.spi import BatchAware, LivesOutside, TransactionAttempt
from stormspark.worker.auto_hooks import DebugHook, load_hook
from stormspark.worker.foreign_calls import Mailbox
from stormspark.worker.state.task_state import TaskState
from stormspark.worker.step import ErrorReport
from stormspark.worker.stories.stories import Stories
from stormspark.worker.tuples.collectors import fail_roots
from stormspark.worker.tuples.outlets import Outlet, WrappedOutlet
from stormspark.worker.tuples.salvage import error_text

__all__ = ["Host", "Task"]


class Host(Protocol):
    """What a task needs of its worker."""

    #: Monotonic seconds.
    clock: Callable[[], float]
    ledger: Ledger
    stories: Stories

    def epoch(self) -> float:
        """Seconds since 1970 when `clock` was 0."""

    def context(self, task: Task) -> TopologyContext:
        """A new context for a new instance of the task."""

    #: Whether user code has threads of its own.
    guarded: bool
    #: Whose ``execute`` runs now.
    executing: Task | None

    @property
    def thread(self) -> int:
        """The thread that runs the tasks."""

    def set_timer(
        self, task: Task, seconds: float, callback: Callable[[], None], first: float | None = None
    ) -> None:
        """Call back at a fixed rate; at first after ``first`` seconds, if that is given."""

    def clear_timers(self, task: Task) -> None:
        """The task's instance has ended."""

    @property
    def shared_executor(self) -> Executor:
        """The thread pool of the worker."""


class Task:
    """One instance of a component.

    One rule for each kind of error (W22): what `open`, `prepare` or `activate` raises stops the topology;
    what a task raises at work restarts this task alone, and after ``max_restarts`` executions in a row that
    raised it stops the topology too.
    """

    def __init__(self, plan: TaskPlan, component: ComponentPlan, conf: Mapping[str, Any], host: Host) -> None:
        self.id = plan.id
        #: Its index among its component's tasks: the state goes by it, since ids shift with what else there is (A18, C36).
        self.index = plan.index
        self.component = component
        self.name = f"{component.id}[{plan.index}]"
        self.counters = TaskCounters()
        self.errors: list[ErrorReport] = []
        self.failures: list[ErrorReport] = []
        self.data_points: list[DataPoint] = []
        self.fatal: ErrorReport | None = None
        self.outlets: dict[str, Outlet] = {}
        self.logger = logging.getLogger(f"stormspark.task.{component.id}")
        self._conf = conf
        self._settings = component.settings
        self._host = host
        self._ledger = host.ledger
        self._clock = host.clock
        self._raised_in_row = 0
        self.hooks: list[TaskHook] = []
        #: Hooks that every instance is given, beside those that the topology asks for.
        self.observers: list[TaskHook] = []
        self._plain_outlets: dict[str, Outlet] | None = None  # while hooks listen
        self._metrics: set[str] = set()
        self._starting = False
        #: Since when an instance begins, which may take long: None where none does; and when the last one had begun.
        self.begins_since: float | None = None
        self.begun_at = float("-inf")
        self._told: deque[float] = deque(maxlen=self._settings.errors_per_interval)  # when errors were told
        self._failures_told: dict[str, deque[float]] = {}  # the same of failures of trees, by their kind
        #: What outlives its instances and its process; None for a component without state.
        self.state: TaskState | None = None
        if component.kind_of_state:
            self.state = TaskState(component, plan, self.name, self._settings.state_cache_bytes)
        #: Why the batch can't be committed: the first thing that went wrong in it.
        self.aborts: str | None = None
        self.aborted_outside = False  # by storage or a broker that is away
        #: The attempt at a batch that runs, and what an earlier one announced; of a component that knows its batches.
        self._attempt: tuple[TransactionAttempt, Any] | None = None
        #: Calls of users' own threads, once there are any.
        self.mailbox = Mailbox(self.name, self.report_error)

    def _instance(self) -> Any:
        """A fresh copy of the component (A3)."""
        try:
            return cloudpickle.loads(self.component.pickled)
        except Exception as error:
            failure = self._component_error("can't be unpickled in the worker", error)
            raise failure from error

    def start(self) -> None:
        """Make the instance and call what Storm calls first; raises `ComponentError`."""
        self.begins_since = self._clock()
        try:
            self._start()
        finally:
            self.begun_at, self.begins_since = self._clock(), None

    def _start(self) -> None:
        self.let_go()
        self._host.clear_timers(self)
        self._metrics.clear()
        self.hooks.clear()
        if self._plain_outlets is not None:
            self.outlets.update(self._plain_outlets)
            self._plain_outlets = None
        self.mailbox.close()  # of the instance before
        self.mailbox = Mailbox(self.name, self.report_error)
        instance = self._instance()
        context = self._host.context(self)
        self._starting = True
        try:
            if self._settings.debug:
                context.add_task_hook(DebugHook(self.name))
            for name in self._settings.auto_hooks or ():
                context.add_task_hook(load_hook(name))
            for hook in self.observers:
                context.add_task_hook(hook)
            self._begin(instance, context)
            if self._attempt is not None:
                instance.begin_batch(*self._attempt)
        except Exception as error:
            failure = self._component_error(f"raised in {self._first_call}", error)
            raise failure from error
        finally:
            self._starting = False

    def let_go(self) -> None:
        """The instance, if there is one, ends without ``close`` or ``cleanup``."""
        instance = self.instance
        if isinstance(instance, LivesOutside):
            try:
                instance.let_go()
            except Exception as error:
                self.report_error(error)

    #: What Storm calls first.
    _first_call: str

    def _begin(self, instance: Any, context: TopologyContext) -> None:
        """Call ``open`` or ``prepare``."""
        raise NotImplementedError

    def connect(self) -> None:
        """The outlets have changed."""

    @property
    def thread(self) -> int:
        """The thread that runs the tasks of this worker."""
        return self._host.thread

    @property
    def executes(self) -> bool:
        """Whether its ``execute`` runs now; asked by other threads."""
        return self._host.executing is self

    def has(self, collector: object) -> bool:
        """Whether this is the collector of the instance that lives now."""
        return getattr(self, "_collector", None) is collector

    def guard(self) -> None:
        """User code has threads now: let the collector bear calls of theirs."""
        raise NotImplementedError

    def take_calls(self, most: int | None = None) -> None:
        """Do what users' threads have called, or so much of it; what that raises is as if ``execute`` or ``next_tuple`` had."""
        try:
            self.mailbox.take(most)
        except Exception as error:
            self.raised("a call of its own thread", error)

    def stop(self) -> None:
        """The graceful end of the instance; what it raises is reported and stops nothing."""
        self.mailbox.close()
        for hook in self.hooks:
            try:
                hook.cleanup()
            except Exception as error:
                self.report_error(error)

    # -- state -----------------------------------------------------------------------------------------------

    @property
    def instance(self) -> Any:
        """The spout or bolt as it is now, if it has begun."""
        raise NotImplementedError

    def prepare_state(self, txid: int) -> list[TaskChanges] | None:
        """What changed in the batch; None where a method of the component raised, and then the batch can't be committed."""
        assert self.state is not None
        try:
            return self.state.prepare(self.instance, txid)
        except (OSError, UnavailableError, CheckpointError) as error:
            # The next attempt begins with a new instance in any case; how often does not count, since nothing is wrong with it.
            self.abort(f"{type(error).__name__}: {error}", outside=True)
            self.report_error(error)
            return None
        except Exception as error:
            self.raised("pre_prepare, pre_save or pre_commit", error)
            return None

    def commit_state(self, txid: int) -> None:
        """The batch is committed. Where ``post_save`` raises the component begins anew on that state, as in Heron (C42), but for
        sinks that try again by themselves.
        """
        assert self.state is not None
        instance = self.instance
        if not self.state.take_over(txid):
            return
        try:
            self.state.tell_committed(instance, txid)
        except Exception as error:
            self.report_error(error)
            if not self.state.tries_again(instance):
                self.counters.restarts += 1
                self.forget_tuples()
                self.begin_anew()

    def forget_tuples(self) -> None:
        """What waits and what is held is nobody's any more."""

    def roll_back_state(self, txid: int) -> None:
        """The batch after ``txid`` comes again, to a new instance."""
        assert self.state is not None
        instance = self.instance
        try:
            self.state.rolled_back(instance, txid)
        except Exception as error:
            self.report_error(error)
        if instance is not None:
            self.begin_anew()

    # -- components that know their batches ------------------------------------------------------------------

    @property
    def _batch_aware(self) -> BatchAware | None:
        instance = self.instance if self.component.kind_of_batch else None
        return instance if isinstance(instance, BatchAware) else None

    def begin_batch(self, attempt: TransactionAttempt, announced: Any) -> None:
        """An attempt begins, for this instance or the next one."""
        self._attempt = attempt, announced
        component = self._batch_aware
        if component is not None:
            component.begin_batch(attempt, announced)

    @property
    def takes_part(self) -> bool:
        """Whether bolts have to hear of the end of this batch, as far as this task knows."""
        component = self._batch_aware
        return component is not None and component.takes_part

    def announcement(self) -> bytes | None:
        """What a later attempt at this batch has to know, pickled."""
        component = self._batch_aware
        if component is None or not component.announces:
            return None
        said = component.announcement()
        if said is None:
            return None
        try:
            return cloudpickle.dumps(said, 5)  # type: ignore[no-any-return]
        except Exception as error:
            self.abort(f"what it has to say of its batch can't be pickled: {type(error).__name__}: {error}")
            self.report_error(error)
            return None

    # -- what a context offers -------------------------------------------------------------------------------

    def set_timer(self, seconds: float, callback: Callable[[], None], first: float | None = None) -> None:
        """Call back at a fixed rate, until the instance ends; at first after ``first`` seconds, if that is given."""
        self._host.set_timer(self, seconds, callback, first)

    def now(self) -> float:
        """Seconds since 1970."""
        return self._host.epoch() + self._clock()

    @property
    def shared_executor(self) -> Executor:
        """The thread pool of the worker."""
        return self._host.shared_executor

    def add_metric(self, name: str, metric: Metric, bucket_secs: float) -> None:
        """Read ``metric`` once a bucket (J18)."""
        if not self._starting:
            msg = f"{self.name}: metric {name!r} is registered too late: register it in open or prepare (J18)"
            raise RuntimeError(msg)
        if name in self._metrics:
            msg = f"{self.name}: there is a metric {name!r} already (J18); choose another name"
            raise RuntimeError(msg)
        if not isinstance(metric, Metric):
            msg = f"{self.name}: metric {name!r} must be a Metric, with get_value_and_reset(), got {metric!r}"
            raise TypeError(msg)
        self._metrics.add(name)

        def read() -> None:
            value = metric.get_value_and_reset()
            try:
                pickle.dumps(value, 5)
            except Exception as error:
                self.report_error(
                    f"metric {name!r} has read a value of type {type(value).__qualname__}, which can't go to the driver: "
                    f"{error_text(error)}. Return numbers, strings, or lists and dicts of them (J18)"
                )
                return
            if value is not None:
                at_ms = int(self.now() * 1000)
                self.data_points.append(
                    DataPoint(self.component.id, self.id, name, value, at_ms, bucket_secs)
                )

        self.set_timer(bucket_secs, read)

    def add_hook(self, hook: TaskHook) -> None:
        """Tell ``hook`` of what this task does (J21)."""
        if not self._starting:
            msg = f"{self.name}: the hook {hook!r} is added too late: add it in open or prepare (J21)"
            raise RuntimeError(msg)
        if not isinstance(hook, TaskHook):
            msg = f"{self.name}: a hook must be a TaskHook, got {hook!r}"
            raise TypeError(msg)
        if self._plain_outlets is None:
            self._plain_outlets = dict(self.outlets)
            self.outlets.update({stream: self._observed(outlet) for stream, outlet in self.outlets.items()})
            self.connect()
        self.hooks.append(hook)
        hook.prepare(self._conf, self._host.context(self))

    def _observed(self, outlet: Outlet) -> Outlet:
        """``outlet``, with the hooks told of every emit."""
        return _Observed(outlet, self.id, self.hooks)

    # -- errors ----------------------------------------------------------------------------------------------

    def _component_error(self, what: str, error: BaseException) -> ComponentError:
        component = self.component
        text = "".join(traceback.format_exception(error))
        msg = (
            f"{component.kind} {component.id!r}, task {self.id} ({self.name}), declared at {component.declared_at}, "
            f"{what}: {type(error).__name__}: {error}\n{text}"
        )
        return ComponentError(msg)

    def report_error(self, error: BaseException | str) -> None:
        """Count an error; log it and tell the driver, unless too many were told of late (C4)."""
        self.counters.errors += 1
        now = self._clock()
        told, interval = self._told, self._settings.error_interval_secs
        if len(told) == told.maxlen and now - told[0] < interval:
            return
        told.append(now)
        text = error if isinstance(error, str) else "".join(traceback.format_exception(error)).rstrip()
        if len(told) == told.maxlen and now - told[0] < interval:
            # In front: the last line is the error itself, which summaries show.
            text = (
                f"(the last one told for now: more than {told.maxlen} in {interval:g} s are counted only, see "
                f"topology.max.error.report.per.interval)\n{text}"
            )
        self.errors.append(ErrorReport(self.component.id, self.id, text))
        self.logger.error("%s: %s", self.name, text)

    def tell_failure(self, kind: str, text: str) -> None:
        """Log what became of trees and tell the driver, each kind as often as errors at most; it is no error of this task."""
        now = self._clock()
        told = self._failures_told.setdefault(kind, deque(maxlen=self._settings.errors_per_interval))
        if len(told) == told.maxlen and now - told[0] < self._settings.error_interval_secs:
            return
        told.append(now)
        self.failures.append(ErrorReport(self.component.id, self.id, text))
        self.logger.warning("%s: %s", self.name, text)

    def raised(self, where: str, error: Exception) -> None:
        """A callback of the task raised ``error``: report it and begin anew (W22)."""
        self.abort(f"{where} raised {type(error).__name__}: {error}")
        self.report_error(error)
        self._restart(where, error)

    def abort(self, reason: str, *, outside: bool = False) -> None:
        """The batch can't be committed, where that matters; the first reason counts. ``outside``: storage or a broker is away."""
        if self.aborts is None:
            self.aborts, self.aborted_outside = f"{self.name}: {reason}"[:1000], outside

    def fail_delivery(self, roots: Roots, verdict: Verdict, given: object = "a tuple") -> None:
        """A delivery has failed, and its edge is closed: its trees fail. One that is in no tree takes the batch back, where
        batches are transactions: nobody else could (C44). ``given`` is what is named as failed.
        """
        if roots is not None:
            fail_roots(self._ledger, roots, verdict)
        elif self.aborts is None:
            self.abort(f"failed {given!s:.300}: {verdict.reason or 'no reason given'}")

    def look(self) -> bool:
        """Called by another thread while this task's code has been running for long: whether a call of it has returned since
        the last look.
        """
        return False

    def stop_topology(self, error: ComponentError) -> None:
        """Nothing more is asked of this task; the driver stops the topology when the batch ends."""
        self.fatal = ErrorReport(self.component.id, self.id, str(error))
        self.logger.critical("%s stops the topology: %s", self.name, error)

    def _restart(self, what: str, error: Exception) -> bool:
        """After ``error``: begin anew, or give up; true if this task goes on."""
        self._raised_in_row += 1
        allowed = self._settings.max_restarts_in_row
        if self._raised_in_row > allowed:
            often = f"{self._raised_in_row} times in a row (stormspark.task.max.restarts.in.row is {allowed})"
            self.stop_topology(self._component_error(f"raised {often}, last in {what}", error))
            return False
        self.counters.restarts += 1
        return self.begin_anew()

    def begin_anew(self) -> bool:
        """Another instance, which knows nothing of what was done; false, and the topology stops, where it can't begin."""
        try:
            self.start()
        except ComponentError as error:
            self.stop_topology(error)
            return False
        return True

    def load(self) -> TaskLoad:
        """What it did in this round, and what waits for it."""
        raise NotImplementedError

    def read_counters(self) -> TaskCounters:
        """The counters, up to date: emits are counted by the outlets."""
        counts = [outlet.counts() for outlet in self.outlets.values()]
        self.counters.emitted = sum(emitted for emitted, _ in counts)
        self.counters.transferred = sum(copies for _, copies in counts)
        return self.counters

    def take_errors(self) -> list[ErrorReport]:
        """The errors since the last call, oldest first."""
        errors, self.errors = self.errors, []
        return errors

    def take_failures(self) -> list[ErrorReport]:
        """What was told of failures since the last call, oldest first."""
        failures, self.failures = self.failures, []
        return failures

    def take_data_points(self) -> list[DataPoint]:
        """The metrics' readings since the last call, oldest first."""
        points, self.data_points = self.data_points, []
        return points


class _Observed(WrappedOutlet):
    """Tells hooks of every emit (J21)."""

    def __init__(self, outlet: Outlet, task: int, hooks: Sequence[TaskHook]) -> None:
        super().__init__(outlet)
        self._task, self._hooks = task, hooks

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        tasks = super().send(values, roots)
        self._tell(values, tuple(tasks))
        return tasks

    def send_direct(self, task: int, values: tuple[Any, ...], roots: Roots) -> int:
        sent = super().send_direct(task, values, roots)
        self._tell(values, (task,) * sent)
        return sent

    def _tell(self, values: tuple[Any, ...], tasks: tuple[int, ...]) -> None:
        info = EmitInfo(values, self.source.stream, self._task, tasks)
        for hook in self._hooks:
            hook.emit(info)
