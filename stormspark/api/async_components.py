"""Async components: spouts and bolts whose methods are coroutines, for code that waits for a database or a service.

Storm has no such components. A bolt that asks a database or a service spends most of its time waiting. A task of an ordinary
bolt waits for one answer at a time, and a task of an `AsyncBolt` waits for many at once. All async components of a worker share
one asyncio event loop, which runs in a thread of its own. So a coroutine must not block. While one coroutine computes, or calls
``time.sleep``, all other coroutines of the worker stand still.

Flink's async I/O has the same three settings: `AsyncBolt.capacity`, `AsyncBolt.timeout_secs` and `AsyncBolt.ordered`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from stormspark.acker import Verdict
from stormspark.api.components import Component
from stormspark.api.streams import DEFAULT_STREAM

if TYPE_CHECKING:
    from stormspark.api.context import TopologyContext
    from stormspark.api.tuples import Tuple

__all__ = [
    "AsyncBolt",
    "AsyncEmitGroup",
    "AsyncOutputCollector",
    "AsyncSpout",
    "AsyncSpoutOutputCollector",
]


class AsyncOutputCollector(Protocol):
    """The collector that `AsyncBolt.prepare` receives. Any thread may call it, and no method waits.

    Emitted tuples reach their tasks a little later, so `emit` returns no task ids. Inside ``execute`` the *current tuple* is the
    tuple of that call. The same holds in asyncio tasks and ``asyncio.to_thread`` calls that ``execute`` starts. Elsewhere there
    is no current tuple.
    """

    def emit(
        self,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] | None = None,
    ) -> None:
        """Emit a tuple that is anchored to the current tuple, or to ``anchors`` if they are given.

        ``anchors=()`` leaves the emitted tuple untracked. Raises `EmitError` for an unknown stream, for a wrong number of values,
        and for an emit that is anchored to the current tuple after its call has ended.
        """

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] | None = None,
    ) -> None:
        """Emit a tuple on a direct stream to one task (B9, D11)."""

    def ack(self, tup: Tuple) -> None:
        """Ack a tuple before its call ends. A tuple that is neither acked nor failed is acked when ``execute`` returns."""

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Fail every tree that ``tup`` belongs to; ``reason`` becomes part of the verdict (W4). The call goes on."""

    def reset_timeout(self, tup: Tuple) -> None:
        """Give the trees of ``tup`` another message timeout (C11)."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics. The tuple does not fail, and the task goes on (C4)."""


class AsyncBolt(Component, ABC):
    """A bolt that executes many tuples at once, each in a coroutine of its own.

    A tuple is acked when its `execute` returns. If `execute` raises `FailedException`, the tuple fails. Any other exception also
    restarts the task, as in a `Bolt`. Then all other calls of the task are cancelled, and their tuples fail.

    >>> import asyncio
    >>> from stormspark import Fields
    >>> class Enrich(AsyncBolt):
    ...     capacity, timeout_secs = 1000, 5.0
    ...     async def prepare(self, conf, context, collector):
    ...         self.collector = collector
    ...     async def execute(self, tup):
    ...         await asyncio.sleep(0.01)  # ask a service
    ...         self.collector.emit((tup["user"], "answer"))
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("user", "answer"))
    """

    #: At most this many calls of `execute` are under way at once in each task. Further tuples wait in the task's queue. Waiting
    #: tuples slow the spouts down, as for any bolt.
    capacity: int = 100
    #: A call is cancelled, and its tuple fails, after this many seconds. None: only the message timeout fails the tuple, and the
    #: call goes on. A call that ignores its cancellation keeps its place in `capacity` until it returns.
    timeout_secs: float | None = None
    #: Whether results leave in the order in which the tuples came. If true, the emits and acks of a call leave once all earlier
    #: calls of the task have ended. If false, they leave at once.
    ordered: bool = False

    async def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: AsyncOutputCollector
    ) -> None:
        """Called once, in the worker, before any tuple. In this method, make sessions and pools that belong to an event loop."""

    @abstractmethod
    async def execute(self, tup: Tuple) -> None:
        """Process one tuple. Up to `capacity` of these calls are under way at once."""

    async def end_of_input(self) -> None:
        """Called when the input has ended; see `Bolt.end_of_input`. Calls of `execute` that wait for further tuples, for example
        until a batch is full, may be under way: let them return.
        """

    async def cleanup(self) -> None:
        """Called when the topology ends, but not when a worker is killed (C1). Calls under way are cancelled first."""


