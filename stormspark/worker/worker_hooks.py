"""The worker hooks of one worker (A5). Hooks are started before the worker's tasks, and shut down after the tasks."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from typing import Any

from stormspark.api import WorkerHook, WorkerHookDeclaration, WorkerUserContext
from stormspark.errors import ComponentError
from stormspark.pickling import unpickled
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.errors_of_code import ERRORS_OF_CODE

__all__ = ["WorkerHooks"]

_log = logging.getLogger(__name__)


class WorkerHooks:
    """The hooks of worker ``index``. ``resources`` always has the objects that the hooks have set so far for the worker's
    tasks. ``context`` is what they get.
    """

    def __init__(self, plan: PhysicalPlan, index: int, storm_id: str) -> None:
        self._plan = plan
        self._started: list[tuple[WorkerHookDeclaration, WorkerHook]] = []
        self.context = WorkerUserContext(
            plan.topology,
            storm_id,
            worker=index,
            worker_tasks=tuple(task.id for task in plan.tasks_of_worker(index)),
            tasks={component.id: component.tasks for component in plan.components.values()},
        )
        self.resources: Mapping[str, Any] = self.context.resources

    def start(self) -> None:
        """Make and start the hooks, in the order in which they were added. Raises `ComponentError` if a hook raises."""
        for declaration in self._plan.worker_hooks:
            try:
                hook: WorkerHook = unpickled(declaration.pickled)
                hook.start(self._plan.conf, self.context)
            except ERRORS_OF_CODE as error:
                text = "".join(traceback.format_exception(error))
                msg = (
                    f"{_named(declaration)}, raised in start in worker {self.context.this_worker_index}: "
                    f"{type(error).__name__}: {error}\n{text}"
                )
                raise ComponentError(msg) from error
            self._started.append((declaration, hook))

    def shutdown(self) -> None:
        """Shut the hooks down, the last one first. An error in a hook is logged, and the other hooks are still shut down."""
        while self._started:
            declaration, hook = self._started.pop()
            try:
                hook.shutdown()
            except ERRORS_OF_CODE:
                _log.exception("%s, raised in shutdown", _named(declaration))


def _named(declaration: WorkerHookDeclaration) -> str:
    return f"worker hook {declaration.type_name}, declared at {declaration.declared_at}"
