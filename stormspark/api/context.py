"""What a task may know of itself and of its topology (A26-A28)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from stormspark.api.fields import Fields
from stormspark.api.streams import DEFAULT_STREAM, GlobalStreamId

__all__ = ["TopologyContext"]


class TopologyContext:
    """Given to ``open`` and ``prepare``. ``logger`` writes to the task's own log file."""

    def __init__(
        self,
        *,
        topology: str,
        component: str,
        task: int,
        worker: int,
        tasks: Mapping[str, tuple[int, ...]],
        worker_tasks: tuple[int, ...],
        streams: Mapping[str, Mapping[str, Fields]],
        sources: tuple[GlobalStreamId, ...],
        targets: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.topology_name = topology
        self.this_component_id = component
        self.this_task_id = task
        self.this_worker_index = worker
        self.this_worker_tasks = worker_tasks
        self.logger = logging.getLogger(f"stormspark.task.{component}")
        self._tasks = tasks
        self._streams = streams
        self._sources = sources
        self._targets = targets
        self._component_of = {task: name for name, ids in tasks.items() for task in ids}
        self._task_data: dict[str, Any] = {}

    @property
    def this_task_index(self) -> int:
        """The position of this task among its component's, from 0 (A18)."""
        return self._tasks[self.this_component_id].index(self.this_task_id)

    @property
    def component_ids(self) -> tuple[str, ...]:
        """All spouts and bolts."""
        return tuple(self._tasks)

    def component_tasks(self, component: str) -> list[int]:
        """The task ids of a component, ascending; raises KeyError that lists what there is."""
        if component not in self._tasks:
            msg = f"no component {component!r}; there are {', '.join(map(repr, self._tasks))}"
            raise KeyError(msg)
        return list(self._tasks[component])

    def component_of(self, task: int) -> str:
        """The component that a task belongs to."""
        return self._component_of[task]

    def output_fields(self, component: str | None = None, stream: str = DEFAULT_STREAM) -> Fields:
        """The fields of a stream, of this component unless another is named."""
        return self._streams[component or self.this_component_id][stream]

    @property
    def this_streams(self) -> tuple[str, ...]:
        """The streams that this component declares."""
        return tuple(self._streams[self.this_component_id])

    @property
    def this_sources(self) -> tuple[GlobalStreamId, ...]:
        """The streams that this component subscribes to."""
        return self._sources

    @property
    def this_targets(self) -> Mapping[str, tuple[str, ...]]:
        """For each of this component's streams, who subscribes to it."""
        return self._targets

    def set_task_data(self, name: str, value: Any) -> None:
        """Keep something for this task under a name (A28)."""
        self._task_data[name] = value

    def get_task_data(self, name: str) -> Any:
        """What `set_task_data` kept, or None."""
        return self._task_data.get(name)
