"""All executors of a worker that have threads of their own, as the worker's thread sees them."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from threading import get_ident
from typing import TYPE_CHECKING

from stormspark.worker.busy import Busy
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.departures import Departures
from stormspark.worker.executors.bell import Bell
from stormspark.worker.executors.bolt_task import ThreadedBoltTask
from stormspark.worker.executors.notes import Notes
from stormspark.worker.executors.spout_task import ThreadedSpoutTask
from stormspark.worker.executors.switching import switch_interval
from stormspark.worker.executors.thread import STOP_SECS, ExecutorThread

if TYPE_CHECKING:
    from stormspark.worker.executors.task import ThreadedTask
    from stormspark.worker.spout_task import SpoutTask
    from stormspark.worker.task import Task

__all__ = ["Executors"]

#: The worker's thread waits for notes for at most this long at a time. Then it looks at its own work again.
_WAIT_SECONDS = 0.002
#: The worker's thread takes the waiting notes at most once in this many seconds. Otherwise it would take them one by one when
#: many executors are busy. Each time it also looks at all queues, which costs as much as several calls.
_GATHER_SECS = 0.0005
#: For how long a superstep waits for the next note. A call that has noted nothing for this long is not waited for. The time is
#: short, because a worker that waits for calls holds up the other workers.
_PATIENCE_SECS = 0.005


class Executors:
    """The executors of one worker that have threads. The worker's thread calls the methods, unless a docstring says otherwise."""

    def __init__(self, clock: Callable[[], float], call: CurrentCall) -> None:
        self._clock, self._call = clock, call
        self.tasks: list[ThreadedTask] = []
        self.bolts: list[ThreadedBoltTask] = []
        self.spouts: list[ThreadedSpoutTask] = []
        self._by_name: dict[str, ThreadedTask] = {}
        self.threads: dict[tuple[str, int], ExecutorThread] = {}
        #: The tasks whose instances have noted something, each with its notes.
        self._noted: deque[tuple[ThreadedTask, Notes]] = deque()
        #: The notes of spouts that may not emit now. They are taken later.
        self._later: list[tuple[ThreadedTask, Notes]] = []
        self._last_taken = self._began_to_wait = 0.0
        self._bell: Bell | None = None
        self._has_ended = False
        #: `_stops_since`: when the topology was told to stop. `_works_off_until`: until when bolts begin calls for tuples that
        #: wait. `_waits_until`: when a round stops waiting for calls.
        self._stops_since = self._works_off_until = self._waits_until = inf
        #: Whether the topology stops, and works off the tuples that wait.
        self.works_off = False
        #: Whether the topology is killed, so that nobody waits for calls any longer.
        self.is_cut_off = False
        #: Whether a batch was aborted because a call had not returned by `_waits_until`.
        self.gave_up_batch = False
        self._departures: Departures

    def add(self, tasks: Iterable[Task], departures: Departures) -> None:
        """Give the executors of these tasks their threads."""
        from stormspark.worker.executors.task import ThreadedTask  # a cyclic import

        self._departures = departures
        for task in tasks:
            if not isinstance(task, ThreadedTask):
                continue
            if self._bell is None:
                self._bell = Bell()
                switch_interval.shorten()
            key = task.component.id, task.executor_number
            if key not in self.threads:
                self.threads[key] = ExecutorThread(
                    f"{task.component.id}:{task.executor_number}",
                    clock=self._clock,
                    ring=self._bell.ring,
                    serve=self._serve,
                    is_late=self.is_late,
                    enter=self._call.enter_on_thread,
                )
            task.begin_threaded(self.threads[key], self)
            self.tasks.append(task)
        self.bolts = [task for task in self.tasks if isinstance(task, ThreadedBoltTask)]
        self.spouts = [task for task in self.tasks if isinstance(task, ThreadedSpoutTask)]
        self._by_name = {task.name: task for task in self.tasks}
        side_by_side = Counter(component for component, _ in self.threads)
        for bolt in self.bolts:
            bolt.side_by_side = side_by_side[bolt.component.id]

    @property
    def is_workers_thread(self) -> bool:
        """Whether the calling thread is the worker's. Any thread may read this."""
        return get_ident() == self._call.thread

    # -- notes -------------------------------------------------------------------------------------------------

    def new_notes(self, task: ThreadedTask) -> Notes:
        """Make the notes of a new instance of a task."""
        return Notes(task.name, partial(self._announce, task))

    def _announce(self, task: ThreadedTask, notes: Notes) -> None:
        """Remember that ``notes`` of this task wait. Any thread may call this."""
        self._noted.append((task, notes))
        assert self._bell is not None
        self._bell.ring()

    def take_in(self) -> bool:
        """Carry out the notes that wait. Return whether there was a note."""
        assert self._bell is not None
        self._bell.quiet()
        noted = self._noted
        if not noted:
            return False
        for _ in range(len(noted)):
            self._take(*noted.popleft())
        self._call.enter(None)
        self._last_taken = self._clock()
        return True

    def _take(self, task: ThreadedTask, notes: Notes) -> None:
        if notes is not task.notes:  # its instance has ended
            return
        if isinstance(task, ThreadedSpoutTask) and not (task.is_asked or task.is_starting):
            self._later.append((task, notes))
            return
        self._call.enter(task)
        task.executor.heard_at = self._clock()
        task.take_notes(notes)
        self._departures.seal_full(task)

    def let_emit(self, spouts: Sequence[SpoutTask], *, begin_turns: bool) -> None:
        """From now on, carry out the emits of these spouts, and of no others. If ``begin_turns``, these spouts may also begin
        new turns.
        """
        for spout in self.spouts:
            spout.is_asked, spout.may_begin_turns = spout in spouts, begin_turns
        later, self._later = self._later, []
        self._noted.extend(later)

    def wake(self) -> None:
        """Let the threads of bolts look for tuples."""
        for bolt in self.bolts:  # this is called often, and most threads are awake
            # A thread that is in a call looks for tuples when the call has returned.
            executor = bolt.executor
            if executor.at is None and executor.may_sleep and bolt.queue.waiting:
                executor.wake()

    def _serve(self, executor: ExecutorThread) -> None:
        """Wait a moment and take the notes of this executor's tasks, because the worker's thread waits for a call of this
        executor. If a spout may not emit now, its questions are answered nevertheless, because the call waits for the answers.
        """
        assert self._bell is not None
        self._bell.wait(_WAIT_SECONDS)
        self._bell.quiet()
        for _ in range(len(self._noted)):
            task, notes = self._noted.popleft()
            if task.executor is executor:
                self._take(task, notes)
            else:
                self._noted.append((task, notes))
        for task, notes in self._later:
            if task.executor is executor and notes is task.notes:
                notes.answer_questions()

    # -- waiting ---------------------------------------------------------------------------------------------------

    @property
    def at_work(self) -> int:
        """How many calls of bolts are due or under way, plus the notes that wait to be taken."""
        return sum(bolt.calls_under_way for bolt in self.bolts if bolt.fatal is None)

    @property
    def left(self) -> bool:
        """Whether a bolt on a thread has calls to make, calls that are under way, or notes that were not taken yet."""
        return any(bolt.has_work for bolt in self.bolts if bolt.fatal is None)

    @property
    def may_note_soon(self) -> bool:
        """Whether the worker should wait for notes of bolts. It should if notes wait already, or if something is `left` at a bolt
        whose call has not taken long.

        A call that takes long goes on while later supersteps run, and one of these takes its notes. If supersteps waited for such
        a call, a call that never returns would hold up every superstep, and so all workers. But a transaction has to wait for all
        its calls, even long ones.
        """
        return any(
            len(bolt.notes)
            or (bolt.has_work and (bolt.in_transactions or not bolt.executor.is_silent_for(_PATIENCE_SECS)))
            for bolt in self.bolts
            if bolt.fatal is None
        )

    def has_notes(self) -> bool:
        """Return whether a note waits to be taken."""
        return bool(self._noted) or bool(self._later)

    @property
    def noted_by_spouts(self) -> int:
        """How many notes of spouts wait to be taken."""
        return sum(len(spout.notes) for spout in self.spouts)

    @property
    def spouts_to_come(self) -> int:
        """How many spouts are expected to emit soon. If there is one, the topology is not idle, even if nothing waits."""
        return sum(spout.may_emit_soon and spout.is_wanted for spout in self.spouts)

    @property
    def spouts_go_on(self) -> bool:
        """Whether a call of a spout is under way that may still emit. A call of ``next_tuple`` that has lasted for `STOP_SECS`
        does not count: a spout may wait there for ever. Nor does one that waits in an emit, if nothing is worked off.
        """
        return (self.works_off or not self.is_told_to_stop) and any(
            len(spout.notes) or (spout.is_under_way and not (spout.is_starting or spout.may_wait_for_ever))
            for spout in self.spouts
            if spout.fatal is None
        )

    def spouts_began(self) -> bool:
        """Return whether tuples may come soon, because a spout has just begun its turn or has to finish its turn before the
        batch ends.
        """
        soon = self._clock() - _PATIENCE_SECS
        return any(spout.began_a_turn_after(soon) or spout.must_finish for spout in self.spouts)

    def wait_with_patience(self, until: float) -> bool:
        """Wait as `wait` does, but give up if no note has come for a while. Tuples of later notes leave with a later
        superstep.
        """
        return self.wait(min(until, max(self._last_taken, self._began_to_wait) + _PATIENCE_SECS))

    def begin_to_wait(self) -> None:
        """Begin to wait. `wait_with_patience` counts its patience from this call."""
        self._began_to_wait = self._clock()

    def wait(self, until: float) -> bool:
        """Wait for a note, for at most `_WAIT_SECONDS`. Return false if the time ``until`` has come already."""
        assert self._bell is not None
        now = self._clock()
        seconds = min(_WAIT_SECONDS, until - now)
        if seconds <= 0:
            return False
        gathering = self._last_taken + _GATHER_SECS - now
        if gathering > 0:
            time.sleep(min(gathering, seconds))
        elif not self._noted:
            self._bell.wait(seconds)
        return True

    # -- life ------------------------------------------------------------------------------------------------------

    def wait_for_starts(self, tasks: Sequence[ThreadedTask]) -> None:
        """Wait until all these tasks have begun. Raise the `ComponentError` of the first task that can't begin."""
        while any(task.is_starting for task in tasks):
            self._call.enter(next(task for task in tasks if task.is_starting))
            self.wait(inf)
            self.take_in()
            self._raise_failed(tasks)
        self._raise_failed(tasks)

    def _raise_failed(self, tasks: Sequence[ThreadedTask]) -> None:
        for task in tasks:
            if task.start_error is not None:
                raise task.start_error

    def limit_waiting(self, *, works_off: bool) -> None:
        """Let rounds wait for calls for at most `STOP_SECS` from now on, because the topology stops. ``works_off`` says that
        tuples that wait are worked off, too.

        Any thread may call this method, and only the first call counts.
        """
        if not self.is_told_to_stop:
            self.works_off = works_off
            self._stops_since = now = time.monotonic()
            self._works_off_until = self._waits_until = now + STOP_SECS

    @property
    def is_told_to_stop(self) -> bool:
        """Whether the topology was told to stop."""
        return self._stops_since < inf

    @property
    def has_worked_off(self) -> bool:
        """Whether tuples that wait have had `STOP_SECS` since the topology was told to stop."""
        return self.is_cut_off or time.monotonic() >= self._works_off_until

    def wait_for_last_calls(self) -> None:
        """Let rounds wait for `STOP_SECS` more, because calls have ended since the topology was told to stop. So those that began
        last may end soon, too. No further call begins after `has_worked_off`.
        """
        self._waits_until = min(time.monotonic(), self._works_off_until) + STOP_SECS

    def cut_off(self) -> None:
        """Wait for no call any longer, because the topology is killed. Any thread may call this method."""
        self.limit_waiting(works_off=False)
        self.is_cut_off = True

    def is_late(self) -> bool:
        """Return whether the topology stops and its last batch may not wait for calls any longer."""
        return self.is_cut_off or time.monotonic() >= self._waits_until

    @property
    def waited_secs(self) -> float:
        """For how many seconds the topology has been stopping."""
        return max(0.0, time.monotonic() - self._stops_since)

    def give_up_calls(self) -> bool:
        """If `is_late` and tasks still have calls to make or to end, abort the batch, which a later start repeats.

        Return whether the batch was aborted.
        """
        if not self.is_late():
            return False
        tasks: list[ThreadedTask] = [bolt for bolt in self.bolts if bolt.fatal is None and bolt.has_work]
        tasks += [spout for spout in self.spouts if spout.must_finish]
        waited = self.waited_secs
        for task in tasks:
            task.give_up_call(waited)
        self.gave_up_batch |= bool(tasks)
        return bool(tasks)

    def finish(self) -> None:
        """Wait until the calls that are under way have returned, and then the last calls of all tasks: at most `STOP_SECS` in
        all. No turn begins any more.

        All executors make their last calls side by side, so one that does not return keeps no other from them. An executor whose
        call was given up with the last batch gets none, and neither does one that is still in a call for which the last rounds
        have waited in vain. Nobody waits for the start of an instance. If it ends while others are waited for, the instance gets
        its last calls, and else none.
        """
        if self.is_late():
            for task in self.tasks:
                task.executor.gave_up |= task.executor.is_in_call_for(self.waited_secs)
        self._waits_until = inf  # this method has a limit of its own
        self.let_emit(self.spouts, begin_turns=False)  # else a thread could wait for ever to add a note
        for task in self.tasks:
            task.is_stopping = True
        for spout in self.spouts:
            spout.unwind()
        deadline = time.monotonic() + STOP_SECS
        left = [task for task in self.tasks if task.executor.has_started and not task.executor.gave_up]
        waiting = left
        if left:
            self.take_in()  # a start may have ended
        while (
            not all(task.is_starting for task in left) and not self.is_cut_off and time.monotonic() < deadline
        ):
            begun, waiting = waiting, [task for task in waiting if task.hears_verdicts or task.is_starting]
            for task in begun:
                if task not in waiting:
                    task.begin_to_stop()
            self.wait(inf)
            left = [task for task in left if not task.has_stopped]
            self.take_in()  # take the notes of all executors, because any thread may wait for room for its notes
        for task in left:
            task.executor.gave_up = True

    def end(self) -> None:
        """End all threads, without waiting for the calls that run."""
        if self.threads and not self._has_ended:
            switch_interval.restore()
        self._has_ended = True
        for task in self.tasks:
            task.end_thread_work()
        for thread in self.threads.values():
            thread.end()
        # A call that still runs may be about to ring. In that case the bell is closed once nothing refers to it.
        if self._bell is not None and all(thread.is_idle for thread in self.threads.values()):
            self._bell.close()

    def calls(self, least: float = 0.0) -> list[tuple[int, Busy]]:
        """Return the calls that have been under way for ``least`` seconds, each with the id of its thread. Another thread calls
        this.
        """
        now = self._clock()
        at_work = [(thread.ident, at) for thread in self.threads.values() if (at := thread.at) is not None]
        return [(ident, self._busy_of(*at, now)) for ident, at in at_work if now - at[1] >= least]

    def _busy_of(self, name: str, since: float, now: float) -> Busy:
        task = self._by_name[name]
        begins_since = task.begins_since  # the worker's thread may change it meanwhile
        opens = begins_since is not None and begins_since <= since
        if isinstance(task, ThreadedSpoutTask):
            alone = not (task.waits_for_commit and task.state is not None)
            return Busy(name, now - since, opens, alone, of_spout=True)
        holds_up_one = isinstance(task, ThreadedBoltTask) and not task.in_transactions
        # There may be a time limit for ``prepare``, even when a task begins anew.
        alone = holds_up_one and not opens
        starts_again = holds_up_one and opens and not self._call.opening
        return Busy(name, now - since, opens, alone, starts_again=starts_again)
