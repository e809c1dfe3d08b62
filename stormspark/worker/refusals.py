"""The handling of tuples that can't reach their receiver. Their trees fail, and a task reports why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stormspark.acker import Ledger, Outcome, Roots, Verdict
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.task import Task
from stormspark.worker.tuples.edges import fail_roots

__all__ = ["Refusals"]


class Refusals:
    """The refusals of one worker. This object fails the tuples that can't reach their receiver, and lets a task report them.

    Lanes and receivers need the methods of this object before the tasks exist, so `follow` adds the tasks later.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._tasks: Mapping[int, Task] = {}
        self._bolts: Sequence[BoltTask] = ()
        self._later: list[tuple[int | None, Roots, str]] = []

    def follow(self, tasks: Mapping[int, Task], bolts: Sequence[BoltTask]) -> None:
        """Set the worker's tasks, which report the tuples."""
        self._tasks, self._bolts = tasks, bolts

    def unsent(self, task: int, roots: Iterable[Roots], reason: str) -> None:
        """Fail tuples that ``task`` has emitted and that can't go to another worker."""
        sender = self._tasks[task]
        sender.report_error(reason)
        verdict = Verdict(Outcome.FAILED, reason, sender.component.id, sender.id)
        for of_one in roots:
            sender.fail_delivery(of_one, verdict, "to send")

    def refuse(self, task: int | None, roots: Roots, reason: str) -> None:
        """Fail a tuple that bolt ``task`` can't get. If ``task`` is None, a whole frame is lost, and the first bolt reports the
        loss. If batches are transactions, the batch is aborted.
        """
        bolt = self._bolts[0] if task is None else self._tasks[task]
        if task is not None:
            bolt.counters.failed += 1
            fail_roots(self._ledger, roots, Verdict(Outcome.FAILED, reason, bolt.component.id, bolt.id))
        bolt.abort(reason)
        bolt.report_error(f"it can't receive a tuple, whose trees fail: {reason}")

    def refuse_later(self, task: int | None, roots: Roots, reason: str) -> None:
        """Refuse a row at the next `flush`, because its sender is in the middle of an emit and its trees do not exist yet."""
        self._later.append((task, roots, reason))

    def flush(self) -> None:
        """Refuse the rows that `refuse_later` got. Call this while no task is in the middle of an emit."""
        if self._later:
            later, self._later = self._later, []
            for refused in later:
                self.refuse(*refused)

    def clear(self) -> None:
        """Drop the rows that wait to be refused, because their batch runs again."""
        self._later.clear()
