"""A worker's part in a batch that is a transaction: it hears that the batch begins, works it off, prepares it, or rolls it back.

After a component has heard that its batch ends (``pre_save``), no tuple of that batch may reach it. So workers prepare together
or not at all. In superstep S, the last one in which tuples can leave a worker, each worker that still has work sends every other
one an empty frame. In the superstep after it every worker knows whether a tuple is left anywhere, and only acks arrive.

The driver's part, which decides, is `stormspark.driver.transaction`.
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
    """Of worker ``index``, for one batch after another. ``states`` is the state of its tasks.

    Its components hear of attempts at batches (G2) also where batches are no transactions.
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
        #: The tasks that know their batches, and how many rounds that end this batch there have been.
        self._batch_aware = [task for task in wiring.tasks.values() if task.component.kind_of_batch]
        self._ended = 0
        self._batch = -1
        #: Why the earlier attempt at a batch is to be taken back, when its next one begins.
        self._rolls_back: str | None = None
        #: In this round some worker still had work when its last tuples left: then no worker prepares in it.
        self.unsettled = False
        #: Why the batch fails, as another worker has reported in a round that ends it.
        self._fails_elsewhere = ""
        #: This worker's report once it has prepared the batch; until that batch ends it executes nothing more.
        self.prepared: TransactionReport | None = None

    # -- how a batch begins ------------------------------------------------------------------------------------

    def attempt_ended(self, reason: str) -> None:
        """The attempt at this batch is over. The next round says what is committed, and then the rest is taken back."""
        self._rolls_back = reason

    def settle(self, step: Step) -> None:
        """A round begins: take back what is not committed, or hear that it is."""
        reason, self._rolls_back = self._rolls_back, None
        if reason is not None:
            self.roll_back(step.batch, step.orders.committed, reason)
        else:
            self.hear_of_commit(step.orders.committed)
        for spout in self._spouts:
            spout.skip(step.orders.earlier.given_up.get(spout.id, ()))

    def hear_of_commit(self, committed: int) -> None:
        """Batch ``committed`` is the last one that is committed. If that is new, states and spouts hear of it."""
        if committed > self._states.last:
            for spout in self._spouts:  # before any code of users runs, which may raise
                spout.commit()
            self._states.committed(committed)
            self._turns.deliver_verdicts()

    def roll_back(self, batch: int, committed: int, reason: str) -> None:
        """Take back everything that came of ``batch`` here; after ``committed``, the batch comes again."""
        self.hear_of_commit(
            committed
        )  # the batch that this worker knew as the last may be committed after all
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
            # An instance without state may know of the batch all the same.
            if task.state is None and isinstance(task, BoltTask):
                task.begin_anew()
        self._states.roll_back(committed)
        self._turns.deliver_verdicts()

    def begin_batch(self, step: Step) -> None:
        """An attempt at a batch begins: components that want to know which one hear of it (G2)."""
        self._batch = step.batch
        self._ended, self.prepared = 0, None
        # A driver counts its attempts from the beginning: its generation tells them from those of the driver before.
        attempt = TransactionAttempt(step.batch + 1, self._states.generation << 32 | step.attempt)
        for task in self._batch_aware:
            pickled = step.orders.earlier.announced.get(_place_of(task))
            self._call.enter(task)
            task.begin_batch(attempt, None if pickled is None else self._read(task, pickled))

    def _read(self, task: Task, pickled: bytes) -> Any:
        """What an earlier attempt announced of the batch. Without it this one can't be the same, so the topology stops."""
        try:
            return pickle.loads(pickled)
        except Exception as error:
            msg = f"{task.name}: the metadata of batch {self._batch} can't be unpickled: {error_text(error)}"
            task.stop_topology(ComponentError(msg))
            return None

    def begin_round(self) -> None:
        """Nothing is known yet of what the other workers have left."""
        self.unsettled, self._fails_elsewhere = False, ""

    # -- how it ends -------------------------------------------------------------------------------------------

    def end_batches(self, number: int, stage: int) -> None:
        """In round ``number`` of those that end the batch: it is over for the bolts of this stage, downstream one by one."""
        reached("worker.before_finish")
        ends = self._plan.ends_of_batches
        for bolt in self._bolts:
            if ends.get(bolt.component.id) != (number, stage):
                continue
            reason = self._why_it_fails()
            if reason is not None:
                bolt.abort(f"did not hear of the end of its batch, which fails: {reason}")
                return
            self._turns.end_batch(bolt)
        reached("worker.finished")

    def take_unsettled(self, frame: Frame) -> None:
        """Another worker has work left, or the batch fails there."""
        self.unsettled = True
        self._fails_elsewhere = self._fails_elsewhere or frame.payload.decode()

    def tell_if_unsettled(self, step: Step, phase: int) -> None:
        """In superstep S: if this worker needs another round, or the batch fails here, tell all others.

        In a round that ends the batch this worker reports a fail at once: no committer may act on what the one before it did not
        do.
        """
        # What is left where no edge crosses concerns nobody else.
        if self.unsettled or not self._plan.supersteps:
            return
        reason = None
        if step.orders.ending_round:
            self._departures.seal_all()  # some of it may be what can't be sent
            reason = self._why_it_fails()
        tells = reason is not None
        if phase == self._plan.supersteps and not tells:
            needs_more = (
                self._left()
                or not self._has_ended(step)
                or self._aborts() is not None
                or self._wiring.fatal is not None
            )
            tells = step.orders.may_prepare and bool(needs_more)
        if tells:
            self.unsettled = True
            for worker in self._departures.lanes:
                self._departures.add(worker, FrameKind.UNSETTLED, 0, (reason or "").encode(errors="replace"))

    def refuse_tuples(self, frames: Iterable[Frame]) -> None:
        """Abort the batch where tuples come after it was prepared: they would be lost, or come twice. Nothing should get here."""
        if any(frame.kind in (FrameKind.TUPLES, FrameKind.BATCHES, FrameKind.ROWS) for frame in frames):
            first = next(iter(self._tasks.values()))
            first.abort(f"worker {self._index} was given tuples of a batch that it had prepared")

    def report(self, step: Step) -> TransactionReport:
        """The end of a round: prepare the batch for its commit if it is worked off everywhere."""
        for spout in self._spouts:
            spout.note_failures()
        failed = {spout.id: tuple(spout.take_failed_rows()) for spout in self._spouts if spout.failed_rows}
        if self.prepared is not None:
            aborts = self._aborts()
            return self.prepared._replace(
                aborts=aborts, prepared=aborts is None, failed_rows=failed, outside=self._aborted_outside()
            )
        left, ended = self._left(), self._has_ended(step)
        # A fail that another worker has yet to hear of decides about the batch, as a tuple does.
        left += sum(len(parts.fails) for parts in self._ledger.parts_to_send.values())
        self._ended = max(self._ended, step.orders.ending_round)
        begun = any(task.takes_part for task in self._batch_aware)
        announces = self._plan.announces and self._ended < self._plan.ending_rounds
        announced = self._announcements() if announces else None
        report = TransactionReport(
            left, self._aborts(), False, None, failed, begun, announced, self._aborted_outside()
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
        """In a round that ends the batch: what has gone wrong, here or elsewhere, so that it can't be committed."""
        fatal, aborts = self._wiring.fatal, self._aborts()
        if fatal is not None or aborts is not None:
            return aborts or (fatal.text if fatal is not None else None)
        for parts in self._ledger.parts_to_send.values():
            for _, verdict in parts.fails:
                return verdict.reason or "a tuple has failed"
        failed = next((tree for spout in self._spouts if (tree := spout.failed_tree) is not None), None)
        if failed is not None:
            return f"message {failed.message_id!r} {failed.verdict}"
        return self._fails_elsewhere or None

    def _left(self) -> int:
        """Tuples and rows of the batch that wait here, and calls that have to return before it ends."""
        return self._turns.left + sum(spout.rows_left + spout.must_finish for spout in self._spouts)

    def _has_ended(self, step: Step) -> bool:
        """Whether all batch bolts here that take part have heard that the batch is over."""
        begun = any(task.takes_part for task in self._batch_aware)
        return not begun or max(self._ended, step.orders.ending_round) == self._plan.ending_rounds

    def _announcements(self) -> dict[str, bytes]:
        """What the tasks announce of their batch, for a later attempt at it."""
        announced = {_place_of(task): task.announcement() for task in self._batch_aware}
        return {place: pickled for place, pickled in announced.items() if pickled is not None}

    def _aborts(self) -> str | None:
        return next((task.aborts for task in self._tasks.values() if task.aborts is not None), None)

    def _aborted_outside(self) -> bool:
        aborted = [task for task in self._tasks.values() if task.aborts is not None]
        return bool(aborted) and all(task.aborted_outside for task in aborted)

    def _held(self) -> int:
        """How many tuples bolts keep over the end of the batch, outside of their state; they warn of it."""
        count = 0
        for bolt in self._bolts:
            held = bolt.held()
            if held:
                count += len(held)
                bolt.tell_failure(
                    "held",
                    f"holds {len(held)} tuples over the end of their batch, outside of its state: if a worker dies, rows of "
                    f"sources come again, and tuples of other spouts are lost. Keep in the state what you need of them, and ack "
                    f"them",
                )
        return count


def _place_of(task: Task) -> str:
    """Which task of its component it is, whatever its id is in another packing."""
    return f"{task.component.id}/{task.index}"