class AsyncEmitGroup(Protocol):
    """The object that `AsyncSpoutOutputCollector.group` returns; it emits the tuples of one message (X68)."""

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of the message. Raises `EmitError` as `AsyncSpoutOutputCollector.emit` does."""

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of the message to one task on a direct stream (D11)."""


class AsyncSpoutOutputCollector(Protocol):
    """The collector that `AsyncSpout.open` receives. Any thread may call it, and no method waits.

    The worker takes the tuples when the topology has room for them.
    """

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, message_id: Hashable | None = None
    ) -> None:
        """Emit a tuple, which is tracked if it has a message id (B5, B6).

        Raises `EmitError` for an unknown stream or a wrong number of values.
        """

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
    ) -> None:
        """Emit a tuple on a direct stream to one task (B9, D11)."""

    def group(self, message_id: Hashable) -> AbstractContextManager[AsyncEmitGroup]:
        """Emit several tuples under one message id: one tree, one verdict (X68).

        The tuples leave together, when the ``with`` block ends. If the block raises, none of the tuples leaves.
        """

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics, and do nothing else (C4)."""

    @property
    def verdict(self) -> Verdict | None:
        """Within ``ack`` and ``fail``: how the message's tree ended, and why (W4). None at any other time."""


class AsyncSpout(Component, ABC):
    """A spout that may wait in `next_tuple` without holding up other components.

    A task has at most one call of `next_tuple` under way. An emitted tuple leaves once the topology has room, even while the call
    goes on. `ack` and `fail` are called one at a time, in order, even while `next_tuple` waits. An exception in any of them
    restarts the task.

    >>> import asyncio
    >>> from stormspark import Fields
    >>> class Requests(AsyncSpout):
    ...     async def open(self, conf, context, collector):
    ...         self.collector, self.queue = collector, asyncio.Queue()  # something fills it
    ...     async def next_tuple(self):
    ...         request = await self.queue.get()
    ...         self.collector.emit((request,), message_id=request)
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("request"))
    """

    #: Once this many emitted tuples of a task wait for the topology to take them, `next_tuple` is not called again until half of
    #: them are taken. At max spout pending the topology takes no tuples, so a task may emit about this many beyond that limit.
    prefetch: int = 100

    async def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: AsyncSpoutOutputCollector
    ) -> None:
        """Called once, in the worker, before anything else (B2)."""

    @abstractmethod
    async def next_tuple(self) -> None:
        """Wait for what is available, emit it, and return. A call that emits nothing is followed by a pause of 1 ms (B12)."""

    def is_done(self) -> bool:
        """Return whether this instance will emit nothing more; see `Spout.is_done`. This is no coroutine: it only reads what the
        spout knows, and any thread may call it.
        """
        return False

    async def ack(self, message_id: Hashable) -> None:
        """Called when the tree of an emit with this id is fully processed."""

    async def fail(self, message_id: Hashable) -> None:
        """Called when the tree of an emit with this id has failed; ``collector.verdict`` says why.

        To replay the message, emit it again (E11).
        """

    async def activate(self) -> None:
        """Called after `open`, unless the topology is deactivated, and whenever the topology becomes active again."""

    async def deactivate(self) -> None:
        """Called when the topology is deactivated (B13).

        A call of `next_tuple` that is under way goes on. Tuples that it emits leave when the topology is active again.
        """

    async def close(self) -> None:
        """Called when the topology ends, but not when a worker is killed (B1). A call of `next_tuple` is cancelled first."""
