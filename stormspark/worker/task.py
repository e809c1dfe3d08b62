"""The base class of spout tasks and bolt tasks.

A task holds its component's instance, its counters and its errors, and makes a new instance after an error. Two parts of a task
have modules of their own: `stormspark.worker.task_batches` has the methods for batches (state, and announcements), and
`stormspark.worker.task_services` has what a `TopologyContext` offers to the instance.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from logging import Logger, LoggerAdapter
from typing import Any, TypeVar

from stormspark.acker import Ledger, Roots, Verdict
from stormspark.api import TaskHook, TopologyContext
from stormspark.backpressure import TaskLoad
from stormspark.errors import ComponentError
from stormspark.metrics import TaskCounters
from stormspark.metrics.streams import StreamCounts
from stormspark.pickling import unpickled
from stormspark.plan.physical import ComponentPlan, TaskPlan
from stormspark.spi import LivesOutside
from stormspark.worker.asynchronous.life import AsyncExecutor
from stormspark.worker.auto_hooks import DebugHook, load_hook
from stormspark.worker.errors_of_code import ERRORS_OF_CODE, forget_context
from stormspark.worker.executors.thread import CallNotReturnedError
from stormspark.worker.foreign_calls import Mailbox
from stormspark.worker.step import ErrorReport
from stormspark.worker.task_host import Host
from stormspark.worker.task_reports import TaskReports
from stormspark.worker.task_services import ServesInstance
from stormspark.worker.tuples.edges import fail_roots
from stormspark.worker.tuples.hooked_outlets import remove_hooks

__all__ = ["Task"]

_T = TypeVar("_T")


class Task(ServesInstance):
    """One task of a component. After a restart it has a new instance of the component.

    These rules cover all errors (W22). An error in `open`, `prepare`, `activate` or `deactivate` stops the topology. A
    `FailedException` only fails a bolt's tuple. Any other error restarts this task alone. But if more than
    ``stormspark.task.max.restarts.in.row`` executions in a row raise such an error, the topology stops. An `open` or `prepare`
    that raises after such an error counts as one more error in the row (`stormspark.worker.starting_again`).
    """

    #: Whether the topology stops, and only works off what waits (`Executors.limit_waiting`). If so, spouts begin no more turns,
    #: timers no more calls, and no instance starts again.
    is_ending = False
    #: Whether the input has ended (`RoundOrders.input_ended`), so that whatever still comes has come before, and has failed.
    input_ended = False
    #: Whether the end has taken too long. If so, an async component or one whose executor has a thread of its own begins no more
    #: calls, and a multilang bolt's child gets no more tuples.
    begins_no_call = False

    def __init__(self, plan: TaskPlan, component: ComponentPlan, conf: Mapping[str, Any], host: Host) -> None:
        super().__init__(plan, component, conf, host)
        self.fatal: ErrorReport | None = None
        self._ledger = host.ledger
        self._raised_in_row = 0
        #: Hooks that every instance gets, in addition to those that the topology configures.
        self.observers: list[TaskHook] = []
        #: Whether the instance of an async component is starting on the event loop.
        self.starts_on_loop = False
        #: The error with which the last start on the event loop, or on the executor's own thread, has failed.
        self.start_error: ComponentError | None = None
        #: The time when the start of the new instance began; None if no instance is starting. `begun_at` is the time when the
        #: last start ended.
        self.begins_since: float | None = None
        self.begun_at = float("-inf")
        #: The errors, and the failures of trees, that the driver has not got yet.
        self.reports = TaskReports(component, plan.id, self.name, self._clock)
        #: Calls that users' own threads have made, and that wait for the worker's thread.
        self.mailbox = Mailbox(self.name, self.report_error)

    def _instance(self) -> Any:
        """Return a fresh copy of the component (A3)."""
        handled = sys.exception()
        try:
            return unpickled(self.component.pickled)
        except ERRORS_OF_CODE as error:
            forget_context(error, handled)
            failure = self._component_error("can't be unpickled in the worker", error)
            raise failure from error

    @property
    def starts_no_more(self) -> bool:
        """Whether no new instance starts any more, because the topology stops and no call would follow the start. After an error
        the old instance stays, and gets its last calls. An async spout starts again, because it makes no call after an error.
        """
        return self.is_ending and bool(self.component.capacity)

    def start(self) -> None:
        """Make the instance and call its ``open`` or ``prepare``; raises `ComponentError`."""
        self.begins_since = self._clock()
        try:
            self._start()
        except BaseException:
            self._start_is_over()
            raise
        if not self.starts_on_loop:
            self._start_is_over()

    def _start_is_over(self) -> None:
        self.begun_at, self.begins_since = self._clock(), None

    def _start(self) -> None:
        self._end_previous()
        self._begin_instance()

    def _end_previous(self) -> None:
        """Forget what belongs to the previous instance."""
        self.let_go()
        self.starts_on_loop = False
        self._host.clear_timers(self)
        self.metrics.forget()
        self.hooks.clear()
        remove_hooks(self.outlets)
        self.mailbox.close()
        self.mailbox = Mailbox(self.name, self.report_error)

    def _begin_instance(self) -> None:
        """Make the instance, and begin it; raises `ComponentError`."""
        handled = sys.exception()  # an error of the previous instance, perhaps
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
            self.starts_on_loop = isinstance(self.instance, AsyncExecutor)
            if self._attempt is not None:
                instance.begin_batch(*self._attempt)
        except ERRORS_OF_CODE as error:
            forget_context(error, handled)
            failure = self._component_error(f"raised in {self._first_call}", error)
            raise failure from error
        finally:
            self._starting = self.starts_on_loop

    def call_once(self, call: Callable[[], object], name: str) -> None:
        """Make one call of the instance's code now, on the worker's thread. ``name`` is its name in messages."""
        try:
            call()
        except ERRORS_OF_CODE as error:
            self.raised(name, error)

    def call_ended(self, instance: AsyncExecutor, call: str, error: Exception | None) -> None:
        """Learn that a call of an instance on the event loop has ended: ``prepare``, ``open``, ``activate`` or ``deactivate``.

        An error stops the topology, unless the task starts again (`start_failed`).
        """
        if instance is not self.instance:
            return
        if call == self._first_call:
            self.starts_on_loop = self._starting = False
            self._start_is_over()
        if error is not None:
            failure = self._component_error(f"raised in {call}", error)
            failure.__cause__ = error
            if self._host.opening:
                self.start_error = failure
            elif call == self._first_call:
                self.start_failed(failure)
            else:
                self.stop_topology(failure)

    def let_go(self) -> None:
        """Let the instance end its work outside of this process (`LivesOutside`), without ``close`` or ``cleanup``."""
        self._let_go(self.instance)

    def _let_go(self, instance: object) -> None:
        if isinstance(instance, LivesOutside):
            try:
                instance.let_go()
            except ERRORS_OF_CODE as error:
                self.report_error(error)

    #: The method that Storm calls first: ``open`` or ``prepare``.
    _first_call: str

    def _begin(self, instance: Any, context: TopologyContext) -> None:
        """Call ``open`` or ``prepare``."""
        raise NotImplementedError

    @property
    def ledger(self) -> Ledger:
        """The worker's ledger."""
        return self._ledger

    @property
    def guarded(self) -> bool:
        """Whether user code may have threads of its own, so that collectors check which thread calls them."""
        return self._host.guarded

    @property
    def thread(self) -> int:
        """The id of the worker's thread."""
        return self._host.thread

    @property
    def executes(self) -> bool:
        """Whether the task's ``execute`` runs now; other threads read this."""
        return self._host.executing is self

    def has(self, collector: object) -> bool:
        """Return whether ``collector`` belongs to the current instance."""
        return getattr(self, "_collector", None) is collector

    def guard(self) -> None:
        """Prepare the collector for calls from other threads, because user code has started a thread."""
        raise NotImplementedError

    def take_calls(self, most: int | None = None) -> None:
        """Carry out calls that users' threads have made, at most ``most`` of them.

        An error in such a call counts as an error in ``execute`` or ``next_tuple``.
        """
        try:
            self.mailbox.take(most)
        except ERRORS_OF_CODE as error:
            self.raised("a call of its own thread", error)

    def stop(self) -> None:
        """End the instance gracefully. Errors are reported, and stop nothing."""
        if isinstance(self.instance, AsyncExecutor):
            self._host.gave_up(self.instance.not_ended)
        self.mailbox.end(self.reports.logger.warning)
        for hook in self.hooks:
            self._call_last(self._run, hook.cleanup)

    def begin_to_stop_on_loop(self) -> None:
        """If the instance belongs to an async component, begin its last calls, without waiting for them.

        Once the topology is killed, there are no last calls.
        """
        if isinstance(self.instance, AsyncExecutor) and not self.instance.is_given_up:
            self._start_is_over()  # from now on, the worker waits for the last call
            self.instance.begin_to_stop()

    def _call_last(self, call: Callable[..., object], *args: Any) -> None:
        """Call a function at the end of the instance. An error is reported, and the later calls come nevertheless."""
        try:
            call(*args)
        except CallNotReturnedError as error:
            self.reports.logger.warning("%s: %s", self.name, error)
            self._host.gave_up(error.busy)
        except ERRORS_OF_CODE as error:
            self._raised_last(error)

    def _raised_last(self, error: BaseException) -> None:
        self.counters.unwritten = 1
        self.report_error(error)

    def _run(self, call: Callable[..., _T], *args: Any) -> _T:
        """Call a function of the instance, on the thread that the instance belongs to.

        Return what the function returns, or raise its error.
        """
        return call(*args)

    def _run_to_the_end(self, call: Callable[..., _T], *args: Any) -> _T:
        """Do the same as `_run` for a call that must happen after a commit. Wait for this call even if the topology stops."""
        return self._run(call, *args)

    # -- errors ----------------------------------------------------------------------------------------------

    def _component_error(self, what: str, error: BaseException) -> ComponentError:
        return self.reports.component_error(what, error)

    @property
    def logger(self) -> LoggerAdapter[Logger]:
        """The logger for what stormspark says about this task."""
        return self.reports.logger

    def report_error(self, error: BaseException | str) -> None:
        """Count an error. Also log it and report it to the driver, unless too many errors were reported of late (C4)."""
        self.counters.errors += 1
        self.reports.add_error(error)

    def raised(self, where: str, error: BaseException) -> None:
        """Report ``error``, which the task's code raised in ``where``, and restart the task (W22).

        If batches are transactions, the batch is aborted.
        """
        self.abort(f"{where} raised {type(error).__name__}: {error}")
        self.report_restart(error)
        self._restart(where, error)

    def report_restart(self, error: BaseException, pause: float = 0.0) -> None:
        """Report an error after which the task starts again in ``pause`` seconds, and say how often it has done so in a row.

        Call this on the worker's thread, before the error is counted. If there are too many errors in a row, the task does not
        start again, and the error that stops the topology says so. If it `starts_no_more`, only the error is reported.
        """
        if self.starts_no_more:
            self.report_error(error)
            return
        self.counters.errors += 1
        self.reports.add_restart(error, self._raised_in_row + 1, self._settings.max_restarts_in_row, pause)

    def fail_delivery(self, roots: Roots, verdict: Verdict, given: object = "a tuple") -> None:
        """Fail the trees of a failed delivery, and close its edge.

        If batches are transactions, a delivery without a tree aborts the batch at once, because no failed tree would abort the
        batch later (C44). The reason for the abort calls the delivery ``given``.
        """
        if roots is not None:
            fail_roots(self._ledger, roots, verdict)
        elif self.aborts is None:
            self.abort(f"failed {given!s:.300}: {verdict.reason or 'no reason given'}")

    def look(self) -> bool:
        """Return whether a call of this task's code has returned since the last look.

        Another thread calls this when the task's code has run for long.
        """
        return False

    def stop_topology(self, error: ComponentError) -> None:
        """Stop the topology. This task gets no more calls, and the driver stops when the batch ends."""
        self.fatal = self.reports.report_of(str(error))
        self.logger.critical("%s stops the topology: %s", self.name, error)

    def _restart(self, what: str, error: BaseException) -> bool:
        """Restart the task after ``error``, or stop the topology; return whether this task goes on.

        If the task `starts_no_more`, its instance stays. Then the error counts in no row, because the row could only stop a
        topology that stops anyway, and the other calls under way would lose their verdicts.
        """
        if self.starts_no_more:
            return True
        if self._too_many_in_row(what, error):
            return False
        self.counters.restarts += 1
        return self.begin_anew()

    def _too_many_in_row(self, what: str, error: BaseException) -> bool:
        """Count an error in a row of errors. If there are too many now, stop the topology and return true."""
        self._raised_in_row += 1
        allowed = self._settings.max_restarts_in_row
        if self._raised_in_row <= allowed:
            return False
        often = f"{self._raised_in_row} times in a row (stormspark.task.max.restarts.in.row is {allowed})"
        self.stop_topology(self._component_error(f"raised {often}, last in {what}", error))
        return True

    def begin_anew(self) -> bool:
        """Make a new instance, which knows nothing of the previous one. Return true.

        If the new instance can't start and this stops the topology, return false.
        """
        try:
            self.start()
        except ComponentError as error:
            self.start_failed(error)
        return self.fatal is None

    def start_failed(self, error: ComponentError) -> None:
        """Stop the topology, because a new instance can't start."""
        self.stop_topology(error)

    def load(self) -> TaskLoad:
        """Return how much work the task did in this round, and how much waits for it."""
        raise NotImplementedError

    def read_counters(self) -> TaskCounters:
        """Return the counters, up to date. The outlets count emits, so their counts are added here."""
        counts = {stream: outlet.counts() for stream, outlet in self.outlets.items()}
        self.counters.emitted = sum(emitted for emitted, _ in counts.values())
        self.counters.transferred = sum(copies for _, copies in counts.values())
        if len(counts) > 1:
            self.counters.outputs = {stream: StreamCounts(*emits) for stream, emits in counts.items()}
        return self.counters
