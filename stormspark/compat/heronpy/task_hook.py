"""Task hooks (J21): user code that is called when a task emits, executes, acks or fails a tuple."""

from __future__ import annotations

from abc import abstractmethod
from collections import namedtuple
from typing import Any

__all__ = [
    "BoltAckInfo",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "EmitInfo",
    "ITaskHook",
    "SpoutAckInfo",
    "SpoutFailInfo",
]

#: ``out_tasks`` is the list of tasks that the tuple goes to. In Heron's own Python it is always None.
EmitInfo = namedtuple("EmitInfo", "values stream_id task_id out_tasks")
SpoutAckInfo = namedtuple("SpoutAckInfo", "message_id spout_task_id complete_latency_ms")
SpoutFailInfo = namedtuple("SpoutFailInfo", "message_id spout_task_id fail_latency_ms")
BoltExecuteInfo = namedtuple("BoltExecuteInfo", "heron_tuple executing_task_id execute_latency_ms")
BoltAckInfo = namedtuple("BoltAckInfo", "heron_tuple acking_task_id process_latency_ms")
BoltFailInfo = namedtuple("BoltFailInfo", "heron_tuple failing_task_id fail_latency_ms")


class ITaskHook:
    """The base class of task hooks. Add one with ``context.add_task_hook``, or name it in ``topology.auto.task.hooks``."""

    @abstractmethod
    def prepare(self, conf: dict[str, Any], context: Any) -> None:
        """Called after the component's ``initialize`` has returned."""

    @abstractmethod
    def clean_up(self) -> None:
        """Called when the component ends gracefully."""

    @abstractmethod
    def emit(self, emit_info: Any) -> None:
        """Called when a tuple is emitted."""

    @abstractmethod
    def spout_ack(self, spout_ack_info: Any) -> None:
        """Called after the spout's ``ack`` has returned."""

    @abstractmethod
    def spout_fail(self, spout_fail_info: Any) -> None:
        """Called after the spout's ``fail`` has returned."""

    @abstractmethod
    def bolt_execute(self, bolt_execute_info: Any) -> None:
        """Called after the bolt's ``process`` has returned, but not for ticks."""

    @abstractmethod
    def bolt_ack(self, bolt_ack_info: Any) -> None:
        """Called after the bolt has acked a tuple."""

    @abstractmethod
    def bolt_fail(self, bolt_fail_info: Any) -> None:
        """Called after the bolt has failed a tuple."""
