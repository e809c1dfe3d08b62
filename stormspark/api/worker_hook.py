"""Worker hooks (A5): code that runs when a worker starts and ends. A hook shares resources with the worker's tasks (A28)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["WorkerHook", "WorkerHookDeclaration", "WorkerUserContext"]


class WorkerUserContext:
    """The context that `WorkerHook.start` receives: the worker's place in the topology, and resources for its tasks.

    >>> context = WorkerUserContext("t", "t-1", worker=0, worker_tasks=(3, 4), tasks={"words": (3, 4, 5)})
    >>> context.set_resource("greeting", "hello")
    >>> context.get_resource("greeting"), context.component_tasks("words")
    ('hello', [3, 4, 5])
    """

    def __init__(
        self,
        topology: str,
        storm_id: str,
        *,
        worker: int,
        worker_tasks: tuple[int, ...],
        tasks: Mapping[str, tuple[int, ...]],
    ) -> None:
        self.topology_name = topology
        #: The topology's name, how many times it was started, and the time of this start: ``words-3-1700000000`` (A14).
        self.storm_id = storm_id
        self.this_worker_index = worker
        self.this_worker_tasks = worker_tasks
        self.logger = logging.getLogger("stormspark.worker_hook")
        self._tasks = tasks
        self._resources: dict[str, Any] = {}

    @property
    def component_ids(self) -> tuple[str, ...]:
        """The ids of all spouts and bolts."""
        return tuple(self._tasks)

    def component_tasks(self, component: str) -> list[int]:
        """Return the task ids of a component, ascending; for an unknown one raise a KeyError that lists the components."""
        if component not in self._tasks:
            msg = f"no component {component!r}; there are {', '.join(map(repr, self._tasks))}"
            raise KeyError(msg)
        return list(self._tasks[component])

    def set_resource(self, name: str, value: Any) -> None:
        """Keep ``value`` for all tasks of this worker. `TopologyContext.get_resource` returns this very object (A28)."""
        self._resources[name] = value

    def get_resource(self, name: str) -> Any:
        """Return the resource that this or an earlier hook has set, or None."""
        return self._resources.get(name)

    @property
    def resources(self) -> Mapping[str, Any]:
        """All resources that hooks have set, by name."""
        return self._resources


class WorkerHook:
    """A hook that runs once in every worker: `start` before the worker's tasks, `shutdown` after them (A5).

    The hook is pickled where the topology is built, and every worker has a copy of its own (A3). A worker that takes the
    place of a lost one starts its hooks anew.

    >>> class Connection(WorkerHook):
    ...     def start(self, conf, context):
    ...         self.connection = open(conf["my.file"])
    ...         context.set_resource("connection", self.connection)
    ...     def shutdown(self):
    ...         self.connection.close()
    """

    def start(self, conf: Mapping[str, Any], context: WorkerUserContext) -> None:
        """Called before any bolt is prepared or spout opened. An exception stops the topology."""

    def shutdown(self) -> None:
        """Called after the tasks have ended. Not called when the worker is killed."""


@dataclass(frozen=True)
class WorkerHookDeclaration:
    """A pickled worker hook, and the place where the user added it."""

    pickled: bytes
    type_name: str
    declared_at: str
