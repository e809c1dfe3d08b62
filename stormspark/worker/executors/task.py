"""The common base class of bolts' and spouts' tasks, for executors with threads of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from stormspark.api import TaskHook
from stormspark.checkpoint.state_table import TaskChanges
from stormspark.errors import ComponentError
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.errors_of_code import contained
from stormspark.worker.executors.notes import InstanceEnded, Notes
from stormspark.worker.executors.thread import CallNotReturnedError, ThreadRefusedError
from stormspark.worker.task import Task
from stormspark.worker.tuples.outlets import Outlet, outlet_of

if TYPE_CHECKING:
    from stormspark.spi import TransactionAttempt
    from stormspark.worker.executors.executors import Executors
    from stormspark.worker.executors.thread import ExecutorThread

__all__ = ["ThreadedTask"]

_T = TypeVar("_T")


class ThreadedTask(Task):
    """A task whose user code runs on its executor's thread. All other parts of the task belong to the worker's thread.

    The executor's thread makes all calls of an instance, from the first to the last (A16). `start` returns at once, and the
    worker goes on while the instance starts. `is_starting` is true meanwhile. An error in the first ``open`` or ``prepare`` stops
    the topology.
    """

    executor: ExecutorThread
    executors: Executors
    #: The notes of the current instance.
    notes: Notes

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: What prepares the custom groupings that choose on the executor's thread. Empty once they are prepared.
        self.to_prepare: list[Callable[[], None]] = []

    def begin_threaded(self, executor: ExecutorThread, executors: Executors) -> None:
        """Join an executor, before the first instance starts."""
        self.executor, self.executors = executor, executors
        self.notes = executors.new_notes(self)
        #: The notes of the instance that was started last; used by the executor's thread.
        self._notes_here = self.notes
        self._choosing = Lock()
        self.is_starting = False
        #: Whether no turn may begin: until an instance has started, after it has raised an error, and after `end_thread_work`.
        self.is_held = True
        #: Whether no turn may begin, because the worker stops. The instance only gets its last calls now, such as ``close``.
        self.is_stopping = False
        #: Whether the instance has got its last calls. `_last_call` is the name of the last call that has begun, if any has.
        self.has_stopped = False
        self._last_call = ""
        executor.tasks.append(self)  # type: ignore[arg-type]

    @property
    def executor_number(self) -> int:
        """The number of the task's executor among its component's executors (A17)."""
        return self.placed.executor

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a new instance on the executor's thread, without waiting for it. If a call runs on that thread now, the start
        follows the call.
        """
        if self.starts_no_more:
            return
        self.begins_since = self._clock()
        self.is_held = self.is_starting = True
        self._end_previous()
        notes = self.notes
        try:
            self.executor.submit(self.name, partial(self._start_on_thread, notes))
        except ThreadRefusedError as error:
            self.is_starting, self.begins_since = False, None
            raise self._no_thread(error) from error

    @property
    def starts_no_more(self) -> bool:
        """See `Task.starts_no_more`. During the last calls, a new instance would start after the last call of the old one."""
        return self.is_stopping or (self.is_ending and not self._host.opening)

    def _no_thread(self, error: ThreadRefusedError) -> ComponentError:
        component, threads = (
            self.component,
            sum(thread.has_started for thread in self.executors.threads.values()),
        )
        msg = (
            f"{component.place}: the operating system starts no thread for executor {self.executor.name}: {error}. Its worker "
            f"has {threads:,} threads of executors already. Give the component fewer executors, or more tasks per executor "
            f"(set_num_tasks); run the topology in more workers (topology.workers); make the component asynchronous, which takes "
            f"no threads; or raise the limit of threads (ulimit -u, the pids limit of a container, free memory)"
        )
        return ComponentError(msg)

    def _end_previous(self) -> None:
        self.notes.end()
        self.notes = self.executors.new_notes(self)
        super()._end_previous()

    def _start_on_thread(self, notes: Notes) -> None:
        if notes.ended or self.starts_no_more:
            return  # the task was started again meanwhile, or the topology stops, and `is_starting` stays true
        self._notes_here = notes
        failure: ComponentError | None = None
        try:
            while self.to_prepare:
                self.to_prepare[0]()
                self.to_prepare.pop(0)
            self._begin_instance()
        except ComponentError as error:
            failure = error
        except BaseException as error:  # InstanceEnded, SystemExit
            failure = self._component_error(f"raised in {self._first_call}", error)
        self._note(notes, partial(self._has_begun, failure))

    def _has_begun(self, failure: ComponentError | None) -> None:
        self.is_starting = False
        self.begun_at, self.begins_since = self._clock(), None
        self.start_error = failure
        if failure is None:
            if not self.is_stopping:  # else the last calls may have been made already
                self.is_held = False
                self._call_first()
                self.executor.wake()
        elif not self._host.opening:
            self.start_failed(failure)

    def _call_first(self) -> None:
        """Do what the worker's thread has to do once an instance has started."""

    def _run(self, call: Callable[..., _T], *args: Any) -> _T:
        return self._run_on_thread(call, *args)

    def _run_to_the_end(self, call: Callable[..., _T], *args: Any) -> _T:
        return self._run_on_thread(call, *args, patient=True)

    def _run_on_thread(self, call: Callable[..., _T], *args: Any, patient: bool = False) -> _T:
        try:
            if self.executor.is_current:  # one of the last calls
                self._last_call = getattr(call, "__name__", "last call")
                return call(*args)
            return self.executor.run(self.name, call, *args, patient=patient)
        except Exception:
            raise
        except BaseException as error:  # InstanceEnded and SystemExit end the call, and not the worker
            raise contained(getattr(call, "__name__", "its code"), error) from error

    @property
    def hears_verdicts(self) -> bool:
        """Whether the executor's thread has verdicts to deliver before the last calls."""
        return False

    def begin_to_stop(self) -> None:
        """Let the executor's thread make the last calls of the instance, after all calls that it has to make already."""
        self.executor.submit(self.name, self._stop_on_thread)

    def _stop_on_thread(self) -> None:
        if self.executor.gave_up:
            return
        self._last_call = "cleanup" if isinstance(self, BoltTask) else "deactivate"
        try:
            super().stop()
        except BaseException as error:  # InstanceEnded and SystemExit must not end the thread
            self._raised_last(contained(self._last_call, error))
        self.has_stopped = True

    def stop(self) -> None:
        """Give up the last calls, if they have not returned in time; see `Executors.finish`. A warning names the call."""
        if self.has_stopped or not self.executor.has_started:
            return
        busy = self.executor.busy
        if self.is_starting and self.executor.at is None:
            self.end_thread_work()  # its start has not begun
            return
        self._host.gave_up(busy)
        if self._last_call and busy.task == self.name:
            self.reports.logger.warning(
                "%s has not returned from its %s%s for %.0f s, and the topology stops without it",  # B1, C1
                self.name,
                self._last_call,
                "" if busy.place is None else f" ({busy.place.line})",
                busy.seconds,
            )
        else:
            self.reports.logger.warning(
                "%s gets no close or cleanup: %s has not returned for %.0f s",
                self.name,
                busy.code,
                busy.seconds,
            )
        self.end_thread_work()

    def give_up_call(self, waited: float) -> None:
        """Abort the batch, because the topology stops and has waited for the calls of this task for ``waited`` seconds."""
        busy = self.executor.busy
        stuck = self.executor.at is not None and busy.seconds >= waited
        self.executor.gave_up |= stuck
        calls = (
            f"{busy.code} has not returned for {busy.seconds:.0f} s"
            if stuck
            else "it still has calls to make"
        )
        self.abort(f"{calls}, and a topology that stops waits {waited:.0f} s for calls")

    # The batch is aborted, and is not repeated, if the topology stops and the component's code does not return in time.

    def begin_batch(self, attempt: TransactionAttempt, announced: Any) -> None:
        """See `Task.begin_batch`."""
        try:
            super().begin_batch(attempt, announced)
        except CallNotReturnedError as error:
            self._give_up_batch(error)

    def announcement(self) -> bytes | None:
        """See `Task.announcement`."""
        try:
            return super().announcement()
        except CallNotReturnedError as error:
            self._give_up_batch(error)
            return None

    def prepare_state(self, txid: int) -> list[TaskChanges] | None:
        """See `Task.prepare_state`."""
        try:
            return super().prepare_state(txid)
        except CallNotReturnedError as error:
            self._give_up_batch(error)
            return None

    def _give_up_batch(self, error: CallNotReturnedError) -> None:
        self.abort(str(error))
        self.executors.gave_up_batch = True

    def end_thread_work(self) -> None:
        """From now on, ignore everything that the instance does."""
        self.is_held = True
        self.notes.end()

    def take_back(self) -> None:
        """See `Task.take_back`. What the instance does is ignored from now on. But a spout without state goes on, and its notes
        belong to the next attempt.
        """
        if self.state is not None or isinstance(self, BoltTask):
            self.end_thread_work()

    # -- what the instance may ask for, on its thread ----------------------------------------------------------

    def _note(self, notes: Notes, note: Callable[[], object]) -> None:
        """Add a note, unless the instance has ended."""
        with suppress(InstanceEnded):
            notes.add(note)

    def note(self, notes: Notes, note: Callable[[], object]) -> None:
        """Note what user code does. Calls of threads that user code has started go into the mailbox, as in all other tasks
        (W26).

        Raises `InstanceEnded` on the executor's thread if the instance has ended.
        """
        if self.executor.is_current:
            notes.add(note)
        else:
            self.post(notes, note)

    def post(self, notes: Notes, call: Callable[[], object]) -> None:
        """Put a call of a thread of user code into the mailbox, unless the instance has ended."""
        self._host.guarded = True
        if not notes.ended:
            self.mailbox.post(call, is_at_work=self.is_at_work)

    def choose(self, outlet: Outlet, values: tuple[Any, ...]) -> list[int]:
        """Let the groupings choose the tasks that get a tuple. A lock is needed, because threads of user code may emit at the
        same time as the executor's thread.
        """
        with self._choosing:
            return outlet.choose(values)

    def is_at_work(self) -> bool:
        """Whether user code of the task runs now, as far as the calling thread can tell."""
        at = self.executor.at
        return at is not None and at[0] == self.name

    @property
    def shared_executor(self) -> Executor:
        """See `Task.shared_executor`. Here no check is turned on, because this task's collectors always check the thread."""
        return self._host.shared_executor

    def outlet(self, stream: str) -> Outlet:
        """Return the outlet of a stream. Raises `EmitError` if the stream is not declared."""
        return self.outlets.get(stream) or outlet_of(self, stream)

    def set_timer(self, seconds: float, callback: Callable[[], None], first: float | None = None) -> None:
        """See `Task.set_timer`. The callback runs on the executor's thread."""
        notes, is_under_way = self._notes_of_caller, False

        def due() -> None:
            nonlocal is_under_way
            if self.is_ending:
                return  # else a stop, which waits for calls, would wait for one call after the other
            if is_under_way:
                return  # an earlier call waits for the executor's thread or runs there, and counts for this period, too
            is_under_way = True
            notes.calls_due += 1
            self.executor.submit_timer(self.name, on_thread)

        def on_thread() -> None:
            nonlocal is_under_way
            self._timer_on_thread(notes, callback)
            is_under_way = False

        self._ask(partial(super().set_timer, seconds, due, first))

    def call_once(self, call: Callable[[], object], name: str) -> None:
        """See `Task.call_once`. The call runs on the executor's thread, and counts among the calls under way."""
        notes = self.notes
        notes.calls_due += 1
        self.executor.submit_timer(self.name, partial(self._timer_on_thread, notes, call, name))

    def _timer_on_thread(
        self, notes: Notes, callback: Callable[[], object], name: str = "a timer's callback"
    ) -> None:
        error: Exception | None = None
        if not (notes.ended or self.is_held or self.is_stopping):
            try:
                callback()
            except BaseException as raised:
                error = contained(name, raised)
                self.is_held = True
        self._note(notes, partial(self._timer_ended, notes, error, name))

    def _timer_ended(self, notes: Notes, error: Exception | None, name: str) -> None:
        notes.calls_due -= 1
        if error is not None:
            self.raised(name, error)
            self._go_on()

    def _go_on(self) -> None:
        """Let turns begin again after an error, unless the error has started a new instance or stopped the topology."""
        if not (self.is_starting or self.start_error) and self.fatal is None:
            self.is_held = False
            self.executor.wake()

    def _call_hooks_for_emits(self) -> None:
        """Do nothing, because the collectors of this task call its hooks themselves, on the executor's thread."""

    def report_error(self, error: BaseException | str) -> None:
        """See `Task.report_error`. Any thread may call this."""
        self.report_error_of(self.notes, error)

    def report_error_of(self, notes: Notes, error: BaseException | str) -> None:
        """Report an error of the instance with these notes, unless the instance has ended. Any thread may call this."""
        if self.executors.is_workers_thread:
            super().report_error(error)
        else:
            self._note(notes, partial(super().report_error, error))

    def _ask(self, call: Callable[[], _T]) -> _T:
        """Call a function on the worker's thread, and return its result."""
        return call() if self.executors.is_workers_thread else self._notes_of_caller.ask(call)

    @property
    def _notes_of_caller(self) -> Notes:
        """The notes of the instance whose code calls this. It may be an older instance, which has ended although its ``open``
        or ``prepare`` still runs.
        """
        return self._notes_here if self.executor.is_current else self.notes

    def add_hook(self, hook: TaskHook) -> None:
        """See `Task.add_hook`."""
        if self._notes_of_caller.ended:
            raise InstanceEnded
        super().add_hook(hook)

    # -- notes -------------------------------------------------------------------------------------------------

    def take_notes(self, notes: Notes) -> None:
        """Carry out the notes of the current instance; ignore those of an earlier one, or of a task that stops the topology.

        An error in a note counts as an error in the code of the instance.
        """
        if notes is not self.notes or self.fatal is not None:
            return
        try:
            notes.take()
        except Exception as error:
            self.raised("emit", error)
            self._go_on()
