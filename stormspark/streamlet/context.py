"""What generators and transform operators are told of where they run (G24)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from stormspark.api import TopologyContext

__all__ = ["Context", "StageContext"]


class Context(ABC):
    """Given to ``setup`` of a `Generator` or a `TransformOperator`."""

    @abstractmethod
    def get_task_id(self) -> int:
        """The id of this task, among all of the topology."""

    @abstractmethod
    def get_config(self) -> Mapping[str, Any]:
        """The configuration of the topology."""

    @abstractmethod
    def get_stream_name(self) -> str:
        """The stream that elements come on; of a source, the one that they leave on."""

    @abstractmethod
    def get_num_partitions(self) -> int:
        """How many tasks this stage has."""

    @abstractmethod
    def get_partition_index(self) -> int:
        """Which of them this one is, from 0."""

    @abstractmethod
    def get_state(self) -> MutableMapping[Any, Any] | None:
        """What this task keeps from batch to batch with EFFECTIVELY_ONCE: a map. Else None.

        Put again what you have changed in place.
        """

    @abstractmethod
    def emit(self, values: Any) -> None:
        """Put one element into the streamlet."""


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
