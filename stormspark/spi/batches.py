"""Components that know the current batch. Front-ends with batches of their own build on them (G2, G6, G7).

The worker informs such a component when an attempt at a batch begins. It also informs a bolt when all tuples of the batch have
come. To find that out, Storm counts tuples between tasks (G7); here a batch is over when no tuple waits any more.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from stormspark.api.batch_kind import KnowsBatches
from stormspark.api.collector import BasicOutputCollector

__all__ = ["COMMIT", "FINISH", "BatchAware", "TransactionAttempt"]

#: When ``end_batch`` of a bolt is called. FINISH: once all tuples of the batch are executed. COMMIT, for a *committer*: once
#: ``end_batch`` of all FINISH bolts has ended well on all workers.
FINISH, COMMIT = "finish", "commit"


class TransactionAttempt(NamedTuple):
    """An attempt at a transaction. A repeated attempt has the same ``txid``, from 1, and another ``attempt_id`` (G2).

    >>> first, again = TransactionAttempt(7, 0), TransactionAttempt(7, 1)
    >>> first.txid == again.txid, first == again
    (True, False)
    """

    txid: int
    attempt_id: int


class BatchAware(KnowsBatches):
    """A mixin for a `Spout` or a `BasicBolt`. The thread that runs the tasks calls its methods, between tuples."""

    #: Whether the component makes an `announcement`, which has to be the same in each attempt at a batch.
    announces: ClassVar[bool] = False

    def begin_batch(self, attempt: TransactionAttempt, announced: Any = None) -> None:
        """Called when an attempt begins, or when an attempt continues with this new instance.

        ``announced`` is the `announcement` of an earlier attempt at this batch, if a committer may have acted on it; else None.
        """
        raise NotImplementedError

    @property
    def takes_part(self) -> bool:
        """Whether this attempt brings tuples, so that bolts have to be informed of the attempt's end."""
        raise NotImplementedError

    def end_batch(self, collector: BasicOutputCollector) -> None:
        """Called when all tuples of this attempt have been executed here.

        Raises `FailedException` if the batch has to run again.
        """

    def announcement(self) -> Any:
        """Return what a later attempt has to know, as any object that can be pickled; None for nothing.

        The object is stored durably before any bolt whose batch `ends` with `COMMIT` is informed of the batch's end.
        """
        return None
