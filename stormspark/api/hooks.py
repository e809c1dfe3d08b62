"""Task hooks: code that is told of what a task does (J21)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from stormspark.api.tuples import Tuple

if TYPE_CHECKING:
    from stormspark.api.context import TopologyContext

__all__ = [
    "BoltAckInfo",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "EmitInfo",
    "SpoutAckInfo",
    "SpoutFailInfo",
    "TaskHook",
]


class EmitInfo(NamedTuple):
    """A task has emitted ``values`` on ``stream`` to the tasks ``out_tasks``."""

    values: tuple[Any, ...]
    stream: str
    task: int
    out_tasks: tuple[int, ...]


class SpoutAckInfo(NamedTuple):
    """A spout's message was acked after ``complete_latency_ms``."""

    message_id: Hashable
    task: int
    complete_latency_ms: float


class SpoutFailInfo(NamedTuple):
    """A spout's message failed after ``fail_latency_ms``."""

    message_id: Hashable
    task: int
    fail_latency_ms: float


class BoltExecuteInfo(NamedTuple):
    """A bolt has executed a tuple, ticks among them."""

    tuple: Tuple
    task: int
    execute_latency_ms: float


class BoltAckInfo(NamedTuple):
    """A bolt has acked a tuple; of a `BasicBolt`, that its execute has returned."""

    tuple: Tuple
    task: int


class BoltFailInfo(NamedTuple):
    """A bolt has failed a tuple."""

    tuple: Tuple
    task: int


class TaskHook:
    """Override what you want to hear of; register it by `TopologyContext.add_task_hook` in open or prepare.

    ``topology.auto.task.hooks`` lists classes, as ``module:Class`` or ``module.Class``, of which every task gets an instance.
    What a hook raises counts as raised by the component. A task without hooks pays nothing for them.

    >>> class Count(TaskHook):
    ...     emitted = 0
    ...     def emit(self, info):
    ...         self.emitted += 1
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called when the hook is registered."""

    def cleanup(self) -> None:
        """The task ends gracefully."""

    def emit(self, info: EmitInfo) -> None:
        """The task has emitted a tuple."""

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """The spout's ``ack`` has returned."""

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """The spout's ``fail`` has returned."""

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """The bolt's ``execute`` has returned."""

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """The bolt has acked a tuple."""

    def bolt_fail(self, info: BoltFailInfo) -> None:
        """The bolt has failed a tuple."""
