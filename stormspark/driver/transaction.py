"""A batch that is a transaction, round by round: it goes on, commits, or aborts (C44).

A round carries tuples as far as they go. It is the last one if nothing waits anywhere and nothing has failed. The workers find
that out themselves, within the round: each one that has work left in superstep S tells all others, so either all of them
prepare in the superstep after it, or none does (`Worker._tell_if_unsettled`). Most batches need one round. Loops that cross
workers, sources with more rows than a round takes, and rounds that a deadline cut short need more.

Where bolts hear of the end of a batch (`PhysicalPlan.ends_of_batches`), and any of them takes part in this one, the rounds that
end it come when nothing waits any more: one for all, then one for committers, which nobody may reach before all others have
ended well. Before that one the driver keeps what was announced, so that committers of a later attempt act on the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.step import WorkerReport

__all__ = ["Transaction"]


class Transaction:
    """One attempt at one batch.

    ``repeats``: committers may have acted in an earlier attempt, so what was announced of it has to come again.
    """

    def __init__(self, plan: PhysicalPlan, *, repeats: bool = False) -> None:
        #: Of the next round: whether workers prepare if nothing is left, and whether spouts that are no sources may emit. A batch
        #: that has to repeat what was announced can't be over before that has come. Workers between which no edge crosses
        #: don't hear of each other, so the driver has to see first whether the batch has rounds that end it.
        apart = plan.workers > 1 and not plan.supersteps
        self.may_prepare = not repeats and not (apart and plan.ending_rounds)
        self.asks_spouts = True
        #: Which of the rounds that end a batch the next round is; 0: none.
        self.ending_round = 0
        self.rounds = 0
        self._ending_rounds, self._announces = plan.ending_rounds, plan.announces
        #: To be kept durably before the next round, by component and index of its task; empty: nothing.
        self.announcement: dict[str, bytes] = {}
        self._repeats = repeats
        self._ended = 0  # how many of the rounds that end it have been asked for
        #: All workers are prepared, and these are their files, or their rows.
        self.prepared = False
        self.files: list[FileDescription | ChangedRows | None] = []
        #: Why the batch has to run again, or None; and the rows of sources that failed, by task.
        self.aborts: str | None = None
        #: What it was is storage or a broker that is away, and no user code.
        self.aborted_outside = False
        self.failed_rows: Mapping[int, tuple[Hashable, ...]] = {}
        #: Tuples and rows that wait.
        self.left = 0
        #: Tuples that bolts keep over its end, where it is prepared.
        self.held = 0

    def observe(self, reports: Iterable[WorkerReport]) -> None:
        """A round has ended."""
        told = [report.transaction for report in reports if report.transaction is not None]
        self.rounds += 1
        begun = any(one.begun for one in told)
        # A spout that has to repeat is asked until it has: else the batch would be committed without what committers did.
        self.asks_spouts = self._repeats and not begun
        aborted = [one for one in told if one.aborts is not None]
        self.aborts = aborted[0].aborts if aborted else None
        self.aborted_outside = bool(aborted) and all(one.outside for one in aborted)
        self.failed_rows = {task: rows for one in told for task, rows in one.failed_rows.items()}
        self.prepared = self.aborts is None and all(one.prepared for one in told)
        self.files = [one.file for one in told]
        self.left = sum(one.left for one in told)
        self.held = sum(one.held for one in told)
        self.ending_round = 0
        if not self.left and begun and self._ended < self._ending_rounds:
            self._ended += 1
            self.ending_round = self._ended
        last = self._ended == self._ending_rounds
        self.may_prepare = not self.asks_spouts and (last or not begun)
        self.announcement = {}
        if self._announces and self.ending_round and last and not self._repeats:
            for one in told:
                self.announcement.update(one.announced or {})
