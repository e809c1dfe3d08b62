"""The part of a task that deals with batches. It prepares, commits and rolls back the task's state. It tells the component which
batch begins, if the component knows its batches (`BatchAware`). It notes why a batch can't be committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import cloudpickle

from stormspark.checkpoint.state_table import TaskChanges
from stormspark.errors import CheckpointError, UnavailableError
from stormspark.metrics import TaskCounters
from stormspark.plan.physical import ComponentPlan, TaskPlan
from stormspark.spi import BatchAware, TransactionAttempt
from stormspark.worker.errors_of_code import ERRORS_OF_CODE
from stormspark.worker.executors.thread import CallNotReturnedError
from stormspark.worker.state.task_state import TaskState

__all__ = ["TaskInBatches"]

_T = TypeVar("_T")


class TaskInBatches:
    """The part of a `stormspark.worker.task.Task` that deals with batches. The task's index is here, too, because state is
    stored under it.
    """

    def __init__(self, plan: TaskPlan, component: ComponentPlan) -> None:
        self.id = plan.id
        self.placed = plan
        #: The task's index among its component's tasks. State is stored under this index, because the ids of tasks change when
        #: other components are added or removed (A18, C36).
        self.index = plan.index
        self.component = component
        self.name = f"{component.id}[{plan.index}]"
        self.counters = TaskCounters()
        self._settings = component.settings
        #: State that outlives the task's instances and its process; None for a component without state.
        self.state: TaskState | None = None
        if component.kind_of_state:
            self.state = TaskState(component, plan, self.name, self._settings.state_cache_bytes)
        #: Why the batch can't be committed. This is the first error in the batch.
        self.aborts: str | None = None
        self.aborted_outside = False  # whether the cause is storage or a broker that can't be reached
        #: The current attempt, and what an earlier attempt announced; None unless the component is a `BatchAware`.
        self._attempt: tuple[TransactionAttempt, Any] | None = None

    # -- state -----------------------------------------------------------------------------------------------

    def prepare_state(self, txid: int) -> list[TaskChanges] | None:
        """Prepare the state, and return its changes in the batch. Return None if that fails, because then the batch can't be
        committed.
        """
        assert self.state is not None
        try:
            return self._run(self.state.prepare, self.instance, txid)
        except (OSError, UnavailableError, CheckpointError) as error:
            # The next attempt begins with a new instance in any case. This does not count as a restart, because the component
            # did not cause it.
            self.abort(f"{type(error).__name__}: {error}", outside=True)
            self.report_error(error)
            return None
        except CallNotReturnedError:
            raise  # no error of the component; see `ThreadedTask.prepare_state`
        except ERRORS_OF_CODE as error:
            self.raised("pre_prepare, pre_save or pre_commit", error)
            return None

    def commit_state(self, txid: int) -> None:
        """Take over the state of a batch that is committed now. Do nothing if this task has not prepared the batch.

        If ``post_save`` raises, the component restarts with the committed state, as in Heron (C42). But a sink is not
        restarted, because it retries by itself.
        """
        assert self.state is not None
        instance = self.instance
        if not self.state.take_over(txid):
            return
        self.counters.unwritten = 0
        try:
            self._run_to_the_end(self.state.call_post_save, instance, txid)
        except ERRORS_OF_CODE as error:
            self.counters.unwritten = 1
            self.report_error(error)
            if not self.state.tries_again(instance):
                self.counters.restarts += 1
                self.forget_tuples()
                self.begin_anew()

    def forget_tuples(self) -> None:
        """Drop all tuples that wait for the task, and all that the task holds."""

    def take_back(self) -> None:
        """Ignore the effects of calls that have not returned yet, because their attempt is rolled back."""

    def roll_back_state(self, txid: int) -> None:
        """Take the task back to the state of batch ``txid``, because the batch after that one runs again.

        If the task has an instance, it gets a new one.
        """
        assert self.state is not None
        instance = self.instance
        try:
            self._run(self.state.rolled_back, instance, txid)
        except ERRORS_OF_CODE as error:
            self.report_error(error)
        if instance is not None:
            self.begin_anew()

    # -- components that know their batches ------------------------------------------------------------------

    @property
    def _batch_aware(self) -> BatchAware | None:
        instance = self.instance if self.component.kind_of_batch else None
        return instance if isinstance(instance, BatchAware) else None

    def begin_batch(self, attempt: TransactionAttempt, announced: Any) -> None:
        """Tell the component that an attempt begins. A later instance of the task gets the same call when it starts."""
        self._attempt = attempt, announced
        component = self._batch_aware
        if component is not None:
            self._run(component.begin_batch, attempt, announced)

    @property
    def takes_part(self) -> bool:
        """Whether this task has taken part in the batch, so that bolts have to be told of the end of the batch."""
        component = self._batch_aware
        return component is not None and component.takes_part

    def announcement(self) -> bytes | None:
        """Return the pickled announcement that a later attempt at this batch has to know; None if there is no announcement."""
        component = self._batch_aware
        if component is None or not component.announces:
            return None
        announced = self._run(component.announcement)
        if announced is None:
            return None
        try:
            return cloudpickle.dumps(announced, 5)  # type: ignore[no-any-return]
        except Exception as error:
            self.abort(f"its announcement for the batch can't be pickled: {type(error).__name__}: {error}")
            self.report_error(error)
            return None

    def abort(self, reason: str, *, outside: bool = False) -> None:
        """If batches are transactions, note why the batch can't be committed. The first reason counts.

        ``outside`` says that the cause is storage or a broker that can't be reached.
        """
        if self.aborts is None:
            self.aborts, self.aborted_outside = f"{self.name}: {reason}"[:1000], outside

    # -- what the rest of the task does ----------------------------------------------------------------------

    @property
    def instance(self) -> Any:
        """The current spout or bolt, or None before the first one was opened or prepared."""
        raise NotImplementedError

    def _run(self, call: Callable[..., _T], *args: Any) -> _T:
        raise NotImplementedError

    def _run_to_the_end(self, call: Callable[..., _T], *args: Any) -> _T:
        raise NotImplementedError

    def begin_anew(self) -> bool:
        """Make a new instance; see `Task.begin_anew`."""
        raise NotImplementedError

    def report_error(self, error: BaseException | str) -> None:
        """Report an error; see `Task.report_error`."""
        raise NotImplementedError

    def raised(self, where: str, error: BaseException) -> None:
        """Report an error, and restart the task; see `Task.raised`."""
        raise NotImplementedError
