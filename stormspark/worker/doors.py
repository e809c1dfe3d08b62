"""The doors of a worker. They let in what does not come in frames: answers from outside of the worker, notes of executors, and
calls of users' threads.

If batches are transactions, a door is closed while new tuples would come too late for the batch, or would keep the batch from
ever ending.
"""

from __future__ import annotations

from collections.abc import Sequence

from stormspark.plan.physical import PhysicalPlan
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.step import Step
from stormspark.worker.transactions import WorkerTransaction
from stormspark.worker.turns import Turns

__all__ = ["Doors"]


class Doors:
    """The doors of one worker, which are `Turns.listens` and `Turns.takes_calls`."""

    def __init__(self, plan: PhysicalPlan, turns: Turns, transaction: WorkerTransaction) -> None:
        self._plan, self._turns, self._transaction = plan, turns, transaction

    def open(self, step: Step, position: int, frames: Sequence[Frame], *, first_round: bool) -> None:
        """Open or close the doors at the start of a superstep, which has this ``position`` in its round. ``first_round`` says
        whether the superstep belongs to the first round of an attempt at a batch.
        """
        transaction, transactions = self._transaction, self._plan.exactly_once
        if transaction.prepared is not None:
            transaction.refuse_tuples(frames)
        # A worker that has prepared the batch, or is about to prepare it, must not get new tuples.
        others = any(frame.kind == FrameKind.UNSETTLED for frame in frames)
        may_prepare = step.orders.may_prepare and not (transaction.unsettled or others)
        closed = transactions and position > self._plan.supersteps and may_prepare
        self._turns.listens = listens = transaction.prepared is None and not closed
        # In a transaction, the worker takes in all calls of threads until the first round has called the spouts. After that, it
        # takes in only calls that a thread makes while its bolt is in `execute`. Otherwise a thread that never pauses would
        # keep the batch from ever ending.
        self._turns.takes_calls = not transactions or (position == 0 and first_round and listens)
