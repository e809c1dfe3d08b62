"""Components that know the current batch. Front-ends with their own kind of batches use these components (G2, G6, G7).

The worker tells such a component when an attempt at a batch begins. The worker also tells bolts when all tuples of the batch have
come. To find that out, Storm counts the tuples between tasks (G7). In stormspark all have come when no tuple waits any more.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from stormspark.api.batch_kind import KnowsBatches
from stormspark.api.collector import BasicOutputCollector

__all__ = ["COMMIT", "FINISH", "BatchAware", "TransactionAttempt"]

#: The two times at which ``end_batch`` of a bolt may be called. FINISH: once the bolt has executed all its tuples of the batch.
#: COMMIT: once, in addition, ``end_batch`` of all FINISH bolts that do not come after a COMMIT bolt has succeeded on all workers.
#: A bolt with COMMIT is called a *committer*.
FINISH, COMMIT = "finish", "commit"


class TransactionAttempt(NamedTuple):
    """An attempt at a batch. All attempts at a batch have the same ``txid``, which counts from 1. Each has its own ``attempt_id``
    (G2).

    >>> first, again = TransactionAttempt(7, 0), TransactionAttempt(7, 1)
    >>> first.txid == again.txid, first == again
    (True, False)
    """

    txid: int
    attempt_id: int


class BatchAware(KnowsBatches):
    """A mixin for a `Spout` or a `BasicBolt` that knows the current batch.

    The mixin's methods are called between tuples, on the thread that executes the component's tuples.
    """

    #: Whether the component makes an `announcement`, which later attempts at the batch have to repeat.
    announces: ClassVar[bool] = False

    def begin_batch(self, attempt: TransactionAttempt, announced: Any = None) -> None:
        """Called when an attempt at a batch begins, and for an instance that is made during an attempt.

        ``announced`` is the `announcement` of an earlier attempt at this batch, if a committer may have acted on it; else None.
        """
        raise NotImplementedError

    @property
    def takes_part(self) -> bool:
        """Whether the component has got or emitted tuples of this batch.

        If this is true of any component, bolts are told when the batch ends.
        """
        raise NotImplementedError

    def end_batch(self, collector: BasicOutputCollector) -> None:
        """Called when this instance has executed all its tuples of the batch.

        Raises `FailedException` if the batch has to run again.
        """

    def announcement(self) -> Any:
        """Return what a later attempt at the batch has to repeat, as an object that can be pickled. None means nothing.

        The object is stored durably before ``end_batch`` of any committer is called.
        """
        return None
