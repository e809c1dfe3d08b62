"""A batch that is a transaction. After each round the batch goes on, commits, or aborts (C44).

A round carries tuples as far as they go. The round may be the last one if no tuple waits anywhere and none has failed. The
workers find that out themselves, within the round. Superstep S (`PhysicalPlan.supersteps`) is the last one from which tuples can
leave a worker. Each worker that has work left in superstep S sends a frame to all others (`WorkerTransaction.warn_if_unsettled`).
So either all workers prepare in superstep S + 1, or none does. Most batches need one round. More rounds are needed for loops that
cross workers, and for sources with more rows than a round takes. They are also needed after a round that a deadline has cut
short, and for bolts that are told of the end of a batch.

Some bolts have a method ``end_batch`` (`stormspark.spi.BatchAware`). This method is called only if some component *takes part* in
the batch, which means that the component has got or emitted a tuple of the batch. Once no tuple waits any more, the rounds that
end the batch begin. The first of them calls ``end_batch`` of all bolts that are not committers. A *committer* is a bolt that
changes something outside of the topology, so it has to wait until all other bolts have ended the batch well. The second of these
rounds calls ``end_batch`` of the committers.

An *announcement* is what a task has to repeat exactly if the batch runs again, such as which piece of a source it has read. The
driver stores the announcements before the round for committers. So the committers of a later attempt at the batch get the same
tuples.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import Enum

from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.step import TransactionReport, WorkerReport

__all__ = ["TRANSITIONS", "Transaction", "TransactionState", "TransitionError"]


class TransactionState(Enum):
    """The state of an attempt at a batch between two rounds."""

    #: The batch can't be over yet, so no worker prepares in the next round.
    WORKING = "working"
    #: No tuple waits. The next round ends the batch: it calls ``end_batch``. If it is the last such round, workers also prepare.
    ENDING = "ending"
    #: In the next round the workers prepare, if no tuple waits at its end. Most batches begin in this state, and need one round.
    PREPARING = "preparing"
    #: Every worker has prepared.
    PREPARED = "prepared"
    #: The driver has committed the batch.
    COMMITTED = "committed"
    #: The batch has to run again, in another attempt.
    ABORTED = "aborted"


_WORKING, _ENDING, _PREPARING = (
    TransactionState.WORKING,
    TransactionState.ENDING,
    TransactionState.PREPARING,
)
_PREPARED, _COMMITTED, _ABORTED = (
    TransactionState.PREPARED,
    TransactionState.COMMITTED,
    TransactionState.ABORTED,
)

#: The states that may follow each state. After a round the state may also stay the same.
TRANSITIONS: Mapping[TransactionState, frozenset[TransactionState]] = {
    # Not to PREPARED: no worker was ordered to prepare.
    _WORKING: frozenset({_WORKING, _ENDING, _PREPARING, _ABORTED}),
    # Back to WORKING: bolts may emit in ``end_batch``, and these tuples must arrive before the next round that ends the batch.
    _ENDING: frozenset({_WORKING, _ENDING, _PREPARING, _PREPARED, _ABORTED}),
    # Back to WORKING or ENDING: if a component took part for the first time in this round, ``end_batch`` has to be called.
    _PREPARING: frozenset({_WORKING, _ENDING, _PREPARING, _PREPARED, _ABORTED}),
    # If the commit fails, the state stays PREPARED: only the next attempt finds out whether the batch is committed.
    _PREPARED: frozenset({_COMMITTED}),
    _COMMITTED: frozenset(),
    _ABORTED: frozenset(),
}


class TransitionError(RuntimeError):
    """A transaction was about to enter a state that may not follow its present state: stormspark has a defect."""

    def __init__(
        self,
        start: TransactionState,
        end: TransactionState,
        history: Iterable[tuple[TransactionState, int]],
    ) -> None:
        entered = ", ".join(f"{state.value} from round {rounds} on" for state, rounds in history)
        super().__init__(f"a transaction can't go from {start.value} to {end.value}; it was {entered}")


class Transaction:
    """One attempt at one batch.

    ``repeats`` says that committers may have acted in an earlier attempt at the batch. Then this attempt has to repeat the
    announcements of the earlier one.

    `announcement` is non-empty only in ENDING, before the round for committers. `files` are complete in PREPARED.
    `failed_rows` is empty once the batch is COMMITTED.
    """

    def __init__(self, plan: PhysicalPlan, *, repeats: bool = False) -> None:
        # If the batch has to repeat an announcement, the batch can't be over before that. If no subscription leads to another
        # worker, no worker knows what the others do. Then the driver first has to find out whether to call ``end_batch``.
        apart = plan.workers > 1 and not plan.supersteps
        self.state = _WORKING if repeats or (apart and plan.ending_rounds) else _PREPARING
        #: The states so far, each with the number of the round that came next.
        self._history = [(self.state, 0)]
        self.rounds = 0
        self._ending_rounds, self._announces = plan.ending_rounds, plan.announces
        self._repeats = repeats
        #: `_begun`: whether any component takes part in the batch. `_ended`: how many rounds that end the batch were ordered.
        self._begun, self._ended = False, 0
        #: The announcements to store before the next round, by component and index of the task; empty if there are none.
        self.announcement: Mapping[str, bytes] = {}
        #: For each worker that has reported: the file of its changes, or the changed rows, or None (`TransactionReport.file`).
        self.files: Sequence[FileDescription | ChangedRows | None] = []
        #: Why the batch has to run again; None if it does not.
        self.aborts: str | None = None
        #: Whether the batch has to run again because storage or a broker can't be reached.
        self.aborted_outside = False
        #: The rows of sources that failed in the last round, by task.
        self.failed_rows: Mapping[int, tuple[Hashable, ...]] = {}
        #: How many tuples and rows wait.
        self.left = 0
        #: How many calls are under way on threads of executors.
        self.calls = 0
        #: Once the batch is prepared: how many tuples bolts still hold.
        self.held = 0

    # -- orders for the next round ---------------------------------------------------------------------------

    @property
    def may_prepare(self) -> bool:
        """Whether workers prepare in the next round if nothing is left."""
        return self.state is _PREPARING or (self.state is _ENDING and self._ended == self._ending_rounds)

    @property
    def asks_spouts(self) -> bool:
        """Whether spouts that read no source may emit in the next round.

        They may in the first round. If the batch has to repeat an announcement, they may also emit in later rounds, until a
        component takes part in the batch. In an earlier attempt, committers may have acted on the tuples of this announcement. So
        the batch must not be committed without these tuples.
        """
        return not self.rounds or (self._repeats and not self._begun)

    @property
    def ending_round(self) -> int:
        """The next round's number among the rounds that end the batch, from 1; 0 if the next round is not one of them."""
        return self._ended if self.state is _ENDING else 0

    # -- what happens ----------------------------------------------------------------------------------------

    @property
    def prepared(self) -> bool:
        """Whether the batch can be committed now."""
        return self.state is _PREPARED

    def observe(self, reports: Iterable[WorkerReport]) -> None:
        """Take in the workers' reports at the end of a round, and enter the state that follows from them."""
        reported = [report.transaction for report in reports if report.transaction is not None]
        self.rounds += 1
        self._take_in(reported)
        self._enter(self._next_state(reported))
        if self.state is _ENDING:
            self._ended += 1
        self.announcement = self._announced(reported) if self._precedes_committers else {}

    def committed(self) -> None:
        """Enter COMMITTED, because the driver has committed the batch. None of the batch's rows comes again."""
        self._enter(_COMMITTED)
        self.failed_rows = {}

    def _take_in(self, reported: Sequence[TransactionReport]) -> None:
        aborted = [one for one in reported if one.aborts is not None]
        self.aborts = aborted[0].aborts if aborted else None
        self.aborted_outside = bool(aborted) and all(one.outside for one in aborted)
        self.failed_rows = {task: rows for one in reported for task, rows in one.failed_rows.items()}
        self.files = [one.file for one in reported]
        self.left = sum(one.left for one in reported)
        self.calls = sum(one.calls for one in reported)
        self.held = sum(one.held for one in reported)
        self._begun = any(one.begun for one in reported)

    def _next_state(self, reported: Sequence[TransactionReport]) -> TransactionState:
        if self.aborts is not None:
            return _ABORTED
        if all(one.prepared for one in reported):
            return _PREPARED
        if self._repeats and not self._begun:
            return _WORKING
        if not self._begun or self._ended == self._ending_rounds:
            return _PREPARING
        return _WORKING if self.left else _ENDING

    @property
    def _precedes_committers(self) -> bool:
        """Whether the next round is for committers, so that the announcements have to be stored now."""
        return self._announces and not self._repeats and self.state is _ENDING and self.may_prepare

    def _announced(self, reported: Sequence[TransactionReport]) -> Mapping[str, bytes]:
        return {place: pickled for one in reported for place, pickled in (one.announced or {}).items()}

    def _enter(self, state: TransactionState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise TransitionError(self.state, state, self._history)
        if state is not self.state:
            self._history.append((state, self.rounds))
        self.state = state
