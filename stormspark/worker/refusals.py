"""Tuples that can't go where they should: their trees fail, and the task that is concerned reports why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stormspark.acker import Ledger, Outcome, Roots, Verdict
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.task import Task
from stormspark.worker.tuples.collectors import fail_roots

__all__ = ["Refusals"]


class Refusals:
    """Of one worker. Lanes and receivers are given its methods before the tasks exist, so `follow` names the tasks."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._tasks: Mapping[int, Task] = {}
        self._bolts: Sequence[BoltTask] = ()
        self._later: list[tuple[int | None, Roots, str]] = []

    def follow(self, tasks: Mapping[int, Task], bolts: Sequence[BoltTask]) -> None:
        """These are the worker's tasks."""
        self._tasks, self._bolts = tasks, bolts

    def unsent(self, task: int, roots: Iterable[Roots], reason: str) -> None:
        """Tuples that ``task`` has emitted can't go to another worker."""
        sender = self._tasks[task]
        sender.report_error(reason)
        verdict = Verdict(Outcome.FAILED, reason, sender.component.id, sender.id)
        for of_one in roots:
            sender.fail_delivery(of_one, verdict, "to send")

    def refuse(self, task: int | None, roots: Roots, reason: str) -> None:
        """A tuple can't be given to bolt ``task``. Without a task a whole frame is lost, and the first bolt reports it."""
        bolt = self._bolts[0] if task is None else self._tasks[task]
        if task is not None:
            bolt.counters.failed += 1
            fail_roots(self._ledger, roots, Verdict(Outcome.FAILED, reason, bolt.component.id, bolt.id))
        bolt.abort(reason)
        bolt.report_error(f"a tuple was not given to it, and its trees fail: {reason}")

    def refuse_later(self, task: int | None, roots: Roots, reason: str) -> None:
        """The same for a row whose sender is in the middle of an emit, before its trees begin: see `flush`."""
        self._later.append((task, roots, reason))

    def flush(self) -> None:
        """Nobody is in the middle of an emit now: refuse what waits for that."""
        if self._later:
            later, self._later = self._later, []
            for refused in later:
                self.refuse(*refused)

    def clear(self) -> None:
        """What waits belongs to a batch that comes again."""
        self._later.clear()
