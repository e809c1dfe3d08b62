"""What spout tasks and bolt tasks share: their component's instance, counters, errors and restarts."""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle

from stormspark.acker import Ledger
from stormspark.api import TopologyContext
from stormspark.errors import ComponentError
from stormspark.metrics import TaskCounters
from stormspark.plan.physical import ComponentPlan, TaskPlan
from stormspark.worker.outlets import Outlet
from stormspark.worker.step import ErrorReport

__all__ = ["Task"]

_ERRORS_KEPT = 20  # a batch; the counter goes on


class Task:
    """One instance of a component.

    One rule for each kind of error (W22): what `open`, `prepare` or `activate` raises stops the topology;
    what a task raises at work restarts this task alone, and after ``max_restarts`` executions in a row that
    raised it stops the topology too.
    """

    def __init__(
        self,
        plan: TaskPlan,
        component: ComponentPlan,
        conf: Mapping[str, Any],
        make_context: Callable[[], TopologyContext],
        ledger: Ledger,
        clock: Callable[[], float],
        max_restarts: int,
    ) -> None:
        self.id = plan.id
        self.component = component
        self.name = f"{component.id}[{plan.index}]"
        self.counters = TaskCounters()
        self.errors: deque[ErrorReport] = deque(maxlen=_ERRORS_KEPT)
        self.fatal: ErrorReport | None = None
        self.outlets: dict[str, Outlet] = {}
        self.logger = logging.getLogger(f"stormspark.task.{component.id}")
        self._conf = conf
        self._make_context = make_context
        self._ledger = ledger
        self._clock = clock
        self._max_restarts = max_restarts
        self._raised_in_row = 0

    def _instance(self) -> Any:
        """A fresh copy of the component (A3)."""
        try:
            return cloudpickle.loads(self.component.pickled)
        except Exception as error:
            failure = self._component_error("can't be unpickled in the worker", error)
            raise failure from error

    def start(self) -> None:
        """Make the instance and call what Storm calls first; raises `ComponentError`."""
        raise NotImplementedError

    def stop(self) -> None:
        """The graceful end of the instance; what it raises is reported and stops nothing."""
        raise NotImplementedError

    def _component_error(self, what: str, error: BaseException) -> ComponentError:
        component = self.component
        text = "".join(traceback.format_exception(error))
        msg = (
            f"{component.kind} {component.id!r}, task {self.id} ({self.name}), declared at {component.declared_at}, "
            f"{what}: {type(error).__name__}: {error}\n{text}"
        )
        return ComponentError(msg)

    def report_error(self, error: BaseException | str) -> None:
        """Count, log and report an error (C4)."""
        text = error if isinstance(error, str) else "".join(traceback.format_exception(error)).rstrip()
        self.counters.errors += 1
        self.errors.append(ErrorReport(self.component.id, self.id, text))
        self.logger.error("%s: %s", self.name, text)

    def stop_topology(self, error: ComponentError) -> None:
        """Nothing more is asked of this task; the driver stops the topology when the batch ends."""
        self.fatal = ErrorReport(self.component.id, self.id, str(error))
        self.logger.critical("%s stops the topology: %s", self.name, error)

    def _restart(self, what: str, error: Exception) -> bool:
        """After ``error``: begin anew, or give up; true if this task goes on."""
        self._raised_in_row += 1
        if self._raised_in_row > self._max_restarts:
            self.stop_topology(
                self._component_error(f"raised {self._raised_in_row} times in a row, last in {what}", error)
            )
            return False
        self.counters.restarts += 1
        try:
            self.start()
        except ComponentError as second:
            self.stop_topology(second)
            return False
        return True

    def read_counters(self) -> TaskCounters:
        """The counters, up to date: emits are counted by the outlets."""
        counts = [outlet.counts() for outlet in self.outlets.values()]
        self.counters.emitted = sum(emitted for emitted, _ in counts)
        self.counters.transferred = sum(copies for _, copies in counts)
        return self.counters

    def take_errors(self) -> list[ErrorReport]:
        """The errors since the last call, oldest first."""
        errors = list(self.errors)
        self.errors.clear()
        return errors
