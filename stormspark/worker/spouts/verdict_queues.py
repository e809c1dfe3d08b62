"""The trees of a spout's task that have ended, but whose verdicts the spout has not got yet.

The ledger appends a tree to `SpoutAccount.ended` when the tree ends. Usually the spout may get the verdict at once. If batches
are transactions, the verdict waits until its batch is committed or rolled back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from stormspark.acker import ACKED, Outcome, SpoutAccount, Tree, Verdict

__all__ = ["TransactionVerdicts", "VerdictQueue"]


class VerdictQueue:
    """The verdicts of one task whose batches are no transactions: they can be delivered at once, whatever becomes of a batch."""

    def __init__(self, account: SpoutAccount) -> None:
        self._account = account

    def __len__(self) -> int:
        """How many trees have ended whose verdicts were not delivered yet."""
        return len(self._account.ended)

    @property
    def is_ready(self) -> bool:
        """Whether there are verdicts that can be delivered now."""
        return bool(self._account.ended)

    def take(self) -> list[Tree]:
        """Take the trees whose verdicts can be delivered now, in the order in which they ended."""
        ended, self._account.ended = self._account.ended, []
        return ended

    def forget(self) -> None:
        """Drop all verdicts, because they belong to an instance that is gone (B10)."""
        self._account.ended.clear()

    def failed(self) -> Iterator[Tree]:
        """Iterate over the trees that have failed in the current attempt at a batch."""
        return iter(())

    def end_attempt(self) -> None:
        """End the attempt: trees of later emits belong to the next batch."""

    def commit(self) -> list[Hashable]:
        """Make the verdicts of the committed batch final, and return the message ids of those that were acked."""
        return []

    def roll_back(self, reason: str) -> None:
        """Fail all trees of the attempt, whether they were acked or not, because the batch runs again. Earlier verdicts stay."""


class TransactionVerdicts(VerdictQueue):
    """The verdicts of one task whose batches are transactions.

    A tree is *decided* once its batch is committed or rolled back. Only then can its verdict be delivered.
    """

    def __init__(self, account: SpoutAccount) -> None:
        super().__init__(account)
        self._decided: list[Tree] = []
        self._undecided = 0  # the number of the first attempt that is neither committed nor rolled back

    def __len__(self) -> int:
        return len(self._account.ended) + len(self._decided)

    @property
    def is_ready(self) -> bool:
        """See `VerdictQueue.is_ready`."""
        return bool(self._decided)

    def take(self) -> list[Tree]:
        """See `VerdictQueue.take`."""
        decided, self._decided = self._decided, []
        return decided

    def forget(self) -> None:
        """See `VerdictQueue.forget`."""
        super().forget()
        self._decided.clear()

    def failed(self) -> Iterator[Tree]:
        """See `VerdictQueue.failed`."""
        # Attempts are compared, not the times of emits: an emit outside of `next_tuple` has the time of an earlier call.
        return (
            tree
            for tree in self._account.ended
            if tree.verdict is not ACKED and tree.attempt >= self._undecided
        )

    def end_attempt(self) -> None:
        """See `VerdictQueue.end_attempt`."""
        self._account.attempt += 1

    def commit(self) -> list[Hashable]:
        """See `VerdictQueue.commit`.

        Tuples that were emitted after the worker prepared the batch belong to the next batch, even if their trees have already
        ended.
        """
        account = self._account
        self._undecided = account.attempt
        decided = [tree for tree in account.ended if tree.attempt < account.attempt]
        account.ended = [tree for tree in account.ended if tree.attempt >= account.attempt]
        self._decided += decided
        return [tree.message_id for tree in decided if tree.verdict is ACKED]

    def roll_back(self, reason: str) -> None:
        """See `VerdictQueue.roll_back`."""
        taken_back = Verdict(Outcome.TAKEN_BACK, reason)
        ended, self._account.ended = self._account.ended, []
        for tree in ended:
            tree.verdict = taken_back
        self._decided += ended
        self.end_attempt()
        self._undecided = self._account.attempt
