"""Who runs when, within a worker: spouts are asked in bursts, bolts execute in passes, timers and threads come in between.

All of it happens on one thread. A *pass* walks over the bolts, senders before receivers, and each executes what waits for it in
chunks. One pass carries every tuple to the end of an acyclic topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from stormspark.worker.backlog import Backlog
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.departures import Departures
from stormspark.worker.outside import OutsideWork
from stormspark.worker.refusals import Refusals
from stormspark.worker.services import TaskServices
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.task import Task
from stormspark.worker.wiring import Wiring

__all__ = ["Turns"]

#: Calls of ``next_tuple`` between two looks at the bolts: few enough to stay in the caches, enough for the loop to cost little.
_BURST = 64
#: A clock that tests drive stands still during a batch: then it ends after this many bursts, or passes over the bolts.
_MOST_BURSTS = 1000
_MOST_PASSES = 1000
#: How long one bolt executes while others wait, where none may hold the others up.
_SLICE_SECONDS = 0.01


class Turns:
    """Of one worker. Deadlines are on the clock of ``services``.

    ``sheds``: bolts drop or fail what does not fit, and take turns of time. ``most_leaving``: bytes in sealed frames at which
    bolts wait for the next superstep.
    """

    def __init__(
        self,
        wiring: Wiring,
        services: TaskServices,
        call: CurrentCall,
        departures: Departures,
        backlog: Backlog,
        outside: OutsideWork,
        refusals: Refusals,
        *,
        sheds: bool,
        most_leaving: float,
    ) -> None:
        self._tasks, self._spouts, self._bolts = wiring.tasks, wiring.spouts, wiring.bolts
        self._wiring, self._services, self._call = wiring, services, call
        self._departures, self._backlog = departures, backlog
        self._outside, self._refusals = outside, refusals
        self._clock, self._timers = services.clock, services.timers
        self._most_leaving = most_leaving
        #: Whether spouts wait for slow bolts; if not, bolts shed what does not fit.
        self.spouts_wait = not sheds
        #: Whether answers from outside, and calls of users' threads, are taken in now; of the calls, whether all are, or only
        #: those that a bolt's threads made while it was in ``execute``.
        self.listens = self.takes_calls = True
        #: Whether timers may go off: not in a round that ends a batch, since what they emit would come to bolts that have heard
        #: that everything has come.
        self.timers_run = True

    # -- spouts ----------------------------------------------------------------------------------------------

    def ask_spouts(self, until: float, spouts: Sequence[SpoutTask]) -> bool:
        """Ask spouts, in turn with the bolts, until they have nothing, too much waits, or it is ``until``; true for the last."""
        still, now, used_up = 0, self._clock(), False
        while still < _MOST_BURSTS:
            emitted, full = False, self._backlog.is_full()
            if self._services.guarded and self.takes_calls and not full:
                self.take_calls(spouts)
            for spout in spouts:
                if spout.has_news or spout.may_emit:
                    self._call.enter(spout)
                    spout.deliver()
                    if spout.may_emit and not full:
                        emitted |= spout.ask(_BURST, until)
            if full:
                for spout in spouts:
                    spout.stopped_by_marks()
            for spout in spouts:
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
            idle = not emitted and not any(spout.has_news for spout in spouts)
            waits = self._outside.bolts and (idle or self._outside.wants_answers)
            if waits and self._outside.wait(until):
                continue
            if idle:
                break
        now = self._clock()
        for spout in spouts:
            spout.end_asking(now)
        self._call.enter(None)
        return used_up

    def deliver_verdicts(self) -> None:
        """Let spouts hear how trees have ended."""
        for spout in self._spouts:
            if spout.has_news:
                self._call.enter(spout)
                spout.deliver()
        self._call.enter(None)

    # -- bolts -----------------------------------------------------------------------------------------------

    def work(self, deadline: float, loops_until: float) -> None:
        """Run bolts until every inbox is empty, at the latest until ``deadline``.

        One pass is enough for everything that goes forward. Tuples that go round in a loop of the topology take more, and may do
        so for ever (A15): after ``loops_until`` they wait for the next superstep.
        """
        late, still, now = self.run_pass(deadline), 0, self._clock()
        while not late and still < _MOST_PASSES:
            if (
                not any(bolt.ready and bolt.fatal is None for bolt in self._bolts)
                and not (self._services.guarded and self.calls_at_hand())
                and not (self._outside.bolts and self._outside.wait(loops_until))
            ):
                break
            late = self.run_pass(loops_until)
            still, before = still + 1, now
            now = self._clock()
            if now != before:
                still = 0

    def run_pass(self, deadline: float) -> bool:
        """Have each bolt, those nearest to the spouts first, execute what waits for it now; true if the deadline cut it short.

        Then let spouts hear how trees have ended.
        """
        if self._services.guarded and self.listens:
            self.take_calls(self._bolts)
        self._refusals.flush()
        if self._outside.bolts and self.listens:
            self._outside.take_in()
        late = self._one_after_another(deadline) if self.spouts_wait else self._slices(deadline)
        for spout in self._spouts:
            if spout.has_news:
                self._call.enter(spout)
                spout.deliver()
                self._departures.seal_full(spout)
        return late

    def _one_after_another(self, deadline: float) -> bool:
        """Each bolt executes everything that waits for it now."""
        return any(bolt.ready and self._execute(bolt, deadline) >= deadline for bolt in self._bolts)

    def _slices(self, deadline: float) -> bool:
        """Each bolt sheds what does not fit, then executes for a slice of time at most.

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

        What leaves this worker cuts a bolt short that makes much of little, as time does.
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
                # Its threads wait where too many calls do, and it may wait for them.
                self.take_calls([bolt])
            self._departures.seal_full(bolt)
            now = self._clock()
            self._call.returned(bolt, now)
            if now >= until:
                break
            if self._departures.sealed_bytes > self._most_leaving and until < inf:
                return max(now, until)  # as late as at the deadline: what has been emitted has to leave first
        return now

    def _shed(self, bolt: BoltTask) -> None:
        """Drop or fail what does not fit below its marks (X51)."""
        assert bolt.shedding is not None
        excess = bolt.shedding.excess()
        if excess:
            self._call.enter(bolt)
            bolt.shedding.shed(excess, self._clock())

    def end_batch(self, bolt: BoltTask) -> None:
        """The batch is over for this bolt, and everything that comes of that is carried to its end."""
        self._call.enter(bolt)
        self._services.executing = bolt
        bolt.end_batch()
        self._services.executing = None
        self._departures.seal_full()
        self.run_pass(inf)
        self.finish_outside()

    def finish_outside(self) -> None:
        """Wait for everything that is at work outside: a batch must not end anywhere before that has come."""
        while self._outside.wait(inf):
            self.run_pass(inf)

    # -- what waits ------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Tuples and rows in inboxes, lanes and sealed frames, and those that bolts have at work outside."""
        return self._backlog.waiting + self._outside.at_work

    @property
    def left(self) -> int:
        """What has to be done before the batch ends, but for rows of sources: what waits, and calls of threads."""
        return self.waiting + self.calls_at_hand()

    # -- what comes in between -------------------------------------------------------------------------------

    def take_calls(self, tasks: Iterable[Task]) -> None:
        """Do what threads of user code have emitted, acked and failed, as far as it belongs to the batch."""
        for task in tasks:
            most = len(task.mailbox) if self.takes_calls else task.mailbox.at_hand
            if most and task.fatal is None:
                self._call.enter(task)
                task.take_calls(most)
                self._departures.seal_full(task)

    def calls_at_hand(self) -> int:
        """Calls of threads that belong to the batch that runs, as the tuples do that were executed meanwhile."""
        if not self.listens:  # what comes now is for the next batch, whatever was at hand when it was called
            return 0
        return sum(bolt.mailbox.at_hand for bolt in self._bolts if bolt.fatal is None)

    def has_calls(self) -> bool:
        """Whether a thread of user code has called anything that is not done yet."""
        return self._services.guarded and any(len(task.mailbox) for task in self._tasks.values())

    def fire_timers(self, now: float) -> None:
        """Call what is due: ticks, windows, metrics, users' own timers."""
        if now < self._timers.next_due or not self.timers_run:
            return
        for task, callback in self._timers.take_due(now):
            if task.fatal is not None:
                continue
            self._call.enter(task)
            self._services.executing = task
            try:
                callback()
            except Exception as error:
                task.raised("a timer's callback", error)
            self._services.executing = None
            self._departures.seal_full(task)
        self._call.enter(None)
