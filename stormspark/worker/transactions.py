"""A worker's part in a batch that is a transaction. The worker begins the batch, processes all of it, and prepares it or rolls
it back.

No tuple of the batch may reach a component after its ``pre_save``. So all workers prepare in the same round, or none does.
Superstep S (`PhysicalPlan.supersteps`) is the last one in which tuples can leave a worker. In superstep S, each worker that still
has work sends an empty frame to all others. In superstep S + 1 only acks arrive, and every worker knows whether a tuple is left
anywhere.

A bolt that knows its batches (`BatchAware`) gets a call of ``end_batch`` at the end of each batch. Bolts may emit in this call.
So it comes before the batch is prepared, in rounds that end the batch (`stormspark.driver.transaction`).

`stormspark.driver.transaction` is the driver's part, which decides about the commit.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from stormspark.acker import Ledger
from stormspark.checkpoint.barriers import reached
from stormspark.errors import ComponentError
from stormspark.plan.physical import PhysicalPlan
from stormspark.spi import TransactionAttempt
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.departures import Departures
from stormspark.worker.refusals import Refusals
from stormspark.worker.state.batch_state import BatchState
from stormspark.worker.step import Step, TransactionReport
from stormspark.worker.task import Task
from stormspark.worker.tuples.salvage import error_text
from stormspark.worker.turns import Turns
from stormspark.worker.wiring import Wiring

__all__ = ["WorkerTransaction"]


class WorkerTransaction:
    """The transactions of worker ``index``, one batch after another. ``states`` holds the state of the worker's tasks.

    Even if batches are not transactions, this object tells `BatchAware` components which attempt at a batch begins (G2).
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        index: int,
        wiring: Wiring,
        states: BatchState,
        ledger: Ledger,
        call: CurrentCall,
        departures: Departures,
        refusals: Refusals,
        turns: Turns,
    ) -> None:
        self._plan, self._index, self._ledger, self._states = plan, index, ledger, states
        self._wiring, self._tasks, self._spouts, self._bolts = (
            wiring,
            wiring.tasks,
            wiring.spouts,
            wiring.bolts,
        )
        self._call, self._departures, self._refusals, self._turns = call, departures, refusals, turns
        #: The tasks of components that know their batches (`BatchAware`).
        self._batch_aware = [task for task in wiring.tasks.values() if task.component.kind_of_batch]
        #: How many of the rounds that end this batch have run.
        self._ended = 0
        self._batch = -1
        #: Why the previous attempt ended, if this worker has to roll that attempt back at the next round; otherwise None.
        self._rolls_back: str | None = None
        #: Whether any worker still had work in superstep S of this round. If so, no worker prepares in this round.
        self.unsettled = False
        #: In a round that ends the batch, another worker's reason why the batch fails; "" if no worker gave one.
        self._fails_elsewhere = ""
        #: This worker's report once it has prepared the batch. Until that batch ends the worker executes nothing more.
        self.prepared: TransactionReport | None = None

    # -- how a batch begins ------------------------------------------------------------------------------------

    def attempt_ended(self, reason: str) -> None:
        """Remember that the attempt is over. `settle` rolls back to the last commit, which the next round's orders name."""
        self._rolls_back = reason

    def settle(self, step: Step) -> None:
        """Roll back an ended attempt, or take over a commit, at the beginning of a round. Then drop rows of sources that were
        given up.
        """
        reason, self._rolls_back = self._rolls_back, None
        if reason is not None:
            self.roll_back(step.batch, step.orders.committed, reason)
        else:
            self.hear_of_commit(step.orders.committed)
        for spout in self._spouts:
            spout.source.skip(step.orders.earlier.given_up.get(spout.id, ()))

    def hear_of_commit(self, committed: int) -> None:
        """Learn that batch ``committed`` was committed last. If this worker did not know that, take over the commit."""
        if committed > self._states.last:
            for spout in self._spouts:  # before any user code runs, which may raise
                spout.commit()
            self._states.committed(committed)
            self._turns.deliver_verdicts()

    def roll_back(self, batch: int, committed: int, reason: str) -> None:
        """Roll back everything that ``batch`` has done in this worker, because the batch runs again. ``committed`` is the last
        committed batch.
        """
        self.hear_of_commit(committed)  # this worker may not know yet that batch ``committed`` is committed
        for task in self._tasks.values():
            task.take_back()
        self._ledger.roll_back(reason)
        self._departures.clear()
        self.prepared = None
        self._refusals.clear()
        for bolt in self._bolts:
            bolt.forget_tuples()
        for spout in self._spouts:
            spout.roll_back(batch, reason)
        for task in self._tasks.values():
            task.aborts = None
            self._call.enter(task)
            # Even an instance without state may remember something of the batch.
            if task.state is None and isinstance(task, BoltTask):
                task.begin_anew()
        self._states.roll_back(committed)
        self._turns.deliver_verdicts()

    def begin_batch(self, step: Step) -> None:
        """Begin an attempt at a batch, and tell the components that know their batches (G2)."""
        self._batch = step.batch
        self._ended, self.prepared = 0, None
        # Each driver counts attempts from 0, so only the driver's generation distinguishes its attempts from those of earlier
        # drivers.
        attempt = TransactionAttempt(step.batch + 1, self._states.generation << 32 | step.attempt)
        for task in self._batch_aware:
            pickled = step.orders.earlier.announced.get(_place_of(task))
            self._call.enter(task)
            task.begin_batch(attempt, None if pickled is None else self._read(task, pickled))

    def _read(self, task: Task, pickled: bytes) -> Any:
        """Unpickle an announcement. If that fails, the attempt that made it can't be repeated, so the topology stops."""
        try:
            return pickle.loads(pickled)
        except Exception as error:
            msg = f"{task.name}: the metadata of batch {self._batch} can't be unpickled: {error_text(error)}"
            task.stop_topology(ComponentError(msg))
            return None

    def begin_round(self) -> None:
        """Begin a round. What other workers had left in the previous round no longer matters."""
        self.unsettled, self._fails_elsewhere = False, ""

    # -- how it ends -------------------------------------------------------------------------------------------

    def end_batches(self, number: int, stage: int) -> None:
        """Call ``end_batch`` of the bolts that the plan assigns to superstep ``stage`` of the ``number``-th round that ends the
        batch.
        """
        reached("worker.before_finish")
        ends = self._plan.ends_of_batches
        for bolt in self._bolts:
            if ends.get(bolt.component.id) != (number, stage):
                continue
            reason = self._why_it_fails()
            if reason is not None:
                bolt.abort(f"was not called for the end of its batch, because the batch fails: {reason}")
                return
            self._turns.end_batch(bolt)
        reached("worker.finished")

    def take_unsettled(self, frame: Frame) -> None:
        """Learn that another worker has work left, or that the batch has failed in that worker."""
        self.unsettled = True
        self._fails_elsewhere = self._fails_elsewhere or frame.payload.decode()

    def warn_if_unsettled(self, step: Step, position: int) -> None:
        """Tell all other workers, by a frame, that this worker needs another round, or that the batch has failed in this
        worker.

        The frame is sent in superstep S, and only in rounds in which workers may prepare. But if the batch has failed, and the
        round ends the batch, the frame is sent at once, in any superstep: once the batch has failed in one bolt, ``end_batch`` of
        the next bolts must not be called.
        """
        # If no subscription leads to another worker, the work that is left in this worker concerns no other worker.
        if self.unsettled or not self._plan.supersteps:
            return
        reason = None
        if step.orders.ending_round:
            self._departures.seal_all()  # tuples that can't be pickled fail at this point
            reason = self._why_it_fails()
        warns = reason is not None
        if position == self._plan.supersteps and not warns:
            needs_more = (
                self._left()
                or not self._has_ended(step)
                or self._aborts() is not None
                or self._wiring.fatal is not None
            )
            warns = step.orders.may_prepare and bool(needs_more)
        if warns:
            self.unsettled = True
            for worker in self._departures.lanes:
                self._departures.add(worker, FrameKind.UNSETTLED, 0, (reason or "").encode(errors="replace"))

    def refuse_tuples(self, frames: Iterable[Frame]) -> None:
        """Abort the batch if tuples arrive after it was prepared, because they would be lost or come twice. This should never
        happen.
        """
        if any(frame.kind in (FrameKind.TUPLES, FrameKind.BATCHES, FrameKind.ROWS) for frame in frames):
            first = next(iter(self._tasks.values()))
            first.abort(f"worker {self._index} received tuples of a batch that it had prepared")

    def report(self, step: Step) -> TransactionReport:
        """Make the report at the end of a round. First prepare the batch for its commit, if no worker has anything left of it."""
        for spout in self._spouts:
            spout.note_failures()
        failed = {spout.id: tuple(rows) for spout in self._spouts if (rows := spout.source.take_failed())}
        if self.prepared is not None:
            aborts = self._aborts()
            return self.prepared._replace(
                aborts=aborts, prepared=aborts is None, failed_rows=failed, outside=self._aborted_outside()
            )
        self._turns.give_up_calls()
        left, ended = self._left(), self._has_ended(step)
        # A fail on its way to another worker counts as left, as a tuple does, because the batch can't be committed after it.
        left += sum(len(parts.fails) for parts in self._ledger.parts_to_send.values())
        self._ended = max(self._ended, step.orders.ending_round)
        begun = any(task.takes_part for task in self._batch_aware)
        announces = self._plan.announces and self._ended < self._plan.ending_rounds
        announced = self._announcements() if announces else None
        report = TransactionReport(
            left,
            self._aborts(),
            False,
            None,
            failed,
            begun,
            announced,
            self._aborted_outside(),
            calls=self._turns.calls,
        )
        may_prepare = not left and step.orders.may_prepare and ended and not self.unsettled
        if not may_prepare or report.aborts or self._wiring.fatal:
            return report
        held = self._held()
        for spout in self._spouts:
            spout.end_attempt()
        file = self._states.prepare(step.batch)
        if self._aborts() is not None or self._wiring.fatal is not None:
            return report._replace(aborts=self._aborts(), outside=self._aborted_outside())
        self.prepared = report._replace(prepared=True, file=file, held=held)
        return self.prepared

    def _why_it_fails(self) -> str | None:
        """Return why the batch can't be committed, as far as this worker knows; None if it can be committed. This is called
        only in rounds that end the batch.
        """
        fatal, aborts = self._wiring.fatal, self._aborts()
        if fatal is not None or aborts is not None:
            return aborts or (fatal.text if fatal is not None else None)
        for parts in self._ledger.parts_to_send.values():
            for _, verdict in parts.fails:
                return verdict.reason or "a tuple has failed"
        failed = next((tree for spout in self._spouts for tree in spout.verdicts.failed()), None)
        if failed is not None:
            return f"message {failed.message_id!r} {failed.verdict}"
        return self._fails_elsewhere or None

    def _left(self) -> int:
        """Return how many tuples and rows of the batch wait in this worker, plus the calls that have to return before the batch
        ends.
        """
        return self._turns.left + sum(spout.rows_left + spout.must_finish for spout in self._spouts)

    def _has_ended(self, step: Step) -> bool:
        """Return whether this worker has no ``end_batch`` left to call: all were called, or none of its tasks takes part in the
        batch.
        """
        begun = any(task.takes_part for task in self._batch_aware)
        return not begun or max(self._ended, step.orders.ending_round) == self._plan.ending_rounds

    def _announcements(self) -> dict[str, bytes]:
        """Return the announcements of the tasks, which a later attempt at the batch has to repeat."""
        announced = {_place_of(task): task.announcement() for task in self._batch_aware}
        return {place: pickled for place, pickled in announced.items() if pickled is not None}

    def _aborts(self) -> str | None:
        return next((task.aborts for task in self._tasks.values() if task.aborts is not None), None)

    def _aborted_outside(self) -> bool:
        aborted = [task for task in self._tasks.values() if task.aborts is not None]
        return bool(aborted) and all(task.aborted_outside for task in aborted)

    def _held(self) -> int:
        """Count the tuples that bolts hold beyond the end of the batch, outside of their state. Each such bolt logs a warning."""
        count = 0
        for bolt in self._bolts:
            held = bolt.held()
            if held:
                count += len(held)
                bolt.reports.add_failure(
                    "held",
                    f"holds {len(held)} tuples over the end of their batch, outside of its state: if a worker dies, rows of "
                    f"sources come again, and tuples of other spouts are lost. Store in the state what the bolt needs of them, "
                    f"and ack them",
                )
        return count


def _place_of(task: Task) -> str:
    """Identify a task by its component and index, because its id changes when other components are added or removed."""
    return f"{task.component.id}/{task.index}"
