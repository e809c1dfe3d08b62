"""The collector of a spout's task. The spout emits through it. `stormspark.api.collector` says what the collector promises."""

# spout_collector.pxd beside this module gives C types for the attributes and methods of the collector, and for some variables.
# Cython compiles this module with these types. When you add, rename or retype an attribute, a method or a variable, change both
# files and check with `make compiled`.
# `_outlets` and `_ledger` are the same objects that the task has. These second references save each emit a look-up. `edges` is
# a module whose .pxd gives compiled code a C function.

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from stormspark.acker import Outcome, Verdict
from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import SpoutAccount, Tree
from stormspark.api import DEFAULT_STREAM
from stormspark.errors import EmitError
from stormspark.worker.foreign_calls import post
from stormspark.worker.tuples import edges
from stormspark.worker.tuples.outlets import Outlet, outlet_of

if TYPE_CHECKING:
    from stormspark.worker.spout_task import SpoutTask

__all__ = ["SpoutCollector", "SpoutGroup"]


class SpoutCollector:
    """The collector of one spout task.

    ``now`` is the time that emits are stamped with. ``emitted`` counts emits. When the count has reached ``pause_at``, the next
    emit makes the task suspend the spout's call.
    """

    __slots__ = (
        "_account",
        "_acking",
        "_ledger",
        "_on_ack",
        "_outlets",
        "_task",
        "_warned",
        "emitted",
        "guarded",
        "new_tree",
        "now",
        "pause_at",
        "verdict",
    )

    def __init__(
        self, task: SpoutTask, account: SpoutAccount, ledger: Ledger, *, acking: bool, on_ack: Any
    ) -> None:
        self._task = task
        self._account = account
        self._ledger = ledger
        self._acking = acking
        self._on_ack = on_ack  # the spout's ack, for topologies without ackers (B8)
        self._outlets = task.outlets
        self._warned = False
        #: The function that makes the trees of emits. It is `Tree`, or another function while some trees are to be traced.
        self.new_tree: Callable[[SpoutAccount, Hashable, float], Tree] = Tree
        self.emitted = 0
        self.pause_at = -1
        self.now = 0.0
        self.verdict: Verdict | None = None
        #: Whether user code has threads, which may emit (see `stormspark.worker.foreign_calls`).
        self.guarded = False

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, message_id: Hashable | None = None
    ) -> list[int]:
        """Emit a tuple, and track it if it has a message id (B5, B6).

        If another thread emits, the tuple leaves a little later, so no task ids are returned.
        """
        outlet = self._outlets.get(stream)
        if outlet is None:
            outlet = outlet_of(self._task, stream)
        if type(values) is not tuple or len(values) != outlet.width:
            values = outlet.checked(values)
        if self.guarded and get_ident() != self._task.thread:
            self._post(partial(self.emit, values, stream, message_id))
            return []
        if self.emitted == self.pause_at:
            self._task.pause()
        self.emitted += 1
        if message_id is None or not self._acking:
            tasks = outlet.send(values, None)
            if message_id is not None:
                self._acked_at_once(message_id)
            return tasks
        tree = self.new_tree(self._account, message_id, self.now)
        tasks = outlet.send(values, tree)
        self._begun(tree)
        return tasks

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
    ) -> None:
        """Emit to one task on a direct stream (D11)."""
        outlet = self.outlet(stream)
        values = outlet.checked(values)
        if self.guarded and get_ident() != self._task.thread:
            self._post(partial(self.emit_direct, task, values, stream, message_id))
            return
        if self.emitted == self.pause_at:
            self._task.pause()
        self.emitted += 1
        tracked = message_id is not None and self._acking
        tree = self.new_tree(self._account, message_id, self.now) if tracked else None
        outlet.send_direct(task, values, tree)
        if tree is not None:
            self._begun(tree)
        elif message_id is not None:
            self._acked_at_once(message_id)

    def deliver(
        self, outlet: Outlet, values: tuple[Any, ...], tasks: Sequence[int], message_id: Hashable | None
    ) -> None:
        """Emit to ``tasks``, which an executor with a thread of its own has chosen already; see `Outlet.choose`."""
        self.emitted += 1
        tree = None if message_id is None else self.new_tree(self._account, message_id, self.now)
        outlet.deliver(values, tree, tasks)
        if tree is not None:
            self._begun(tree)

    def group(self, message_id: Hashable) -> SpoutGroup:
        """Emit several tuples under one message id, with one verdict (X68). Raises `EmitError` on any thread but the task's."""
        if self.guarded and get_ident() != self._task.thread:
            raise self.refused_group()
        return SpoutGroup(self, message_id)

    def refused_group(self) -> EmitError:
        """Report that a thread of user code has asked for a group, and return the error to raise in that thread."""
        msg = (
            f"{self._task.name}: a thread of its own has asked for collector.group, which belongs to the thread that calls "
            f"next_tuple: let the thread put into a queue.Queue what is to be emitted, and emit it as a group in next_tuple"
        )
        self._task.report_error(msg)
        return EmitError(msg)

    def closed_group(self, message_id: Hashable) -> EmitError:
        """Return the error for an emit in a group that is not open."""
        task = self._task
        return EmitError(
            f"component {task.component.id!r}, task {task.id}: the group of message {message_id!r} is not open; emit inside "
            f"`with collector.group(message_id) as group:`"
        )

    def flush(self) -> None:
        """Do nothing, because tuples leave with the superstep (B5)."""

    def outlet(self, stream: str) -> Outlet:
        """Return the outlet of a stream. Raises `EmitError` if the stream is not declared."""
        return self._outlets.get(stream) or outlet_of(self._task, stream)

    def _post(self, call: Callable[[], object]) -> None:
        """Pass another thread's call on to the worker's thread. Raises `EmitError` if the spout has state in transactions."""
        task = self._task
        if task.waits_for_commit and task.state is not None and task.has(self):
            msg = (
                f"{task.name}: a thread of its own has emitted, but a spout with state emits in next_tuple only: else the tuple "
                f"and the position after it could come into different batches. Let the thread put it into a queue.Queue, take it "
                f"out in next_tuple, emit it and move the position there"  # C37, C42
            )
            task.report_error(msg)
            raise EmitError(msg)
        post(self, call)

    def _acked_at_once(self, message_id: Hashable) -> None:
        if not self._warned:
            self._warned = True
            self._task.logger.warning(
                "%s emits with message ids, but acking is off (topology.acker.executors is 0): its ack is called inside "
                "emit and nothing is ever replayed",  # W5
                self._task.name,
            )
        self._on_ack(message_id)

    def _begun(self, tree: Tree) -> None:
        self._ledger.begin(tree)
        if not tree.count:
            self._ledger.drained(tree)  # no task got a copy, so the ack follows, outside of the emit (B7)

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._task.report_error(error)

    @property
    def pending_count(self) -> int:
        """How many trees of this task are open (B5)."""
        return self._account.pending


