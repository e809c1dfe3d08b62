"""The context of generators and transform operators. It tells them about their task and topology, and emits for them (G24)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from stormspark.api import TopologyContext

__all__ = ["Context", "StageContext"]


class Context(ABC):
    """The context that ``setup`` of a `Generator` or a `TransformOperator` receives."""

    @abstractmethod
    def get_task_id(self) -> int:
        """Return the id of this task, which is unique in the topology."""

    @abstractmethod
    def get_config(self) -> Mapping[str, Any]:
        """Return the configuration of the topology."""

    @abstractmethod
    def get_stream_name(self) -> str:
        """Return the name of the first stream on which elements arrive; for a source, of the stream on which they leave."""

    @abstractmethod
    def get_num_partitions(self) -> int:
        """Return the number of tasks of this stage."""

    @abstractmethod
    def get_partition_index(self) -> int:
        """Return the index of this task among the stage's tasks, from 0."""

    @abstractmethod
    def get_state(self) -> MutableMapping[Any, Any] | None:
        """Return the task's state, a map that is kept from batch to batch. Without EFFECTIVELY_ONCE, returns None.

        After you have changed a value in place, put it into the map again.
        """

    @abstractmethod
    def emit(self, values: Any) -> None:
        """Emit one element to the streamlet."""


class StageContext(Context):
    """The context of a task."""

    def __init__(
        self,
        context: TopologyContext,
        config: Mapping[str, Any],
        state: MutableMapping[Any, Any] | None,
        stream: str,
        emit: Callable[[Any], None],
    ) -> None:
        self._context = context
        self._config = config
        self._state = state
        self._stream = stream
        self._emit = emit

    def get_task_id(self) -> int:
        """See `Context`."""
        return self._context.this_task_id

    def get_config(self) -> Mapping[str, Any]:
        """See `Context`."""
        return self._config

    def get_stream_name(self) -> str:
        """See `Context`."""
        return next((source.stream for source in self._context.this_sources), self._stream)

    def get_num_partitions(self) -> int:
        """See `Context`."""
        return len(self._context.component_tasks(self._context.this_component_id))

    def get_partition_index(self) -> int:
        """See `Context`."""
        return self._context.this_task_index

    def get_state(self) -> MutableMapping[Any, Any] | None:
        """See `Context`."""
        return self._state

    def emit(self, values: Any) -> None:
        """See `Context`."""
        self._emit(values)
