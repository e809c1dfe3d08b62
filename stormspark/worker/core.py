"""The worker: its tasks, run in supersteps until nothing local is left to do.

A superstep begins with the frames that other workers addressed to this one (superstep 0: with the spouts) and
ends when no task here has work left, or at the deadline; what is left stays queued, in order, ahead of later
input. Its reply is the frames for other workers. The reply of the last superstep is the report to the driver;
what is addressed to others then waits for superstep 0 of the next batch.

The same class serves every engine: a process beside a Spark executor, the local engine, and the in-process
runner of supersteps. It knows no Spark, no sockets and no processes; its clock and its randomness are
arguments.
"""

from __future__ import annotations

import pickle
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from math import inf
from random import Random
from threading import get_ident
from typing import Any

import pyarrow as pa

from stormspark.acker import Ledger, LedgerStatistics, Outcome, Roots, RunningClock, Verdict
from stormspark.acker.records import AckerTime, Record
from stormspark.api import Fields, SourceProgress, TopologyContext, TupleSource
from stormspark.backpressure import SpoutQuantum, TaskLoad, WaterMarks
from stormspark.checkpoint.barriers import reached
from stormspark.checkpoint.recorded_inputs import InputFiles
from stormspark.config import merged
from stormspark.errors import ComponentError
from stormspark.grouping import DirectGrouping, GroupingContext
from stormspark.metrics import TaskCounters
from stormspark.plan.physical import EdgePlan, PhysicalPlan, StreamPlan, TaskPlan
from stormspark.plan.supersteps import forward_order
from stormspark.spi import TransactionAttempt
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.acker_log import AckerLog, change_table
from stormspark.worker.arrow_tasks import ArrowBoltTask, ArrowSpoutTask
from stormspark.worker.batch_lanes import BatchLanes, unpack_batches
from stormspark.worker.batch_outlets import BatchOutlet, BatchReceiver, BatchSubscription, Receive, as_tuples
from stormspark.worker.batch_state import BatchState, StateAccess
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.collectors import fail_roots, reset_timeouts
from stormspark.worker.foreign_calls import watch_for_threads
from stormspark.worker.lanes import Lanes, unpack
from stormspark.worker.loads import Loads
from stormspark.worker.messages import Busy
from stormspark.worker.outlets import Delivery, Subscription, make_outlet
from stormspark.worker.outside import Watch
from stormspark.worker.recording_inputs import InputRecording
from stormspark.worker.row_routing import make_route
from stormspark.worker.salvage import error_text
from stormspark.worker.source_rows import readable
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.step import ErrorReport, Step, TransactionReport, WorkerReport, merge_progress
from stormspark.worker.stories import Stories
from stormspark.worker.task import Task
from stormspark.worker.task_logs import TaskLogs
from stormspark.worker.timers import Timers
from stormspark.worker.try_serialize import serializing
from stormspark.worker.worker_hooks import WorkerHooks

__all__ = ["FRAME_BYTES", "Worker"]

#: ``next_tuple`` calls between two looks at the bolts: few enough to stay in the caches, many enough to
#: forget the loop's cost.
_BURST = 64
#: A clock that tests drive stands still during a batch: then so many bursts, and so many passes over the bolts, are its end.
_MOST_BURSTS = 1000
_MOST_PASSES = 1000
#: For so long one bolt executes while others wait, where none may hold the others up.
_SLICE_SECONDS = 0.01
#: For so long is taken in what comes from outside before bolts get their turn again: each turn has a price.
_TAKE_IN_SECONDS = 0.002
#: What took less was little, and where some bolt has enough to do more of it is waited for: each look has a price, too.
_SHORT_SECONDS = 0.00015
_ENOUGH = 32
#: But where so many tuples wait for a bolt that has room now, it gets them at once: it might run dry.
_WORTH_A_TURN = 25
#: Between supersteps spouts are asked for so long before the worker looks whether the next one is there, and have this share of
#: their time at most: the tuples of the superstep are those that other workers can begin with.
_FILL_SECONDS = 0.002
_MOST_FILLED = 0.5
#: Lanes are sealed into a frame at about this size, so that no frame is huge and tuples do not pile up as
#: objects.
_FRAME_TUPLES = 512
FRAME_BYTES = 4 * 1024 * 1024
#: A worker that has been in one task's code for so long is looked at by another thread.
_LONG_SECONDS = 0.1
#: One superstep counts for message timeouts with at most this share of one, or as much as a pause: while one long call runs, no
#: worker can tell the others which tuples merely wait, and that takes up to six supersteps to arrive (W2).
_STEP_SHARE = 1 / 8


