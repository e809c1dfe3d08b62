"""Components that know the batch that they are in: what front-ends with batches of their own build on (G2, G6, G7).

Where batches are transactions, such a component is told when an attempt at a batch begins, and a bolt also when all of its
tuples have come. Storm counts tuples between tasks for that (G7); here a batch is over where nothing waits any more.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from stormspark.api.batch_kind import KnowsBatches
from stormspark.api.collector import BasicOutputCollector

__all__ = ["COMMIT", "FINISH", "BatchAware", "TransactionAttempt"]

#: When a bolt's batch ends: with all others; or after all of these have ended well, on all workers.
FINISH, COMMIT = "finish", "commit"


class TransactionAttempt(NamedTuple):
    """An attempt at a transaction: one that is run again has the same ``txid``, from 1, and another ``attempt_id`` (G2).

    >>> first, again = TransactionAttempt(7, 0), TransactionAttempt(7, 1)
    >>> first.txid == again.txid, first == again
    (True, False)
    """

    txid: int
    attempt_id: int


class BatchAware(KnowsBatches):
    """Mixed into a `Spout` or a `BasicBolt`; its methods are called between tuples, on the thread that runs the tasks."""

    #: Whether what it has announced must be the same when the batch comes again.
    announces: ClassVar[bool] = False

    def begin_batch(self, attempt: TransactionAttempt, announced: Any = None) -> None:
        """An attempt begins, or goes on with this new instance.

        ``announced`` is what `announcement` gave in an earlier attempt at this batch after which somebody may have acted on it.
        """
        raise NotImplementedError

    @property
    def takes_part(self) -> bool:
        """Whether there is anything in this attempt for whose sake bolts have to hear of its end."""
        raise NotImplementedError

    def end_batch(self, collector: BasicOutputCollector) -> None:
        """All tuples of this attempt have been executed here. Raises `FailedException` where the batch has to run again."""

    def announcement(self) -> Any:
        """What an attempt that comes later has to know: kept durably before a bolt whose batch `ends` with `COMMIT` hears of its
        end. Anything that can be pickled; None: nothing.
        """
        return None
