"""The contexts through which a task, or a custom grouping, sees its topology."""

from __future__ import annotations

from abc import abstractmethod
from collections import namedtuple
from collections.abc import Mapping
from typing import Any

from stormspark.api import TopologyContext as EngineContext
from stormspark.compat.heronpy.hooks import Hooks
from stormspark.grouping import GroupingContext
from stormspark.metrics import Metric, StateMetric

__all__ = ["GroupingTopologyContext", "StreamId", "TaskContext", "TopologyContext"]

StreamId = namedtuple("StreamId", "id component_name")

Sources = Mapping[str, Mapping[tuple[str, str], int]]


class TopologyContext:
    """The context that ``initialize`` receives."""

    @abstractmethod
    def get_task_id(self) -> int:
        """Return the id of this task."""
        raise NotImplementedError

    @abstractmethod
    def get_component_id(self) -> str:
        """Return the name of this task's component."""
        raise NotImplementedError

    @abstractmethod
    def get_cluster_config(self) -> dict[str, Any]:
        """Return the configuration: the dict that ``initialize`` also gets."""
        raise NotImplementedError

    @abstractmethod
    def get_topology_name(self) -> str:
        """Return the name of the topology."""
        raise NotImplementedError

    @abstractmethod
    def register_metric(self, name: str, metric: Any, time_bucket_in_sec: float) -> None:
        """Register a metric, which is read every ``time_bucket_in_sec`` seconds. Call this in ``initialize``."""

    @abstractmethod
    def get_sources(self, component_id: str) -> dict[Any, int] | None:
        """Return a component's inputs: for each (id, component_name), the grouping's number in Heron's protocol.

        Returns None for an unknown component.
        """

    def get_this_sources(self) -> dict[Any, int] | None:
        """Return the inputs of this component."""
        return self.get_sources(self.get_component_id())

    @abstractmethod
    def get_component_tasks(self, component_id: str) -> list[int]:
        """Return the task ids of a component; an empty list if there is no such component."""
        raise NotImplementedError

    @abstractmethod
    def add_task_hook(self, task_hook: Any) -> None:
        """Add an `ITaskHook`, which is called for each emit, execute, ack and fail of this task. Call this in ``initialize``."""


class TaskContext(TopologyContext):
    """The context of a task."""

    def __init__(
        self, context: EngineContext, config: dict[str, Any], sources: Sources, hooks: Hooks
    ) -> None:
        self._context, self._config, self._sources, self._hooks = context, config, sources, hooks

    def get_task_id(self) -> int:
        """Return the id of this task."""
        return self._context.this_task_id

    def get_component_id(self) -> str:
        """Return the name of this task's component."""
        return self._context.this_component_id

    def get_cluster_config(self) -> dict[str, Any]:
        """Return the configuration."""
        return self._config

    def get_topology_name(self) -> str:
        """Return the name of the topology."""
        return self._context.topology_name

    def register_metric(self, name: str, metric: Any, time_bucket_in_sec: float) -> None:
        """Read ``metric`` periodically. Raises RuntimeError if the name is in use, and after ``initialize`` (J18)."""
        registered = metric if isinstance(metric, Metric) else StateMetric(metric.get_value_and_reset)
        self._context.register_metric(name, registered, time_bucket_in_sec)

    def get_metrics_collector(self) -> TaskContext:
        """Return this context. Heron's components call `register_metric` on the result."""
        return self

    def get_sources(self, component_id: str) -> dict[Any, int] | None:
        """See `TopologyContext.get_sources`."""
        return _sources_of(self._sources, component_id)

    def get_component_tasks(self, component_id: str) -> list[int]:
        """Return the task ids of a component."""
        known = component_id in self._context.component_ids
        return self._context.component_tasks(component_id) if known else []

    def add_task_hook(self, task_hook: Any) -> None:
        """Add a hook. Raises TypeError if it is not an `ITaskHook`."""
        self._hooks.add(task_hook)

    def now(self) -> float:
        """Return the time in seconds since 1970, by the worker's clock. Tests may set this clock."""
        return self._context.now_ms() / 1000


class GroupingTopologyContext(TopologyContext):
    """The context that ``ICustomGrouping.prepare`` gets. The sending task calls ``prepare``."""

    def __init__(
        self, context: GroupingContext, topology: str, config: dict[str, Any], sources: Sources
    ) -> None:
        self._context, self._topology, self._config, self._sources = context, topology, config, sources

    def get_task_id(self) -> int:
        """Return the id of the sending task."""
        return self._context.sender

    def get_component_id(self) -> str:
        """Return the name of the sending component."""
        return self._context.source

    def get_cluster_config(self) -> dict[str, Any]:
        """Return the configuration of the sending component."""
        return self._config

    def get_topology_name(self) -> str:
        """Return the name of the topology."""
        return self._topology

    def get_sources(self, component_id: str) -> dict[Any, int] | None:
        """See `TopologyContext.get_sources`."""
        return _sources_of(self._sources, component_id)

    def get_component_tasks(self, component_id: str) -> list[int]:
        """Return the task ids of a component."""
        return list(self._context.tasks.get(component_id, ()))

    def register_metric(self, name: str, metric: Any, time_bucket_in_sec: float) -> None:
        """Raise RuntimeError, because a grouping can't register metrics."""
        msg = f"metric {name!r}: a grouping can't register metrics: do it in initialize() of the component that emits"
        raise RuntimeError(msg)

    def add_task_hook(self, task_hook: Any) -> None:
        """Raise RuntimeError, because a grouping can't add task hooks."""
        msg = "a grouping can't add task hooks: do it in initialize() of the component that emits"
        raise RuntimeError(msg)


def _sources_of(sources: Sources, component: str) -> dict[Any, int] | None:
    taken = sources.get(component)
    return None if taken is None else {StreamId(*stream): number for stream, number in taken.items()}