class Worker:
    """One Storm worker. Call `open`, then `run` once for every superstep, then `close`; from one thread.

    ``incarnation`` tells lives of the same worker apart. ``clock`` gives monotonic seconds, and ``epoch`` is the time in
    seconds since 1970 at which it stood at 0. ``logs`` sends each task's log and prints to a file of its own, where the
    process belongs to us. ``storm_id`` names this run of the topology (A14).
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        index: int,
        *,
        incarnation: int = 0,
        clock: Callable[[], float] = time.monotonic,
        epoch: float | None = None,
        random: Random | None = None,
        logs: TaskLogs | None = None,
        storm_id: str | None = None,
        state: StateAccess | None = None,
    ) -> None:
        self.plan = plan
        self.index = index
        self.incarnation = incarnation
        self.clock = self._clock = clock
        self._epoch = time.time() - clock() if epoch is None else epoch
        self._timers = Timers(clock)
        self._executor_data: dict[tuple[str, int], dict[str, Any]] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._storm_id = storm_id or f"{plan.topology}-1"
        self._hooks = WorkerHooks(plan, index, self._storm_id)
        self._random = random or Random()
        self._at: tuple[str, float] | None = None  # the task whose code runs, and since when
        self._inside: Task | None = None  # that task
        #: The task whose ``execute`` runs, or a timer of it, which may wait for its threads.
        self.executing: Task | None = None
        #: What `look` found in `_at`, and when a call of it was last seen to return. Only the other thread writes this, so that
        #: it can't undo what this one writes at the same time.
        self._looked: tuple[tuple[str, float], float] | None = None
        self._opening = False
        #: The thread that runs the tasks, and whether user code has other ones (W26).
        self.thread = get_ident()
        self.guarded = False
        self._logs = logs
        settings = plan.settings
        self._settings = settings
        gap = settings.clock_gap_ms / 1000
        step = inf if settings.timeout_secs is None else settings.timeout_secs * _STEP_SHARE
        self._running = RunningClock(gap, max(gap, step))
        self._next_look = 0.0
        self._worked = 0.0  # seconds, in this round
        self._quantum = SpoutQuantum(settings.batch_target_ms / 1000)
        self._tuple_marks = WaterMarks(*settings.worker_tuple_marks)
        self._byte_marks = WaterMarks(*settings.worker_byte_marks)
        #: What a tuple weighed in the queue of each bolt when it was last looked at, and how many looks there have been.
        self._tuple_bytes: dict[int, int] = {}
        self._weighed = 0
        self._sheds = settings.backpressure_strategy != "slow"
        #: Bytes in sealed frames at which bolts wait for the next superstep; where bolts shed, they execute by turns of time.
        self._most_leaving = inf if self._sheds else settings.worker_byte_marks[0]
        #: How long a superstep may take. Where spouts are not to wait for slow bolts, all of a round together one target.
        self._turn_seconds = settings.superstep_deadline_ms / 1000
        if self._sheds:
            whole = settings.batch_target_ms / 1000
            self._turn_seconds = min(self._turn_seconds, whole / (plan.last_superstep + 1))
        folder = logs.directory if logs is not None else None
        self.stories = Stories(plan, index, incarnation, clock, self._epoch, lambda: self._at, folder)
        self.ledger = Ledger(
            index, self._edge_ids, settings.timeout_secs, self.stories.part, settings.timeout_buckets
        )
        self._lanes = {
            worker: Lanes(worker, self.ledger, self._fail_unsent, FRAME_BYTES, settings.tuple_max_bytes)
            for worker in range(plan.workers)
            if worker != index
        }
        #: The same for batches, where the topology has vectorised components.
        vectorised = any(component.vectorised for component in plan.components.values())
        self._batch_lanes = {
            worker: BatchLanes(worker, self.ledger, self._fail_unsent, FRAME_BYTES, settings.tuple_max_bytes)
            for worker in (self._lanes if vectorised else ())
        }
        self._all_lanes: list[Lanes | BatchLanes] = [*self._lanes.values(), *self._batch_lanes.values()]
        self._ready: list[Frame] = []  # sealed frames that wait for the superstep's end
        self._ready_count = self._ready_bytes = 0
        self._sequence = 0
        self._batch_began: float | None = None
        #: Rows of batches that their bolts can't be given; senders may be in the middle of an emit, before the trees begin.
        self._to_refuse: list[tuple[int | None, Roots, str]] = []
        #: Why the earlier attempt at a batch is to be taken back, when its next one begins.
        self._batch_and_attempt = (-1, -1)
        self._rolls_back: str | None = None
        #: Batch, attempt and first superstep of the round; superstep 0 may bring several requests.
        self._begun: tuple[int, int, int] | None = None
        self._done = -1
        #: In the round that ended last nothing happened here.
        self.was_idle = False
        self._quantum_used_up = False
        #: Seconds between the supersteps of this round, those of them in which it went on, and those that are left for that.
        self._gaps = self._filled = self._left_to_fill = 0.0
        self._ended_at: float | None = None
        #: Rows of sources and what a transaction emits belong to a batch; where bolts shed, spouts have no time of their own.
        self._fills = not (
            self._sheds
            or plan.exactly_once
            or settings.trigger_interval_ms
            or any(component.source for component in plan.components.values())
        )
        self._sources = {
            (task.id, stream.id): TupleSource(component.id, task.id, stream.id, Fields(stream.fields))
            for component in plan.components.values()
            for task in map(plan.tasks.__getitem__, component.tasks)
            for stream in component.streams.values()
        }
        mine = plan.tasks_of_worker(index)
        self.tasks: dict[int, Task] = {task.id: self._make_task(task) for task in mine}
        self._spouts = [task for task in self.tasks.values() if isinstance(task, SpoutTask)]
        self._bolts = [task for task in self._downstream() if isinstance(task, BoltTask)]
        self._inboxes = {task.id: task.inbox for task in self._bolts}
        self._arrow_bolts = [task for task in self._bolts if isinstance(task, ArrowBoltTask)]
        #: Who takes rows of a batch.
        self._receivers: dict[int, Receive] = {
            task.id: task.receive
            if isinstance(task, ArrowBoltTask)
            else as_tuples(task.id, task.inbox, self._refuse_later)
            for task in self._bolts
        }
        #: Those that have something at work outside of this process, and what waits for that.
        self._outside: list[BoltTask] = []
        self._watch = Watch()
        self._transactions = plan.exactly_once
        self._states = BatchState(plan, self.tasks.values(), self._spouts, state, enter=self._enter)
        #: In this round some worker still had work when its last tuples left: then no worker prepares in it.
        self._unsettled = False
        #: Why the batch fails, as another worker has told in a round that ends it.
        self._fails_elsewhere = ""
        #: Whether answers from outside are taken in now, and calls of users' threads.
        self._listens = self._takes_calls = True
        self._first_round = False  # of an attempt at a batch
        #: This worker's report once it has prepared the batch that runs; until that batch ends it executes nothing more.
        self._prepared: TransactionReport | None = None
        if state is not None and settings.record_inputs:
            self._states.recording = recording = InputRecording(
                InputFiles(state.location, state.storage_options), state.generation, index, self._bolts
            )
            for bolt in self._bolts:
                bolt.inputs = recording.tasks[bolt.id]
        for spout in self._spouts:
            spout.waits_for_commit = self._transactions
        #: Those that know their batches, and how many of the rounds that end a batch have been.
        self._batch_aware = [task for task in self.tasks.values() if task.component.kind_of_batch]
        self._ended = 0
        self._ends = False  # whether this round is one of them
        for bolt in self._bolts:
            bolt.in_transactions = self._transactions
        self.stories.connect(self.ledger, self._spouts, self._bolts, self._all_lanes)
        self._loads = Loads(plan, index)
        self._acker_log = AckerLog()
        for task in self.tasks.values():
            self._connect(task)

    # -- life ------------------------------------------------------------------------------------------------

    def open(self, active: bool = True) -> None:
        """Start the worker hooks, then make every task.

        Bolts are prepared; if ``active``, spouts are opened and activated, else when they first are (B2).

        Raises `ComponentError`.
        """
        watch_for_threads(self)
        self.thread = get_ident()
        self._opening = True
        self._at = ("a worker hook", self._clock())
        self._hooks.start()
        self._at = ("the state table", self._clock())
        self._states.restore()
        for bolt in self._bolts:
            self._enter(bolt)
            bolt.start()
        self._outside = [bolt for bolt in self._bolts if bolt.works_outside]
        if active:
            for spout in self._spouts:
                self._enter(spout)
                spout.start()
            self.set_active(True)
        self._enter(None)
        self._opening = False

    @contextmanager
    def one_task(self, task: int) -> Iterator[Task]:
        """Start the worker hooks and this task alone, whose state has been loaded; at the end, stop them: for a replay.

        Raises `ComponentError`.
        """
        watch_for_threads(self)
        self.thread = get_ident()
        self._hooks.start()
        one = self.tasks[task]
        one.start()
        try:
            yield one
        finally:
            one.stop()
            self._hooks.shutdown()
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)

    def set_active(self, active: bool) -> None:
        """Activate or deactivate the spouts (B13)."""
        for spout in self._spouts:
            self._enter(spout)
            spout.activate_or_stop(active)
        self._enter(None)

    def close(self, committed: int = -1) -> None:
        """The graceful end: spouts are deactivated and closed, bolts cleaned up, worker hooks shut down.

        ``committed``, where batches are transactions, is the last one that is: first of all it is told of.
        """
        self._hear_of_commit(committed)
        for task in [*self._spouts, *self._bolts]:
            self._enter(task)
            task.stop()
        self._enter(None)
        self._hooks.shutdown()
        self.stories.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def abandon(self) -> None:
        """The end without ``close`` or ``cleanup``: nothing is left at work outside of this process."""
        for task in self.tasks.values():
            self._enter(task)
            task.let_go()
        self._enter(None)

    def begin_attempt(self, reason: str, batch: int | None = None) -> None:
        """The batch runs again because a worker is gone or Spark failed: what was under way between workers
        is lost.

        Trees with something outside of this worker fail with ``reason``; what is queued here stays, and so
        does what bolts hold. Where batches are transactions nothing of it stays: see `roll_back`.
        """
        if self._transactions:
            self._rolls_back = reason  # when the round says what is committed
            return
        self.ledger.abandon(reason)
        if batch is not None:
            for spout in self._spouts:
                spout.forget_batch(batch)

    def roll_back(self, batch: int, committed: int, reason: str) -> None:
        """All that came of ``batch`` here is taken back; after ``committed``, the batch comes again."""
        self._hear_of_commit(committed)  # the batch that it has known as the last may be committed after all
        self.ledger.roll_back(reason)
        for lanes in self._all_lanes:
            lanes.clear()
        self._ready, self._ready_count, self._ready_bytes = [], 0, 0
        self._prepared = None
        self._to_refuse.clear()
        for bolt in self._bolts:
            bolt.forget_tuples()
        for spout in self._spouts:
            spout.roll_back(batch, reason)
        for task in self.tasks.values():
            task.aborts = None
            self._enter(task)
            # An instance without state may know of the batch all the same.
            if task.state is None and isinstance(task, BoltTask):
                task.begin_anew()
        self._states.roll_back(committed)
        self._deliver_verdicts()

    def _settle(self, step: Step) -> None:
        """A round begins: take back what is not committed, or hear that it is."""
        reason, self._rolls_back = self._rolls_back, None
        if reason is not None:
            self.roll_back(step.batch, step.committed, reason)
        else:
            self._hear_of_commit(step.committed)
        for spout in self._spouts:
            spout.skip((step.skip or {}).get(spout.id, ()))

    def _hear_of_commit(self, committed: int) -> None:
        """That batch is the last one that is committed; if that is news, states and spouts hear of it."""
        if committed > self._states.last:
            for spout in self._spouts:  # before any code of users runs, which may raise
                spout.commit()
            self._states.committed(committed)
            self._deliver_verdicts()

    def _deliver_verdicts(self) -> None:
        """Spouts hear of the batch that is committed, or of the one that is not to be."""
        for spout in self._spouts:
            if spout.has_news:
                self._enter(spout)
                spout.deliver()
        self._enter(None)

    def adopt(self, task: int, rows: Iterable[tuple[tuple[int, int, int] | None, bytes]]) -> None:
        """Rows of a source that an earlier life of this worker left open, from the durable acker: they are emitted again."""
        spout = self.tasks[task]
        assert isinstance(spout, SpoutTask), spout.name
        spout.adopt(
            (
                None if record is None else Record(*record),
                readable(row, record or row, "the durable acker's journal"),
            )
            for record, row in rows
        )

    # -- a superstep -----------------------------------------------------------------------------------------

    def run(self, step: Step, frames: list[Frame]) -> list[Frame]:
        """Run one superstep; ``frames`` are in the order of (sender, sequence). Returns the frames for other
        workers, or the report.
        """
        now = self._clock()
        if self._ended_at is not None:
            self._gaps += now - self._ended_at
        self.thread = get_ident()
        phase = self.plan.phase(step.superstep)
        if phase == 0 and step[:3] != self._begun:
            self._begun = step[:3]
            if self._transactions:
                self._settle(step)
            self._begin_round(now, step)
        self._running.advance(now)
        self._spare_those_that_wait()
        self.ledger.rotate(self._running.seconds, self.stories.explain)
        # In a round that ends the batch nobody is cut short: a batch must not end anywhere before all has come.
        turn_ends = now + self._turn_seconds
        deadline = inf if step.finishes else turn_ends
        if self._loads.followed:
            self._refresh_loads(frames)
        if self._prepared is not None:
            self._refuse_tuples(frames)
        # A worker that has prepared the batch, or is about to, may not come by new tuples.
        closed = self._transactions and phase > self.plan.supersteps and not self._unsettled
        self._listens = self._prepared is None and not closed
        # All that threads call comes in where spouts are asked. After that it is only what they called while their bolt was in
        # `execute`: else a thread that never pauses would keep a batch from ever being worked off.
        self._takes_calls = not self._transactions or (phase == 0 and self._first_round and self._listens)
        for frame in frames:
            self._take(frame)
            self._pass(deadline)  # frame by frame, while what it brought is in the processor's caches
        if phase == 0 and self._fatal() is None and self._prepared is None:
            self._fire_timers(now)
            until = deadline
            if not self._sheds:
                until = min(deadline, self._clock() + self._quantum.seconds - self._left_to_fill)
            spouts = self._spouts if step.asks else [s for s in self._spouts if s.must_go_on]
            self._quantum_used_up |= self._ask_spouts(until, spouts)
        self._takes_calls = not self._transactions
        # All supersteps of a round together have as long for loops as the spouts for their turn: more would make batches
        # longer than their target, and the quantum, which follows them, would shrink at the spouts' cost.
        share = self._quantum.seconds / (self.plan.last_superstep + 1)
        if step.finishes and self._prepared is None:
            self._finish_outside()
            self._end_batches(step.finishes, phase)
        self._work(deadline, turn_ends if self._sheds or self._transactions else min(deadline, now + share))
        if step.finishes:
            self._finish_outside()
        self._refuse_rows()
        self._enter(None)
        self.stories.end_superstep()
        self._worked += self._clock() - now
        if phase == self.plan.last_superstep:
            self._running.end_batch(self._clock())
            frames = [self._report(step)]
        else:
            if self._transactions:
                self._tell_if_unsettled(step, phase)
            frames = self._hand_out()
        self._ended_at = self._clock()
        return frames

    def fill_gap(self) -> bool:
        """Between two supersteps of a worker that has more to do than time: ask spouts for a moment, and run bolts.

        What is emitted goes with the next superstep, as if this one had been longer. False if there is nothing to do, or no time
        for it: what the gaps of the round before have taken is set aside of this round's time for spouts, and no more than that
        is used, or a worker that waits for a slow one would bury it.
        """
        now = self._clock()
        if self._left_to_fill <= 0 or not self._quantum_used_up or self._fatal() is not None:
            return False
        for spout in self._spouts:
            spout.asked_again(now)
        used_up = self._ask_spouts(now + min(_FILL_SECONDS, self._left_to_fill), self._spouts)
        self.stories.end_superstep()
        took = self._clock() - now
        self._filled += took
        self._left_to_fill = self._left_to_fill - took if used_up else 0.0
        return used_up

    def _begin_round(self, now: float, step: Step) -> None:
        self._worked = 0.0
        if step.target is not None:
            self._quantum.target = step.target
        if self._batch_began is not None:
            # A round in which a limit stopped a spout says nothing of how much time spouts may have without.
            used_up = self._quantum_used_up and not any(spout.limited for spout in self._spouts)
            self._quantum.batch_took(now - self._batch_began, used_up=used_up)
        self._batch_began = now
        self._first_round = (step.batch, step.attempt) != self._batch_and_attempt
        if self._first_round:
            if self._states.recording is not None:
                self._states.recording.begin(step.batch)
            if step.batch != self._batch_and_attempt[0]:
                for spout in self._spouts:
                    spout.next_batch()
            self._batch_and_attempt = (step.batch, step.attempt)
            self._begin_batch(step)
        self._quantum_used_up = self._unsettled = False
        self._fails_elsewhere = ""
        self._ends = bool(step.finishes)
        limited = step.limits is not None and any(spout.id in step.limits for spout in self._spouts)
        fills = self._fills and step.asks and not limited
        self._left_to_fill = min(self._gaps, self._quantum.seconds * _MOST_FILLED) if fills else 0.0
        self._gaps = 0.0
        self._running.begin_batch(now)
        assert self._begun is not None
        self._acker_log.begin_batch(self._begun[0])
        for spout in self._spouts:
            spout.begin_round(now, None if step.limits is None else step.limits.get(spout.id))

    def _begin_batch(self, step: Step) -> None:
        """Tell those that want to know which attempt at which batch begins (G2)."""
        self._ended, self._prepared = 0, None
        # A driver begins to count attempts anew: its generation tells its own from those of the one before.
        attempt = TransactionAttempt(step.batch + 1, self._states.generation << 32 | step.attempt)
        for task in self._batch_aware:
            said = (step.announced or {}).get(self._place_of(task))
            self._enter(task)
            task.begin_batch(attempt, None if said is None else self._announced(task, said))

    def _announced(self, task: Task, said: bytes) -> Any:
        """What an earlier attempt has said of the batch; without it this one can't be the same, so the topology stops."""
        try:
            return pickle.loads(said)
        except Exception as error:
            msg = f"{task.name}: the metadata of batch {self._batch_and_attempt[0]} can't be unpickled: {error_text(error)}"
            failure = ComponentError(msg)
            task.stop_topology(failure)
            return None

    def _place_of(self, task: Task) -> str:
        """Which task of its component it is, whatever its id is in another packing."""
        return f"{task.component.id}/{task.index}"

    def _end_batches(self, number: int, stage: int) -> None:
        """In round ``number`` of those that end the batch: it is over for these bolts, one after another downstream."""
        reached("worker.before_finish")
        ends = self.plan.ends_of_batches
        for bolt in self._bolts:
            if ends.get(bolt.component.id) != (number, stage):
                continue
            reason = self._why_it_fails()
            if reason is not None:
                bolt.abort(f"did not hear of the end of its batch, which fails: {reason}")
                return
            self._enter(bolt)
            self.executing = bolt
            bolt.end_batch()
            self.executing = None
            self._seal_full_lanes()
            self._pass(inf)
            self._finish_outside()
        reached("worker.finished")

    def stirs(self) -> bool:
        """Between two batches, for a worker that `was_idle`: whether there is something to do now.

        A timer is due, a user's thread has called, or a spout that was asked, once, has emitted: that waits for the batch as
        anything does that a batch leaves over. Spouts of transactions are not asked: what they emit belongs to a batch.
        """
        now = self._clock()
        if now >= self._timers.next_due or self._fatal() is not None:
            return True
        if self.guarded and any(len(task.mailbox) for task in self.tasks.values()):
            return True
        stirs = False
        for spout in () if self._transactions else self._spouts:
            if spout.may_emit and not spout.component.source:
                self._enter(spout)
                stirs |= spout.ask(1, now)
        self._enter(None)
        return stirs

    def _spare_those_that_wait(self) -> None:
        """A tuple that no bolt could be given yet is not late: its trees have their whole timeout again (W2, W3).

        Looked at four times a timeout, so that home workers hear of it in time. What has moved since the last look is not
        spared, or a tree with a loop would live for ever.
        """
        timeout = self._settings.timeout_secs
        if timeout is None or self._running.seconds < self._next_look:
            return
        self._next_look = self._running.seconds + timeout / 4
        for bolt in self._bolts:
            for _, _, roots in bolt.not_reached():
                reset_timeouts(self.ledger, roots)

    def _take(self, frame: Frame) -> None:
        if frame.kind == FrameKind.TUPLES:
            scene = self.stories.scene
            scene.peer = frame.sender
            # Unpickling runs code of users' classes, which may never return.
            self._at = (f"a class that it unpickles, of a tuple from worker {frame.sender},", self._clock())
            unpack(frame.payload, self.ledger, self._sources, self._inboxes, scene.arriving, self._refuse)
            self._at = None
        elif frame.kind == FrameKind.BATCHES:
            scene = self.stories.scene
            scene.peer = frame.sender
            unpack_batches(
                frame.payload, self.ledger, self._sources, self._schema_of, self._receivers, scene.arriving
            )
        elif frame.kind == FrameKind.ROWS:
            task = self.tasks[frame.sender]
            assert isinstance(task, SpoutTask) and self._begun is not None
            task.take_rows(self._begun[0], frame.sequence, frame.payload)
        elif frame.kind == FrameKind.ACKS:
            self.ledger.take_parts(pickle.loads(frame.payload))
        elif frame.kind == FrameKind.UNSETTLED:
            self._unsettled = True
            self._fails_elsewhere = self._fails_elsewhere or frame.payload.decode()

    def _refresh_loads(self, frames: list[Frame]) -> None:
        """Tell choosers that follow load how much waits, before what the frames bring (D6)."""
        for frame in frames:
            if frame.kind == FrameKind.LOADS:
                self._loads.take(frame.payload)
        in_lanes: Counter[int] = Counter()
        for lanes in self._all_lanes:
            in_lanes.update(lanes.waiting())
        self._loads.refresh(self._waiting_for, in_lanes)

    def _waiting_for(self, task: int) -> int:
        bolt = self.tasks[task]
        assert isinstance(bolt, BoltTask)
        return bolt.waiting

    def _ask_spouts(self, until: float, spouts: Sequence[SpoutTask]) -> bool:
        """Ask spouts, in turn with the bolts, until they have nothing, their time is up, which is told, or too much waits."""
        still, now, used_up = 0, self._clock(), False
        while still < _MOST_BURSTS:
            emitted, full = False, self._full()
            if self.guarded and self._takes_calls and not full:
                self._take_calls(spouts)
            for spout in spouts:
                if spout.has_news or spout.may_emit:
                    self._enter(spout)
                    spout.deliver()
                    if spout.may_emit and not full:
                        emitted |= spout.ask(_BURST, until)
            if full:
                for spout in spouts:
                    spout.stopped_by_marks()
            for spout in spouts:
                self._seal_full_lanes(spout)
            self._pass(until)
            still, before = still + 1, now
            now = self._clock()
            if now != before:
                still = 0
            if now >= self._timers.next_due:
                self._fire_timers(now)
            if now >= until:
                used_up = True
                break
            if full or self._fatal() is not None:
                break
            idle = not emitted and not any(spout.has_news for spout in spouts)
            # Where a bolt has no room its answers are what is wanted, not more tuples for it.
            waits = self._outside and (idle or any(bolt.waiting and not bolt.ready for bolt in self._outside))
            if waits and self._wait_outside(until):
                continue
            if idle:
                break
        now = self._clock()
        for spout in spouts:
            spout.end_asking(now)
        self._enter(None)
        return used_up

    def _work(self, deadline: float, loops_until: float) -> None:
        """Run bolts until every inbox is empty, at the latest until ``deadline``.

        One pass is enough for all that goes forward. What goes round in a loop of the topology takes more, and may do so for
        ever (A15): after ``loops_until`` it waits for the next superstep.
        """
        late, still, now = self._pass(deadline), 0, self._clock()
        while still < _MOST_PASSES:
            if late:
                break
            if (
                not any(bolt.ready and bolt.fatal is None for bolt in self._bolts)
                and not (self.guarded and self._calls_at_hand())
                and not (self._outside and self._wait_outside(loops_until))
            ):
                break
            late = self._pass(loops_until)
            still, before = still + 1, now
            now = self._clock()
            if now != before:
                still = 0

    def _pass(self, deadline: float) -> bool:
        """Have each bolt, those nearest to the spouts first, execute what waits for it now; true if the deadline cut it short.

        Then tell spouts how trees ended.
        """
        if self.guarded and self._listens:
            self._take_calls(self._bolts)
        if self._to_refuse:
            self._refuse_rows()
        if self._outside and self._listens:
            self._take_in()
        late = self._take_turns(deadline) if self._sheds else self._work_through(deadline)
        for spout in self._spouts:
            if spout.has_news:
                self._enter(spout)
                spout.deliver()
                self._seal_full_lanes(spout)
        return late

    def _work_through(self, deadline: float) -> bool:
        """Each bolt executes all that waits for it now."""
        return any(bolt.ready and self._execute(bolt, deadline) >= deadline for bolt in self._bolts)

    def _take_turns(self, deadline: float) -> bool:
        """Each bolt sheds what does not fit, then executes for at most a slice of time.

        Where nobody is slowed down a bolt may be behind for good, and those after it must not starve.
        """
        now = self._clock()
        late = now >= deadline
        for bolt in self._bolts:
            self._shed(bolt)
            if bolt.ready and not late:
                now = max(now, self._execute(bolt, now + _SLICE_SECONDS))
        for bolt in self._bolts:
            self._shed(bolt)
        return now >= deadline

    def _execute(self, bolt: BoltTask, until: float) -> float:
        """Execute what waits for a bolt now, chunk by chunk until then; return when the last chunk ended.

        Bolts that make much of little are cut short by what leaves this worker, as they are by the time.
        """
        self._enter(bolt)
        waiting, now = bolt.ready, -inf
        while waiting > 0 and bolt.fatal is None:
            self.executing = bolt
            done = bolt.run()
            self.executing = None
            if not done:
                break
            waiting -= done
            if self.guarded and self._listens:
                # Its threads wait where too many calls do, and it may wait for them.
                self._take_calls([bolt])
            self._seal_full_lanes(bolt)
            now = self._clock()
            self._at = (bolt.name, now)
            if now >= until:
                break
            if self._ready_bytes > self._most_leaving and until < inf:
                return max(now, until)  # as late as at the deadline: what has been emitted has to leave first
        return now

    def _shed(self, bolt: BoltTask) -> None:
        """Drop or fail what does not fit below its marks (X51)."""
        assert bolt.shedding is not None
        excess = bolt.shedding.excess()
        if excess:
            self._enter(bolt)
            bolt.shedding.shed(excess, self._clock())

    def _wait_outside(self, until: float) -> bool:
        """Wait for what is at work outside, and take in what comes; false if there is nothing, or no time.

        Returns after some milliseconds, or when all is done, so that bolts go on with what has come. As long as somebody waits
        for answers there, only that is listened to: what others say is cheaper to take in all at once.
        """
        busy = [bolt for bolt in self._outside if bolt.outside and bolt.fatal is None]
        begun = now = self._clock()
        if not busy or now >= until:
            return False
        turn_ends = min(until, now + _TAKE_IN_SECONDS)
        watch, clock, enter = self._watch, self._clock, self._enter
        bolts = [bolt for bolt in busy if bolt.asks] or busy
        watch.set(bolts)
        while now < turn_ends:
            done = watch.take_in(turn_ends - now, enter)
            if done is None:
                for bolt in busy:  # in vain: it may ask how far things are
                    enter(bolt)
                    bolt.take_in()
                break
            if done:
                busy = [bolt for bolt in busy if bolt.outside and bolt.fatal is None]
                bolts = [bolt for bolt in busy if bolt.asks] or busy
                if not bolts or any(bolt.ready >= _WORTH_A_TURN for bolt in self._outside):
                    break
                watch.set(bolts)
            before, now = now, clock()
            if now - before < _SHORT_SECONDS and any(bolt.outside >= _ENOUGH for bolt in bolts):
                watch.gather(bolts)
                now = clock()
        waited = self._clock() - begun
        for bolt in self._outside:
            self._seal_full_lanes(bolt)
            if bolt.outside:
                bolt.waited(waited)
        self._enter(None)
        return True

    def _finish_outside(self) -> None:
        """A batch must not end anywhere before what is at work outside has come."""
        while self._wait_outside(inf):
            self._pass(inf)

    def _take_in(self) -> None:
        """Take in what has come from outside."""
        self._watch.set(self._outside)
        self._watch.take_in(0, self._enter)
        for bolt in self._outside:
            self._seal_full_lanes(bolt)

    def _take_calls(self, tasks: Iterable[Task]) -> None:
        """Do what threads of user code have emitted, acked and failed, as far as it belongs to the batch."""
        for task in tasks:
            most = len(task.mailbox) if self._takes_calls else task.mailbox.at_hand
            if most and task.fatal is None:
                self._enter(task)
                task.take_calls(most)
                self._seal_full_lanes(task)

    def _calls_at_hand(self) -> int:
        """Calls of threads that belong to the batch that runs, as the tuples do that were executed meanwhile."""
        if not self._listens:  # what comes now is for the next batch, whatever was at hand when it was called
            return 0
        return sum(bolt.mailbox.at_hand for bolt in self._bolts if bolt.fatal is None)

    def runs_user_code(self, thread: int) -> bool:
        """Whether this thread is in a task's code now."""
        return thread == self.thread and self._at is not None

    def guard(self) -> None:
        """User code has threads from now on."""
        if not self.guarded:
            self.guarded = True
            for task in self.tasks.values():
                task.guard()

    def _fire_timers(self, now: float) -> None:
        """Call what is due: ticks, windows, metrics, users' own timers.

        Not in a round that ends a batch: what they emit would come to bolts that have heard that all has come.
        """
        if now < self._timers.next_due or self._ends:
            return
        for task, callback in self._timers.take_due(now):
            if task.fatal is not None:
                continue
            self._enter(task)
            self.executing = task
            try:
                callback()
            except Exception as error:
                task.raised("a timer's callback", error)
            self.executing = None
            self._seal_full_lanes(task)
        self._enter(None)

    def _full(self) -> bool:
        """Whether so much waits that spouts must pause, by the level read anew (W1).

        Where bolts shed what does not fit spouts pause for nobody's queue, only for what has to leave this worker first.
        """
        # Lanes by the last look at them: to look at all of them each time would cost more than the tuples.
        waiting, waiting_bytes = self._ready_count, self._ready_bytes
        waiting += sum(lanes.tuples for lanes in self._lanes.values())
        waiting_bytes += sum(lanes.bytes for lanes in self._lanes.values())
        waiting += sum(map(len, self._batch_lanes.values()))
        if not self._sheds:
            waiting += sum(bolt.waiting for bolt in self._bolts)
            waiting_bytes += self._queued_bytes()
        if self._batch_lanes or self._arrow_bolts:
            # Rows of batches are no objects: it is their bytes that count.
            rows, waiting_rows_bytes = self._waiting_rows()
            waiting, waiting_bytes = waiting - rows, waiting_bytes + waiting_rows_bytes
        too_many = self._tuple_marks.observe(waiting)
        return self._byte_marks.observe(waiting_bytes) or too_many

    def _queued_bytes(self) -> int:
        """About how many bytes wait for bolts that are not vectorised."""
        behind = [bolt for bolt in self._bolts if bolt.waiting and bolt not in self._arrow_bolts]
        if not behind:
            return 0
        # Another one each time: to weigh the tuples of all of them would cost more than the tuples.
        self._weighed += 1
        one = behind[self._weighed % len(behind)]
        self._tuple_bytes[one.id] = one.size_of_one()
        return sum(bolt.waiting * self._tuple_bytes.get(bolt.id, 0) for bolt in behind)

    def _waiting(self) -> int:
        """Tuples in inboxes and lanes, and all that waits in sealed frames."""
        return sum(bolt.waiting for bolt in self._bolts) + self._leaving()

    def _waiting_rows(self) -> tuple[int, int]:
        """Rows of batches among what waits, and the bytes of those that are not in sealed frames."""
        bolts = () if self._sheds else self._arrow_bolts
        lanes = self._batch_lanes.values()
        rows = sum(bolt.rows_waiting for bolt in bolts) + sum(map(len, lanes))
        sealed = sum(frame.count for frame in self._ready if frame.kind == FrameKind.BATCHES)
        size = sum(bolt.batch_bytes for bolt in bolts) + sum(one.bytes for one in lanes)
        return rows + sealed, size

    def _at_work(self) -> int:
        """Tuples that bolts have outside of this process."""
        return sum(bolt.outside for bolt in self._outside)

    def _leaving(self) -> int:
        """Of these, what is for other workers."""
        return sum(map(len, self._all_lanes)) + self._ready_count

    # -- frames ----------------------------------------------------------------------------------------------

    def _seal_full_lanes(self, emitter: Task | None = None) -> None:
        """Make frames of what is enough for one. Only this task has emitted something since the last time, if one is given."""
        for lanes in self._lanes.values():
            if lanes.is_full(_FRAME_TUPLES, FRAME_BYTES, None if emitter is None else emitter.id):
                self._seal(lanes)
        for batches in self._batch_lanes.values():
            if batches.bytes >= FRAME_BYTES:
                self._seal_batches(batches)

    def _seal_batches(self, lanes: BatchLanes) -> None:
        self.stories.scene.peer = lanes.worker
        for rows, payload in lanes.seal():
            self._add_frame(lanes.worker, FrameKind.BATCHES, rows, payload)

    def _seal(self, lanes: Lanes) -> None:
        self.stories.scene.peer = lanes.worker
        for tuples, payload in lanes.seal():
            self._add_frame(lanes.worker, FrameKind.TUPLES, tuples, payload)

    def _add_frame(self, target: int, kind: FrameKind, count: int, payload: bytes) -> None:
        self._ready.append(Frame(target, kind, self.index, self._sequence, count, payload))
        self._ready_count += count
        self._ready_bytes += len(payload)
        self._sequence += 1

    def _seal_all_lanes(self) -> None:
        for lanes in self._lanes.values():
            self._seal(lanes)
        for batches in self._batch_lanes.values():
            self._seal_batches(batches)

    def _hand_out(self) -> list[Frame]:
        self._seal_all_lanes()
        # After the tuples: sealing may have drained parts, and fails of values that can't be pickled.
        for home, parts in self.ledger.parts_to_send.items():
            self._add_frame(home, FrameKind.ACKS, len(parts), pickle.dumps(parts, 5))
        self.ledger.parts_to_send.clear()
        for listener in self._loads.listeners:
            self._add_frame(listener, FrameKind.LOADS, 0, self._loads.telling(self._waiting_for))
        ready, self._ready, self._ready_count, self._ready_bytes = self._ready, [], 0, 0
        return ready

    def _report(self, step: Step) -> Frame:
        loads: dict[int, TaskLoad] = {}
        for spout in self._spouts:
            loads[spout.id] = held = spout.load()
            spout.counters.pending, spout.counters.queued = held.open_trees, spout.rows_waiting
        for bolt in self._bolts:
            loads[bolt.id] = waits = bolt.load()
            bolt.counters.queued, bolt.counters.queued_bytes = waits.queued, waits.queued_bytes
        transaction = self._transaction(step) if self._transactions else None
        if step.acker_time is not None:
            self._acker_log.add(self._acker_changes(step.acker_time), step.attempt, step.acker_time.tried)
        counters = {task.id: task.read_counters() for task in self.tasks.values()}
        backlog, before = self.backlog, self._done
        self._done = sum(map(TaskCounters.work_done, counters.values()))
        self.was_idle = not backlog and self._done == before
        report = WorkerReport(
            worker=self.index,
            incarnation=self.incarnation,
            batch=step.batch,
            counters=counters,
            errors=tuple(error for task in self.tasks.values() for error in task.take_errors()),
            failures=tuple(failure for task in self.tasks.values() for failure in task.take_failures()),
            fatal=self._fatal(),
            backlog=backlog,
            idle=self.was_idle,
            at_rest=self.was_idle and not self._outside and next(self.ledger.open_trees(), None) is None,
            data_points=tuple(point for task in self.tasks.values() for point in task.take_data_points()),
            loads=loads,
            worked=self._worked,
            filled=self._filled,
            sources=self.source_progress(step.batch),
            acker=self._acker_log.unconfirmed if step.acker_time is not None else (),
            transaction=transaction,
        )
        self._filled = 0.0
        return Frame(self.index, FrameKind.REPORT, self.index, 0, 1, pickle.dumps(report, 5))

    # -- the end of a transaction ------------------------------------------------------------------------------
    #
    # After a component has heard that its batch ends (``pre_save``), no tuple of that batch may reach it. So workers prepare
    # together or not at all: in superstep S, the last one in which tuples can leave a worker, each worker that still has work
    # tells all others. In the superstep after it everybody knows whether a tuple is left anywhere, and only acks arrive.

    def _tell_if_unsettled(self, step: Step, phase: int) -> None:
        """In superstep S: if this worker needs another round, or the batch fails here, tell all others.

        In a round that ends the batch it tells them of a fail at once: no committer may act on what the one before it did not do.
        """
        # What is left where no edge crosses concerns nobody else.
        if self._unsettled or not self.plan.supersteps:
            return
        reason = None
        if step.finishes:
            self._seal_all_lanes()  # some of it may be what can't be sent
            reason = self._why_it_fails()
        tells = reason is not None
        if phase == self.plan.supersteps and not tells:
            left = self._left() or not self._has_ended(step) or self._aborts() is not None or self._fatal()
            tells = step.commits and bool(left)
        if tells:
            self._unsettled = True
            for worker in self._lanes:
                self._add_frame(worker, FrameKind.UNSETTLED, 0, (reason or "").encode(errors="replace"))

    def _why_it_fails(self) -> str | None:
        """In a round that ends the batch: what has gone wrong, here or elsewhere, with which it can't be committed."""
        fatal, aborts = self._fatal(), self._aborts()
        if fatal is not None or aborts is not None:
            return aborts or (fatal.text if fatal is not None else None)
        for parts in self.ledger.parts_to_send.values():
            for _, verdict in parts.fails:
                return verdict.reason or "a tuple has failed"
        failed = next((tree for spout in self._spouts if (tree := spout.failed_tree) is not None), None)
        if failed is not None:
            return f"message {failed.message_id!r} {failed.verdict}"
        return self._fails_elsewhere or None

    def _left(self) -> int:
        """Tuples and rows of the batch that wait here, and calls that have to return before it ends."""
        left = self._waiting() + self._at_work() + self._calls_at_hand()
        return left + sum(spout.rows_left + spout.must_finish for spout in self._spouts)

    def _has_ended(self, step: Step) -> bool:
        """Whether all batch bolts here that take part have heard that the batch is over."""
        begun = any(task.takes_part for task in self._batch_aware)
        return not begun or max(self._ended, step.finishes) == self.plan.ending_rounds

    def _refuse_tuples(self, frames: Iterable[Frame]) -> None:
        """Abort the batch where tuples come after it was prepared: they would be lost, or come twice. Nothing should get here."""
        if any(frame.kind in (FrameKind.TUPLES, FrameKind.BATCHES, FrameKind.ROWS) for frame in frames):
            first = next(iter(self.tasks.values()))
            first.abort(f"worker {self.index} was given tuples of a batch that it had prepared")

    def _transaction(self, step: Step) -> TransactionReport:
        """The end of a round: prepare the batch for its commit if it is worked off everywhere."""
        for spout in self._spouts:
            spout.note_failures()
        failed = {spout.id: tuple(spout.take_failed_rows()) for spout in self._spouts if spout.failed_rows}
        if self._prepared is not None:
            aborts = self._aborts()
            return self._prepared._replace(
                aborts=aborts, prepared=aborts is None, failed_rows=failed, outside=self._aborted_outside()
            )
        left, ended = self._left(), self._has_ended(step)
        # A fail that is still to be told elsewhere decides about the batch, as a tuple does.
        left += sum(len(parts.fails) for parts in self.ledger.parts_to_send.values())
        self._ended = max(self._ended, step.finishes)
        begun = any(task.takes_part for task in self._batch_aware)
        announces = self.plan.announces and self._ended < self.plan.ending_rounds
        announced = self._announcements() if announces else None
        report = TransactionReport(
            left, self._aborts(), False, None, failed, begun, announced, self._aborted_outside()
        )
        if left or not (step.commits and ended) or self._unsettled or report.aborts or self._fatal():
            return report
        held = self._held()
        for spout in self._spouts:
            spout.end_attempt()
        file = self._states.prepare(step.batch)
        if self._aborts() is not None or self._fatal() is not None:
            return report._replace(aborts=self._aborts(), outside=self._aborted_outside())
        self._prepared = report._replace(prepared=True, file=file, held=held)
        return self._prepared

    def _announcements(self) -> dict[str, bytes]:
        """What the tasks say of their batch, for a later attempt at it."""
        said = {self._place_of(task): task.announcement() for task in self._batch_aware}
        return {place: pickled for place, pickled in said.items() if pickled is not None}

    def _aborts(self) -> str | None:
        return next((task.aborts for task in self.tasks.values() if task.aborts is not None), None)

    def _aborted_outside(self) -> bool:
        aborted = [task for task in self.tasks.values() if task.aborts is not None]
        return bool(aborted) and all(task.aborted_outside for task in aborted)

    def _held(self) -> int:
        """How many tuples bolts keep over the end of the batch, outside of their state; which is told."""
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

    def _acker_changes(self, time: AckerTime) -> Iterator[pa.Table]:
        for spout in self._spouts:
            if changes := spout.acker_changes(time, self._signed_ids):
                yield change_table(spout.component.id, spout.id, changes)

    def source_progress(self, batch: int) -> dict[str, SourceProgress]:
        """How far the tasks of source spouts have come, as of this batch; all of it is told of batch 0."""
        return merge_progress(
            {spout.component.id: progress}
            for spout in self._spouts
            if (progress := spout.progress(batch)) is not None
        )

    @property
    def backlog(self) -> int:
        """Tuples, rows and acks that wait here: in inboxes, in lanes, in frames for the next batch."""
        rows = sum(spout.rows_waiting for spout in self._spouts)
        calls = sum(len(task.mailbox) for task in self.tasks.values())
        return self._waiting() + self._at_work() + rows + calls + self.ledger.statistics().outgoing

    def _fatal(self) -> ErrorReport | None:
        return next((task.fatal for task in self.tasks.values() if task.fatal is not None), None)

    # -- wiring ----------------------------------------------------------------------------------------------

    def _make_task(self, task: TaskPlan) -> Task:
        plan = self.plan
        component = plan.components[task.component]
        conf = merged(plan.conf, component.conf)
        if component.kind == "bolt":
            bolt = ArrowBoltTask if component.vectorised else BoltTask
            return bolt(task, component, conf, self)
        spout = ArrowSpoutTask if component.vectorised else SpoutTask
        return spout(task, component, conf, self, acking=plan.settings.acking)

    # What tasks need of their worker; see `stormspark.worker.task.Host`.

    def epoch(self) -> float:
        """Seconds since 1970 when the clock was 0."""
        return self._epoch

    def set_timer(
        self, task: Task, seconds: float, callback: Callable[[], None], first: float | None = None
    ) -> None:
        """Call back at a fixed rate; at first after ``first`` seconds, if that is given."""
        self._timers.add(task, seconds, callback, first)

    def clear_timers(self, task: Task) -> None:
        """The instance of ``task`` has ended."""
        self._timers.remove(task)

    @property
    def shared_executor(self) -> Executor:
        """A thread pool for all tasks, made when it is first asked for (A28)."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(
                self._settings.shared_threads, f"{self.plan.topology}-{self.index}"
            )
        return self._threads

    def context(self, task: Task) -> TopologyContext:
        """What a new instance of ``task`` is given."""
        plan = self.plan
        placed = plan.tasks[task.id]
        return TopologyContext(
            topology=plan.topology,
            storm_id=self._storm_id,
            component=placed.component,
            task=task.id,
            worker=self.index,
            tasks={component.id: component.tasks for component in plan.components.values()},
            worker_tasks=tuple(one.id for one in plan.tasks_of_worker(self.index)),
            streams={
                component.id: {stream.id: Fields(stream.fields) for stream in component.streams.values()}
                for component in plan.components.values()
            },
            edges=tuple((e.source, e.stream, e.target, e.grouping) for e in plan.edges),
            services=task,
            executor_data=self._executor_data.setdefault((placed.component, placed.executor), {}),
            resources=self._hooks.resources,
            max_message_timeout=max(one.settings.message_timeout_secs for one in plan.components.values()),
        )

    def _connect(self, task: Task) -> None:
        """Build the outlets of a task's streams."""
        if isinstance(task, ArrowBoltTask):
            for edge in self.plan.edges:
                if edge.target == task.component.id:
                    schema = self.plan.components[edge.source].streams[edge.stream].schema
                    task.subscribe(edge.source, edge.stream, schema)
        if isinstance(task, ArrowBoltTask | ArrowSpoutTask):
            for typed in task.component.streams.values():
                task.batch_outlets[typed.id] = self._batch_outlet(task, typed)
            return
        for stream in task.component.streams:
            edges = [e for e in self.plan.edges if (e.source, e.stream) == (task.component.id, stream)]
            source = self._sources[task.id, stream]
            outlet = make_outlet(source, [self._subscription(source, edge) for edge in edges])
            outlet = serializing(outlet) if self._settings.try_serialize else outlet
            if isinstance(task, BoltTask) and task.inputs is not None:
                outlet = task.inputs.observed(outlet)
            task.outlets[stream] = outlet

    def _batch_outlet(self, task: Task, stream: StreamPlan) -> BatchOutlet:
        """The outlet of a stream of a vectorised task."""
        source = self._sources[task.id, stream.id]
        edges = [e for e in self.plan.edges if (e.source, e.stream) == (task.component.id, stream.id)]
        subscriptions = []
        for edge in edges:
            context, choose = self._chooser(source, edge)
            receivers: dict[int, BatchReceiver] = {}
            for target in context.targets:
                placed = self.plan.tasks[target]
                here = placed.worker == self.index
                receive = self._receivers[target] if here else self._batch_lanes[placed.worker].inbox(target)
                receivers[target] = BatchReceiver(receive, f"{placed.component}[{placed.index}]", here)
            subscriptions.append(
                BatchSubscription(
                    edge.target,
                    make_route(edge.grouping, choose, context),
                    isinstance(edge.grouping, DirectGrouping),
                    receivers,
                )
            )
        return BatchOutlet(source, stream.schema, subscriptions, self.stories.scene)

    def _schema_of(self, source: TupleSource) -> pa.Schema:
        return self.plan.components[source.component].streams[source.stream].schema

    def _subscription(self, source: TupleSource, edge: EdgePlan) -> Subscription:
        targets = self.plan.components[edge.target].tasks
        inboxes: dict[int, list[Delivery]] = {}
        for target in targets:
            worker = self.plan.tasks[target].worker
            if worker == self.index:
                inboxes[target] = self._inboxes[target]
            else:
                inboxes[target] = self._lanes[worker].inbox(source.task, target)
        context, choose = self._chooser(source, edge)
        # Without a key nothing of the values matters; a rule of users' own, which may look at them, is never a single one.
        able = edge.grouping.candidates(context.targets, context.local_targets)
        blind = edge.grouping.single and not edge.grouping.key_fields
        return Subscription(
            consumer=edge.target,
            choose=choose,
            single=edge.grouping.single,
            direct=isinstance(edge.grouping, DirectGrouping),
            inboxes=inboxes,
            only=able[0] if blind and len(able) == 1 else None,
        )

    def _chooser(self, source: TupleSource, edge: EdgePlan) -> tuple[GroupingContext, Callable[..., Any]]:
        """The chooser of one sender for one subscription, and what it knows."""
        targets = self.plan.components[edge.target].tasks
        context = GroupingContext(
            source=edge.source,
            stream=edge.stream,
            fields=tuple(source.fields),
            sender=source.task,
            targets=targets,
            local_targets=tuple(t for t in targets if t in self._inboxes),
            random=self._random,
            ints=self._settings.fields_ints,
            consumer=edge.target,
            tasks={component.id: component.tasks for component in self.plan.components.values()},
            conf=self.plan.conf,
            higher_bound=self._settings.locality_higher_bound,
            lower_bound=self._settings.locality_lower_bound,
        )
        choose = edge.grouping.chooser(context)
        self._loads.follow(edge, choose)
        return context, choose

    def _downstream(self) -> Iterator[Task]:
        """The tasks, senders before receivers, so that one pass carries every tuple to its end, but for loops."""
        order = forward_order(self.plan.components, self.plan.edges)
        yield from sorted(self.tasks.values(), key=lambda task: (order[task.component.id], task.id))

    def _edge_ids(self, count: int) -> Sequence[int]:
        return array("Q", self._random.randbytes(8 * count))

    def _signed_ids(self, count: int) -> Sequence[int]:
        return array("q", self._random.randbytes(8 * count))

    def _fail_unsent(self, task: int, roots: Iterable[Roots], reason: str) -> None:
        """What ``task`` has emitted can't go to another worker."""
        sender = self.tasks[task]
        sender.report_error(reason)
        verdict = Verdict(Outcome.FAILED, reason, sender.component.id, sender.id)
        for of_one in roots:
            sender.fail_delivery(of_one, verdict, "to send")

    def _refuse(self, task: int | None, roots: Roots, reason: str) -> None:
        """Fail a tuple that its bolt can't be given; without a task, somebody has to say what has become of a whole frame."""
        bolt = next(iter(self._bolts)) if task is None else self.tasks[task]
        if task is not None:
            bolt.counters.failed += 1
            fail_roots(self.ledger, roots, Verdict(Outcome.FAILED, reason, bolt.component.id, bolt.id))
        bolt.abort(reason)
        bolt.report_error(f"a tuple was not given to it, and its trees fail: {reason}")

    def _refuse_later(self, task: int | None, roots: Roots, reason: str) -> None:
        self._to_refuse.append((task, roots, reason))

    def _refuse_rows(self) -> None:
        """Nobody is in the middle of an emit now."""
        to_refuse, self._to_refuse = self._to_refuse, []
        for refused in to_refuse:
            self._refuse(*refused)

    def busy(self) -> Busy | None:
        """Which task's code this worker is in, and since when; for another thread that wonders about the silence.

        An instance begins not only at this worker's start: after an exception, at an activation, when a batch comes again.
        """
        at, task = self._at, self._inside
        if at is None:
            return None
        now, begins = self._clock(), None if task is None else task.begins_since
        if begins is not None:
            return Busy(at[0], now - begins, True)
        since = self._since(at)
        return Busy(at[0], now - max(since, since if task is None else task.begun_at), self._opening)

    def look(self) -> None:
        """Called by another thread some times a second, so that what `busy` says is the time of single calls of user code: a loop
        over many calls that has become slow is cut short, or has its calls seen to return.
        """
        at, task = self._at, self._inside
        if at is None or task is None or self._clock() - self._since(at) < _LONG_SECONDS:
            return
        if task.look():
            self._looked = at, self._clock()

    def _since(self, at: tuple[str, float]) -> float:
        """Since when the call runs that runs in ``at``, which is what `_at` was."""
        looked = self._looked
        return looked[1] if looked is not None and looked[0] is at else at[1]

    def _enter(self, task: Task | None) -> None:
        self._inside = task
        self._at = None if task is None else (task.name, self._clock())
        if self._logs is not None:
            self._logs.enter(task.name if task is not None else None)

    # -- for people and tests --------------------------------------------------------------------------------

    def statistics(self) -> LedgerStatistics:
        """The sizes of this worker's ledger."""
        return self.ledger.statistics()

    def validate(self) -> None:
        """Check every invariant that can be seen between two supersteps; on in tests."""
        self.ledger.validate()
        for task in self._spouts:
            mine = sum(tree.account is task.account for tree in self.ledger.open_trees())
            assert mine == task.account.pending, (
                f"{task.name}: {task.account.pending} pending, but {mine} trees open"
            )
