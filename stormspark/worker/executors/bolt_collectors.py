"""The collectors of bolts, for executors with threads of their own. Emits, acks, fails and so on are noted for the worker's
thread (`Notes`).

The calling thread makes all checks, so an error in an emit, ack or fail is raised or reported at the call. The calling thread
also chooses the receivers of a tuple, and decides whether a tuple is settled. The worker's thread delivers tuples, and closes
edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from stormspark.acker import Outcome, Roots, Verdict
from stormspark.api import DEFAULT_STREAM, TICK_SOURCE, BoltFailInfo, EmitInfo, Tuple
from stormspark.api.tuple_state import HELD, SETTLED
from stormspark.errors import EmitError
from stormspark.worker.tuples.edges import close_edges, reset_timeouts
from stormspark.worker.tuples.outlets import Outlet
from stormspark.worker.tuples.salvage import error_text

if TYPE_CHECKING:
    from stormspark.worker.executors.bolt_task import ThreadedBoltTask
    from stormspark.worker.executors.notes import Notes
    from stormspark.worker.executors.task import ThreadedTask
    from stormspark.worker.tuples.collectors import BoltCollector

__all__ = ["ThreadedBasicCollector", "ThreadedBoltCollector", "emitted"]


def emitted(task: ThreadedTask, outlet: Outlet, tasks: Sequence[int], values: tuple[Any, ...]) -> None:
    """Call the task's hooks for an emit, unless it came from another thread than the executor's (J21)."""
    if task.hooks and task.executor.is_current:
        info = EmitInfo(values, outlet.source.stream, task.id, tuple(tasks))
        for hook in task.hooks:
            hook.emit(info)


class ThreadedBoltCollector:
    """The collector of a `Bolt` (C2). ``collector`` is the task's collector on the worker's thread, which knows the streams."""

    def __init__(self, task: ThreadedBoltTask, notes: Notes, collector: BoltCollector) -> None:
        self._task, self._notes, self._collector = task, notes, collector

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, anchors: Tuple | Iterable[Tuple] = ()
    ) -> list[int]:
        """Emit a tuple anchored to ``anchors`` (E4)."""
        outlet = self._collector.outlet(stream)
        values = outlet.as_sent(outlet.checked(values))
        roots = self._collector.roots_of(anchors) if anchors else None
        tasks = self._task.choose(outlet, values)
        self._task.note(self._notes, partial(outlet.deliver, values, roots, tasks))
        emitted(self._task, outlet, tasks, values)
        return tasks

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] = (),
    ) -> None:
        """Emit to one task on a direct stream (D11)."""
        outlet = self._collector.outlet(stream)
        values = outlet.checked(values)
        roots = self._collector.roots_of(anchors) if anchors else None
        tasks = (task,) if outlet.check_direct(task) else ()
        self._task.note(self._notes, partial(outlet.send_direct, task, values, roots))
        emitted(self._task, outlet, tasks, values)

    def ack(self, tup: Tuple) -> None:
        """Ack a tuple (E5)."""
        if not self._settle(tup, "ack"):
            self._task.note(self._notes, partial(self._acked, tup))
            self._task.call_ack_hooks(tup)

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Fail the tuple's trees (E5, E24, E25)."""
        if reason is not None and type(reason) is not str:
            reason = error_text(reason)
        if not self._settle(tup, "fail"):
            self._task.note(self._notes, partial(self._failed, tup, reason))
            for hook in self._task.hooks:
                hook.bolt_fail(BoltFailInfo(tup, self._task.id))

    def _settle(self, tup: Tuple, what: str) -> bool:
        """Settle a tuple, and return false. If the call must have no effect, report that, and return true.

        Two threads may settle a tuple at the same time, and both get false. The worker's thread carries out one of their calls
        (`_closes`).
        """
        state = self._collector.state_of(tup, what)
        if state == SETTLED:
            self._report_second(tup, what)
            return True
        if state == HELD and not self._task.may_hold(tup):
            self.report_error(
                f"{what} of {tup!r}, which another task was given; it changes nothing: only that task can close it"
            )
            return True
        tup.state = SETTLED
        return False

    def _closes(self, tup: Tuple, what: str) -> bool:
        """Return whether this ack or fail is the first one of a tuple, on the worker's thread. If not, report it."""
        if self._task.no_longer_held(tup) or tup.roots is None:
            return True
        self._report_second(tup, what)
        return False

    def _report_second(self, tup: Tuple, what: str) -> None:
        self.report_error(f"{what} of {tup!r}, which is acked or failed already; it changes nothing")  # E14

    def _acked(self, tup: Tuple) -> None:
        """Close a tuple's edges, on the worker's thread."""
        task = self._task
        task.take_calls_at_hand()
        task.count_if_held(tup)
        if not self._closes(tup, "ack"):
            return
        if tup._source is not TICK_SOURCE:
            task.count_acked(tup._source)
        if tup.roots is not None:
            close_edges(task.ledger, tup.roots)

    def _failed(self, tup: Tuple, reason: str | None) -> None:
        """Fail a tuple's trees, on the worker's thread."""
        task = self._task
        if not self._closes(tup, "fail"):
            return
        task.count_failed(tup._source)
        task.fail_delivery(tup.roots, Verdict(Outcome.FAILED, reason, task.component.id, task.id), tup)

    def reset_timeout(self, tup: Tuple) -> None:
        """Begin the timeouts of the tuple's trees anew (C11)."""
        self._task.note(self._notes, partial(reset_timeouts, self._task.ledger, tup.roots))

    def flush(self) -> None:
        """Do nothing, because tuples leave with the superstep (C2)."""

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._task.report_error_of(self._notes, error)


class ThreadedBasicCollector:
    """The collector of a `BasicBolt` (C5). All emits are anchored to the current tuple, whose trees are ``roots``."""

    def __init__(self, task: ThreadedBoltTask, notes: Notes) -> None:
        self._task, self._notes = task, notes
        self.roots: Roots = None

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emit a tuple that is anchored to the current tuple."""
        self._check_thread()
        outlet = self._task.outlet(stream)
        values = outlet.as_sent(outlet.checked(values))
        tasks = self._task.choose(outlet, values)
        self._notes.add(partial(outlet.deliver, values, self.roots, tasks))
        emitted(self._task, outlet, tasks, values)
        return tasks

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit to one task on a direct stream (D11)."""
        self._check_thread()
        outlet = self._task.outlet(stream)
        values = outlet.checked(values)
        tasks = (task,) if outlet.check_direct(task) else ()
        self._notes.add(partial(outlet.send_direct, task, values, self.roots))
        emitted(self._task, outlet, tasks, values)

    def _check_thread(self) -> None:
        if not self._task.executor.is_current:
            msg = (
                f"{self._task.name}: a BasicBolt may emit only in execute, on the thread that called it; to emit in other "
                f"threads, use a Bolt"  # W26
            )
            raise EmitError(msg)

    def reset_timeout(self) -> None:
        """Begin the timeouts of the current tuple's trees anew (C11)."""
        self._notes.add(partial(reset_timeouts, self._task.ledger, self.roots))

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._task.report_error_of(self._notes, error)