class SpoutGroup:
    """One message of several tuples (X68). The message is a single tree, which has one more open edge until the group ends."""

    __slots__ = ("_collector", "_message_id", "_open", "_tree")

    def __init__(self, collector: SpoutCollector, message_id: Hashable) -> None:
        self._collector = collector
        self._message_id = message_id
        self._open = False
        self._tree: Tree | None = None

    def __enter__(self) -> Self:
        collector = self._collector
        self._open = True
        collector.emitted += 1  # the message counts even if it has no tuples
        if collector._acking and self._message_id is not None:
            self._tree = collector.new_tree(collector._account, self._message_id, collector.now)
            self._tree.count = 1
            collector._ledger.begin(self._tree)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        collector, tree = self._collector, self._tree
        self._open = False
        if tree is not None:
            if error is not None:
                task = collector._task
                reason = f"its group of emits ended with {type(error).__name__}: {error}"
                collector._ledger.fail(
                    tree, Verdict(Outcome.FAILED, reason[:1000], task.component.id, task.id)
                )
            edges.close_edges(collector._ledger, tree)
        elif error is None and self._message_id is not None:
            collector._acked_at_once(self._message_id)

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emit one tuple of the message."""
        outlet = self._outlet(stream)
        return outlet.send(outlet.checked(values), self._tree)

    def deliver(self, outlet: Outlet, values: tuple[Any, ...], tasks: Sequence[int]) -> None:
        """Emit one tuple of the message to tasks that are chosen already."""
        self._collector.emitted += 1
        outlet.deliver(values, self._tree, tasks)

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of the message to one task on a direct stream (D11)."""
        outlet = self._outlet(stream)
        outlet.send_direct(task, outlet.checked(values), self._tree)

    def _outlet(self, stream: str) -> Outlet:
        collector = self._collector
        if not self._open:
            raise collector.closed_group(self._message_id)
        if collector.emitted == collector.pause_at:
            collector._task.pause()
        collector.emitted += 1
        return collector.outlet(stream)
