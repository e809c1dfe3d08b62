"""The trees of a spout's task that have ended, but whose verdicts the spout has not got yet.

The ledger appends a tree to `SpoutAccount.ended` when the tree ends. Usually the spout may get the verdict at once. If batches
are transactions, the verdict waits until the batch of the tree is committed or rolled back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from stormspark.acker import ACKED, Outcome, SpoutAccount, Tree, Verdict

__all__ = ["TransactionVerdicts", "VerdictQueue"]


class VerdictQueue:
    """The verdicts of one task if batches are not transactions. They can be delivered at once, whether or not their batch
    succeeds. So the last four methods, which are about batches, do nothing here.
    """

    def __init__(self, account: SpoutAccount) -> None:
        self._account = account
        #: The trees whose verdicts can be delivered now, in the order in which they ended. The list is filled and cleared, but
        #: never replaced. So it can be a plain attribute, which is fast. The worker looks at it several times per burst.
        self.ready: list[Tree] = account.ended

    def __len__(self) -> int:
        """How many verdicts were not delivered yet."""
        return len(self._account.ended)

    def take(self) -> list[Tree]:
        """Take the trees out of `ready`, and return them."""
        taken = self.ready[:]
        self.ready.clear()
        return taken

    def forget(self) -> None:
        """Drop all verdicts, because they belong to an instance that is gone (B10)."""
        self._account.ended.clear()

    def failed(self) -> Iterator[Tree]:
        """Iterate over the trees that have failed in the current attempt at a batch."""
        return iter(())

    def end_attempt(self) -> None:
        """End the attempt at the batch. Trees of later emits belong to the next batch."""

    def commit(self) -> list[Hashable]:
        """Make the verdicts of the committed batch final. Return the message ids of the trees that were acked."""
        return []

    def roll_back(self, reason: str) -> None:
        """Fail all trees of the batch, even if they were acked, because the batch runs again. Verdicts of earlier batches
        stay.
        """


class TransactionVerdicts(VerdictQueue):
    """The verdicts of one task if batches are transactions.

    A tree is *decided* once its batch is committed or rolled back. Only then can its verdict be delivered.
    """

    def __init__(self, account: SpoutAccount) -> None:
        super().__init__(account)
        self.ready = []  # the decided trees
        #: The oldest attempt (`SpoutAccount.attempt`) that is neither committed nor rolled back.
        self._undecided = 0

    def __len__(self) -> int:
        return len(self._account.ended) + len(self.ready)

    def forget(self) -> None:
        """See `VerdictQueue.forget`."""
        super().forget()
        self.ready.clear()

    def failed(self) -> Iterator[Tree]:
        """See `VerdictQueue.failed`."""
        # This compares `Tree.attempt` and not `Tree.emitted_at`, because an emit outside of `next_tuple` is stamped with the
        # time of an earlier call.
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
        self.ready += decided
        return [tree.message_id for tree in decided if tree.verdict is ACKED]

    def roll_back(self, reason: str) -> None:
        """See `VerdictQueue.roll_back`."""
        taken_back = Verdict(Outcome.TAKEN_BACK, reason)
        ended, self._account.ended = self._account.ended, []
        for tree in ended:
            tree.verdict = taken_back
        self.ready += ended
        self.end_attempt()
        self._undecided = self._account.attempt
