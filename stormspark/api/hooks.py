"""Task hooks: user code that is called for each event of a task (J21)."""

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
    """The event that a task has emitted ``values`` on ``stream`` to the tasks ``out_tasks``."""

    values: tuple[Any, ...]
    stream: str
    task: int
    out_tasks: tuple[int, ...]


class SpoutAckInfo(NamedTuple):
    """The event that a spout's tree was acked, ``complete_latency_ms`` after its emit; 0 if acking is off."""

    message_id: Hashable
    task: int
    complete_latency_ms: float


class SpoutFailInfo(NamedTuple):
    """The event that a spout's tree failed, ``fail_latency_ms`` after its emit."""

    message_id: Hashable
    task: int
    fail_latency_ms: float


class BoltExecuteInfo(NamedTuple):
    """The event that a bolt has executed a tuple, which may be a tick."""

    tuple: Tuple
    task: int
    execute_latency_ms: float


class BoltAckInfo(NamedTuple):
    """The event that a bolt has acked a tuple. A `BasicBolt` acks its tuple when ``execute`` has returned."""

    tuple: Tuple
    task: int


class BoltFailInfo(NamedTuple):
    """The event that a tuple failed in a bolt: the bolt failed it, its ``execute`` raised, or the tuple was shed."""

    tuple: Tuple
    task: int


class TaskHook:
    """A hook of one task. Override the methods whose events you want to handle.

    Register the hook with `TopologyContext.add_task_hook` in ``open`` or ``prepare``. Every task also gets an instance
    of each class that ``topology.auto.task.hooks`` lists, as ``module:Class`` or ``module.Class``. An exception in a
    hook counts as raised by the component. Hooks cost nothing in a task that has none.

    >>> class Count(TaskHook):
    ...     emitted = 0
    ...     def emit(self, info):
    ...         self.emitted += 1
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called when the hook is registered."""

    def cleanup(self) -> None:
        """Called when the task ends gracefully."""

    def emit(self, info: EmitInfo) -> None:
        """Called after the task has emitted a tuple."""

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """Called after the spout's ``ack`` has returned."""

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """Called after the spout's ``fail`` has returned."""

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """Called after the bolt's ``execute`` has returned."""

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """Called after the bolt has acked a tuple."""

    def bolt_fail(self, info: BoltFailInfo) -> None:
        """Called after a tuple has failed in the bolt; see `BoltFailInfo`."""
