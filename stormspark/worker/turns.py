"""The turns of a worker's tasks. Spouts are called in bursts, bolts execute in passes, and timers and calls of threads come in
between.

All of this happens on one thread, except for the code of executors with threads of their own (`stormspark.worker.executors`). A
*pass* walks over the bolts, senders before receivers, and each bolt executes its waiting tuples in chunks. If the topology has no
loop, one pass carries every tuple as far as it gets in this worker, unless a deadline ends the pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from stormspark.worker.asynchronous.life import AsyncExecutor
from stormspark.worker.backlog import Backlog
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.departures import Departures
from stormspark.worker.errors_of_code import ERRORS_OF_CODE
from stormspark.worker.executors.executors import Executors
from stormspark.worker.executors.spout_task import ThreadedSpoutTask
from stormspark.worker.outside import OutsideWork
from stormspark.worker.refusals import Refusals
from stormspark.worker.services import TaskServices
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.task import Task
from stormspark.worker.wiring import Wiring

__all__ = ["Turns"]

#: How many times ``next_tuple`` is called before the worker looks at the bolts again. The number is so small that the tuples
#: stay in the processor's caches, and so large that the loop itself costs little.
_BURST = 64
#: At most so many bursts, or passes, happen while the clock stands still. In a test the clock may stand still during a batch.
#: Without these bounds such a batch would never end.
_MOST_BURSTS = 1000
_MOST_PASSES = 1000
#: For how long one spout is called while others wait for their turn. The call that runs when this time is over is the last call
#: of the turn. If bolts shed, no bolt may hold up the others, so one bolt executes for at most this long while others wait.
_SLICE_SECONDS = 0.01


class Turns:
    """The turns of one worker. Deadlines are on the clock of ``services``.

    If ``sheds``, bolts drop or fail tuples that do not fit, and take turns of limited time. While the frames that wait to leave
    hold more than ``most_leaving`` bytes, bolts wait for the next superstep.
    """

    def __init__(
        self,
        wiring: Wiring,
        services: TaskServices,
        call: CurrentCall,
        departures: Departures,
        backlog: Backlog,
        outside: OutsideWork,
        executors: Executors,
        refusals: Refusals,
        *,
        sheds: bool,
        most_leaving: float,
    ) -> None:
        self._tasks, self._spouts, self._bolts = wiring.tasks, wiring.spouts, wiring.bolts
        self._wiring, self._services, self._call = wiring, services, call
        self._departures, self._backlog = departures, backlog
        self._outside, self._executors, self._refusals = outside, executors, refusals
        self._clock, self._timers = services.clock, services.timers
        self._most_leaving = most_leaving
        #: The bolts in the order of the next pass.
        self._next_pass: Sequence[BoltTask] = wiring.bolts
        #: Whether spouts wait for slow bolts. If not, bolts shed tuples that do not fit.
        self.spouts_wait = not sheds
        #: `listens`: whether the worker now takes in answers from outside, notes of executors and calls of users' threads.
        #: `takes_calls`: whether all calls of users' threads are taken in, or only those that were made while the bolt was in
        #: ``execute``.
        self.listens = self.takes_calls = True
        #: Whether timers may go off. They may not in a round that ends a batch, because tuples that a timer emits could reach
        #: bolts whose batch has ended.
        self.timers_run = True

    # -- spouts ----------------------------------------------------------------------------------------------

    def ask_spouts(self, until: float, spouts: Sequence[SpoutTask]) -> bool:
        """Call spouts, in turn with the bolts, until they emit nothing, too much waits, or the time is ``until``.

        Returns whether the time was used up.
        """
        here = [spout for spout in spouts if not isinstance(spout, ThreadedSpoutTask)]
        beside = [spout for spout in spouts if isinstance(spout, ThreadedSpoutTask)]
        still, now, used_up, alone = 0, self._clock(), False, len(here) == 1
        self._executors.begin_to_wait()
        while still < _MOST_BURSTS:
            # Whether too much waits. Finding out costs a look at every queue, so it is done only if some spout may emit.
            full: bool | None = None
            emitted = False
            if self._services.guarded and self.takes_calls:
                full = self._backlog.is_full()
                if not full:
                    self.take_calls(spouts)
            wanting = [*here, *(spout for spout in beside if spout.wants_asking)] if beside else here
            for spout in wanting:
                if spout.has_verdicts or spout.may_emit:
                    self._call.enter(spout)
                    spout.deliver()
                    if spout.may_emit:
                        if full is None:
                            full = self._backlog.is_full()
                        if not full:
                            if spout.allowance.is_stopped:
                                spout.allowance.go_on(self._clock())
                            turn_ends = until if alone else min(until, self._clock() + _SLICE_SECONDS)
                            emitted |= spout.ask(_BURST, turn_ends)
            if full:
                for spout in spouts:
                    spout.stopped_by_marks()
            for spout in here:
                self._departures.seal_full(spout)
            self.run_pass(until)
            still, before = still + 1, now
            now = self._clock()
            if now != before:
                still = 0
            self.fire_timers(now)
            if now >= until:
                used_up = True
                break
            if full or self._wiring.fatal is not None:
                break
            # A quick thread may have emitted and ended its turn since it was asked.
            emitted |= any(spout.has_emitted and spout.may_emit for spout in beside)
            idle = not emitted and not any(spout.has_verdicts for spout in spouts)
            waits = self._outside.bolts and (idle or self._outside.wants_answers)
            if idle or waits:
                for spout in spouts:
                    spout.pause_at_max_pending(now)  # the waits below may be long
            if waits and self._wait_outside(until):
                continue
            if idle and not self._waits_for_executors(spouts, until):
                break
        now = self._clock()
        for spout in spouts:
            spout.end_asking(now)
        self._call.enter(None)
        return used_up

    def _wait_outside(self, until: float) -> bool:
        """Wait for answers from outside with patience, unless a stop or a kill waits for no call any longer."""
        return not self._executors.is_late() and self._outside.wait_with_patience(until)

    def _waits_for_executors(self, spouts: Sequence[SpoutTask], until: float) -> bool:
        """Wait a moment for executors that are at work, because spouts may emit more afterwards. Return false if no executor is
        at work, or if the time is up.
        """
        executors = self._executors
        if not executors.tasks:
            return False
        if self._departures.lanes:
            # The other workers wait for the tuples of this superstep. So this worker waits only for executors that will soon
            # add tuples, and not for a call that takes long.
            verdicts = executors.may_note_soon and any(spout.waits_for_verdicts for spout in spouts)
            return (verdicts or executors.spouts_began()) and executors.wait_with_patience(until)
        if not (executors.left or executors.spouts_began()):
            return False
        executors.wait(until)
        return self._clock() < until

    def deliver_verdicts(self) -> None:
        """Deliver verdicts to all spouts."""
        for spout in self._spouts:
            if spout.has_verdicts:
                self._call.enter(spout)
                spout.deliver()
        self._call.enter(None)

    # -- bolts -----------------------------------------------------------------------------------------------

    def work(self, deadline: float, loops_until: float) -> None:
        """Run bolts until no tuple waits in this worker or is processed outside of it. The first pass ends at ``deadline`` at the
        latest, and all further passes at ``loops_until``.

        One pass is enough for all tuples that go forward. Tuples that go around a loop of the topology need more passes, perhaps
        for ever (A15). Those that are left at ``loops_until`` wait for the next superstep.
        """
        late, still, now = self.run_pass(deadline), 0, self._clock()
        self._executors.begin_to_wait()
        self._outside.begin_to_wait()
        while not late and still < _MOST_PASSES:
            if (
                not any(bolt.ready and bolt.fatal is None for bolt in self._bolts)
                and not (self._services.guarded and self.calls_at_hand())
                and not (self._outside.bolts and self._wait_outside(loops_until))
                and not (self._expects_notes and self._executors.wait_with_patience(loops_until))
            ):
                break
            late = self.run_pass(loops_until)
            still, before = still + 1, now
            now = self._clock()
            if now != before:
                still = 0
        if self._executors.tasks and self.listens:
            self._executors.take_in()  # emits that executors have noted meanwhile leave with this superstep

    def run_pass(self, deadline: float) -> bool:
        """If the worker `listens`, take in what threads and outside processes have done. Let the bolts execute their waiting
        tuples, those nearest to the spouts first. Then deliver verdicts to spouts.

        Returns true if the deadline cut the pass short.
        """
        if self._services.guarded and self.listens:
            self.take_calls(self._bolts)
        self._refusals.flush()
        self._services.hear_loop()
        if self._outside.bolts and self.listens:
            self._outside.take_in()
        if self._executors.tasks and self.listens:
            self._executors.take_in()
        if self._executors.bolts and self.listens:
            self._executors.wake()
        late = self._one_after_another(deadline) if self.spouts_wait else self._slices(deadline)
        for spout in self._spouts:
            if spout.has_verdicts:
                self._call.enter(spout)
                spout.deliver()
                self._departures.seal_full(spout)
        if self._executors.bolts:
            self._executors.wake()
        self._call.enter(None)  # else a wait that follows would count as time in the code of the last task
        return late

    def _one_after_another(self, deadline: float) -> bool:
        """Let each bolt execute all tuples that wait for it now.

        After a pass that was cut short, the next pass begins with the bolt after the one that had the last turn. Otherwise
        spouts or bolts that use up the time of each superstep would leave the bolts behind them without a turn, for ever.
        """
        for bolt in self._next_pass:
            if bolt.ready and self.execute(bolt, deadline) >= deadline:
                behind = self._bolts.index(bolt) + 1
                self._next_pass = [*self._bolts[behind:], *self._bolts[:behind]]
                return True
        self._next_pass = self._bolts
        return False

    def _slices(self, deadline: float) -> bool:
        """Let each bolt shed tuples that do not fit, and then execute tuples for at most one slice of time.

        If spouts do not wait, a slow bolt may never catch up, and the bolts after it must not starve.
        """
        now = self._clock()
        late = now >= deadline
        for bolt in self._bolts:
            self._shed(bolt)
            if bolt.ready and not late:
                now = max(now, self.execute(bolt, now + _SLICE_SECONDS))
        for bolt in self._bolts:
            self._shed(bolt)
        return now >= deadline

    def execute(self, bolt: BoltTask, until: float) -> float:
        """Execute the tuples that wait for a bolt now, chunk by chunk, until the time ``until``. Return the time when the last
        chunk ended.

        A bolt that emits much has to stop earlier, when too many bytes wait to leave this worker.
        """
        self._call.enter(bolt)
        waiting, now = bolt.ready, -inf
        while waiting > 0 and bolt.fatal is None:
            self._services.executing = bolt
            done = bolt.run()
            self._services.executing = None
            if not done:
                break
            waiting -= done
            if self._services.guarded and self.listens:
                # The bolt's threads wait while its mailbox is full, and the bolt may wait for them.
                self.take_calls([bolt])
            self._departures.seal_full(bolt)
            now = self._clock()
            self._call.returned(bolt, now)
            if now >= until:
                break
            if self._departures.sealed_bytes > self._most_leaving and until < inf:
                return max(now, until)  # the emitted tuples have to leave first
        return now

    def _shed(self, bolt: BoltTask) -> None:
        """Drop or fail a bolt's tuples above its high marks (X51)."""
        assert bolt.shedding is not None
        excess = bolt.shedding.excess()
        if excess:
            self._call.enter(bolt)
            bolt.shedding.shed(excess, self._clock())

    def end_batch(self, bolt: BoltTask) -> None:
        """End the batch for this bolt, and carry the tuples that it emits now as far as they go."""
        self._call.enter(bolt)
        self._services.executing = bolt
        bolt.end_batch()
        self._services.executing = None
        self._departures.seal_full()
        self.run_pass(inf)
        self.finish_outside()

    def finish_outside(self) -> None:
        """Wait until no bolt has tuples outside of the worker, and until the calls on executors' threads have returned or are
        given up. Only then may bolts hear that the batch is over.
        """
        while self._outside.wait(inf) and not self._give_up_outside():
            self.run_pass(inf)
        while self._awaits_executors and not self._executors.give_up_calls():
            self._executors.wait(inf)
            self.run_pass(inf)

    @property
    def _expects_notes(self) -> bool:
        """Whether the worker takes in notes now, and executors on threads will probably note something soon."""
        return self.listens and self._executors.may_note_soon

    @property
    def _awaits_executors(self) -> bool:
        """Whether the worker takes in notes now, and executors on threads have something to do or have noted something."""
        return self.listens and self._executors.left

    # -- backlog --------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many tuples and rows are in inboxes, in lanes, in frames that wait to leave, in progress outside of the worker, or
        at executors on threads.
        """
        return self._backlog.waiting + self._outside.at_work + self._executors.at_work

    @property
    def calls(self) -> int:
        """How many calls on threads of executors have to return before the batch can end."""
        return self._executors.at_work + sum(spout.must_finish for spout in self._executors.spouts)

    def give_up_calls(self) -> None:
        """Abort the batch if the topology stops and calls take too long to return; see `Executors.give_up_calls`."""
        self._executors.give_up_calls()
        self._give_up_outside()

    def _give_up_outside(self) -> bool:
        """Do the same for calls of async bolts, and for tuples in other processes. Return whether the batch was aborted."""
        if not self._executors.is_late():
            return False
        late = [bolt for bolt in self._outside.bolts if bolt.outside and bolt.fatal is None]
        for bolt in late:
            instance = bolt.instance
            call = instance.awaiting() if isinstance(instance, AsyncExecutor) else None
            oldest = "" if call is None else f"; {call.code} has been under way for {call.seconds:.0f} s"
            bolt.abort(f"{bolt.outside} of its calls have not returned, and the topology stops{oldest}")
        self._executors.gave_up_batch |= bool(late)
        return bool(late)

    @property
    def left(self) -> int:
        """How many tuples, rows of record batches and calls of threads have to be processed before the batch ends."""
        return self.waiting + self.calls_at_hand()

    # -- threads and timers ----------------------------------------------------------------------------------

    def take_calls(self, tasks: Iterable[Task]) -> None:
        """Carry out emits, acks and fails that threads of user code have made: all of them, or only those of the current tuple
        (`takes_calls`).
        """
        for task in tasks:
            most = len(task.mailbox) if self.takes_calls else task.mailbox.at_hand
            if most and task.fatal is None:
                self._call.enter(task)
                task.take_calls(most)
                self._departures.seal_full(task)

    def calls_at_hand(self) -> int:
        """Return how many calls of threads belong to the current batch, because they were made while its tuples were executed."""
        if not self.listens:  # all calls wait for the next batch
            return 0
        return sum(bolt.mailbox.at_hand for bolt in self._bolts if bolt.fatal is None)

    def has_calls(self) -> bool:
        """Return whether a call of a thread of user code waits to be carried out."""
        return self._services.guarded and any(len(task.mailbox) for task in self._tasks.values())

    def fire_timers(self, now: float) -> None:
        """Call the timers that are due: ticks, windows, metrics, users' own timers."""
        if now < self._timers.next_due or not self.timers_run:
            return
        for task, callback in self._timers.take_due(now):
            if task.fatal is not None:
                continue
            self._call.enter(task)
            self._services.executing = task
            try:
                callback()
            except ERRORS_OF_CODE as error:
                task.raised("a timer's callback", error)
            self._services.executing = None
            self._departures.seal_full(task)
        self._call.enter(None)
