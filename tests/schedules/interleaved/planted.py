"""Races, planted on purpose: a search that does not find them would not find their like.

The first ones are what the writer of such code may well get wrong. The others were in this tree, and the search has found them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from stormspark.api.tuple_state import HELD, OPEN, SETTLED
from stormspark.worker.executors.bolt_runner import ThreadedRunner
from stormspark.worker.executors.bolt_task import ThreadedBoltTask
from stormspark.worker.executors.notes import Notes
from stormspark.worker.executors.queue import SharedQueue
from stormspark.worker.executors.spout_task import ThreadedSpoutTask
from stormspark.worker.executors.task import ThreadedTask
from stormspark.worker.executors.thread import ExecutorThread
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.task import Task

__all__ = ["PLANTED", "RARE", "planted"]


@contextmanager
def _under_way_late() -> Iterator[None]:
    """A tuple waits no more, and is executed a moment later."""
    whole = SharedQueue.next

    def next_tuple(self: SharedQueue, begin: Any) -> Any:
        taken = whole(self, begin)
        if taken is not None:
            self.is_executed = False
            self.is_executed = True
        return taken

    with patch.object(SharedQueue, "next", next_tuple):
        yield


def _announced_late() -> Any:
    """Whoever adds a note while the last ones are read takes it for announced."""

    def take(self: Notes) -> int:
        taken = 0
        while self._notes:
            self._notes.popleft()()
            taken += 1
        if not self._room.is_set():
            self._room.set()
        self._announced = False
        return taken

    return patch.object(Notes, "take", take)


def _inbox_is_cleared() -> Any:
    """Whatever a sender appends after the copy is gone."""

    def all_of_inbox(self: SharedQueue) -> list[Any]:
        taken = self.inbox[:]
        self.inbox.clear()
        return taken

    return patch.object(SharedQueue, "_all_of_inbox", all_of_inbox)


def _read_in_the_wrong_order() -> Any:
    """A call that is noted between the two looks is seen by neither."""

    def calls_under_way(self: ThreadedBoltTask) -> int:
        return len(self.notes) + self.is_starting + self.notes.calls_due + self.queue.is_executed

    return patch.object(ThreadedBoltTask, "calls_under_way", property(calls_under_way))


@contextmanager
def _ended_notes_count() -> Iterator[None]:
    """Notes of an instance that has ended are carried out."""

    def end(self: Notes) -> None:
        self.ended = True
        self._room.set()

    def take_notes(self: ThreadedTask, notes: Notes) -> None:
        try:
            notes.take()
        except Exception as error:
            self.raised("emit", error)
            self._go_on()

    with (
        patch.object(Notes, "end", end),
        patch.object(ThreadedTask, "take_notes", take_notes),
    ):
        yield


@contextmanager
def _wakes_by_a_stale_flag() -> Iterator[None]:
    """A thread that is about to sleep is taken for awake."""
    sleeping: dict[ExecutorThread, bool] = {}
    wakes = ExecutorThread.wake

    def wake(self: ExecutorThread) -> None:
        if sleeping.get(self, True):
            wakes(self)

    def run(self: ExecutorThread) -> None:
        while not self._ends:
            sleeping[self] = True
            self._sleep.acquire()
            sleeping[self] = False
            while not self._ends and self._do_one_thing():
                pass

    with patch.object(ExecutorThread, "wake", wake), patch.object(ExecutorThread, "_run", run):
        yield


@contextmanager
def _verdicts_at_once() -> Iterator[None]:
    """The worker's thread calls ack and fail, whatever the spout does."""

    def deliver(self: ThreadedSpoutTask) -> None:
        for message_id, verdict, _ in self._delivery.count(self.verdicts.take()):
            self._tell(self.spout, message_id, verdict)

    with patch.object(ThreadedSpoutTask, "deliver", deliver):
        yield


@contextmanager
def _questions_stay() -> Iterator[None]:
    """A question that comes while its instance ends is never answered."""
    whole = Notes._refuse_questions

    def add(self: Notes, note: Any) -> None:
        if self.ended:
            raise self._ended_error()
        self._notes.append(note)
        if not self._announced:
            self._announced = True
            self._announce(self)

    with patch.object(Notes, "add", add), patch.object(Notes, "_refuse_questions", whole):
        yield


def _room_is_missed() -> Any:
    """Room that is made between the look and the wait is waited for."""

    def add(self: Notes, note: Any) -> None:
        while len(self._notes) >= _most() and not self.ended:
            self._room.clear()
            self._room.wait()
        if self.ended:
            raise self._ended_error()
        self._notes.append(note)
        if not self._announced:
            self._announced = True
            self._announce(self)
        if self.ended:
            self._refuse_questions()

    return patch.object(Notes, "add", add)


def _most() -> int:
    from stormspark.worker.executors import notes

    return notes._MOST


def _nobody_is_unwound() -> Any:
    """A call that waits for permission to emit is not told that its instance ends."""

    def unwind(self: ThreadedSpoutTask) -> None:
        self._unwinds = True

    return patch.object(ThreadedSpoutTask, "unwind", unwind)


def _pending_without_noted() -> Any:
    """What is noted is not open yet."""
    return patch.object(ThreadedSpoutTask, "pending_and_noted", property(lambda self: self.account.pending))


def _pending_without_unheard() -> Any:
    """A message is not pending any more although the spout has yet to hear its verdict."""
    pending = property(lambda self: self.account.pending + self._trees_noted)
    return patch.object(ThreadedSpoutTask, "pending_and_noted", pending)


def _not_told_after_the_start() -> Any:
    """Whether the spout is to be active has changed while its instance was started, and nobody tells it."""
    return patch.object(ThreadedSpoutTask, "_call_first", ThreadedSpoutTask._has_stirred)


def _taken_are_lost() -> Any:
    """A restart fails only what the worker's thread knows the bolt to hold."""
    return patch.object(ThreadedBoltTask, "held", lambda self: self._runner.held())


def _rolled_back_calls_count() -> Any:
    """What calls of an attempt have noted is carried out while the attempt is rolled back."""
    return patch.object(ThreadedTask, "take_back", Task.take_back)


def _taken_of_the_next() -> Any:
    """Emits of an instance that an error has ended are subtracted from those of the next one."""

    def take_notes(self: ThreadedSpoutTask, notes: Notes) -> None:
        if notes is not self.notes:
            return
        collector = self._collector
        self.calls.stamp_emits()
        before = collector.emitted
        ThreadedTask.take_notes(self, notes)
        emitted = collector.emitted - before
        self._taken += emitted
        self._emitted += emitted
        self.allowance.use(emitted)

    return patch.object(ThreadedSpoutTask, "take_notes", take_notes)


def _turns_before_activation() -> Any:
    """A turn is taken although the activation has only been submitted."""

    class Always:
        def __get__(self, task: Any, owner: Any = None) -> bool:
            return True

        def __set__(self, task: Any, value: Any) -> None:
            pass

    return patch.object(ThreadedSpoutTask, "_was_activated", Always(), create=True)


def _timers_stay_due() -> Any:
    """A timer's call that an instance does not outlive is under way for ever."""

    def end_previous(self: ThreadedTask) -> None:
        due = self.notes.calls_due
        self.notes.end()
        self.notes = self.executors.new_notes(self)
        self.notes.calls_due = due
        super(ThreadedTask, self)._end_previous()

    return patch.object(ThreadedTask, "_end_previous", end_previous)


def _errors_of_the_next() -> Any:
    """What an ended instance reports is told as an error of the next one."""

    def report_error_of(self: ThreadedTask, notes: Notes, error: Any) -> None:
        if self.executors.is_workers_thread:
            Task.report_error(self, error)
        else:
            self._note(self.notes, partial(Task.report_error, self, error))

    return patch.object(ThreadedTask, "report_error_of", report_error_of)


def _opened_late() -> Any:
    """A spout is activated before it is open."""
    return patch.object(ThreadedSpoutTask, "set_active", SpoutTask.set_active)


def _told_again() -> Any:
    """If an instance ends while it hears of a verdict, it hears of it again."""

    def deliver(self: ThreadedSpoutTask) -> None:
        notes, verdicts = self.notes, self._verdicts
        for _ in range(64):
            if not verdicts:
                break
            message_id, verdict, _ms = verdicts[0]
            try:
                self._tell(self.spout, message_id, verdict)
            except Exception as error:
                self.is_held = True
                self._note(notes, partial(self._raised_on_thread, "ack or fail", error))
                return
            if notes is self.notes:
                verdicts.popleft()

    return patch.object(ThreadedSpoutTask, "_deliver", deliver)


def _turns_go_on() -> Any:
    """Tuples are executed after cleanup, if they still wait."""
    never = property(lambda self: False, lambda self, stops: None)
    return patch.object(ThreadedTask, "is_stopping", never, create=True)


def _acks_overtake_emits() -> Any:
    """The ack of a thread is carried out before an emit that `execute` has noted earlier."""
    return patch.object(Notes, "add_mark", lambda self: None)


@contextmanager
def _held_after_the_call() -> Iterator[None]:
    """A tuple is held once its call has returned, although a thread may have acked it since the look at its state."""

    def call(self: ThreadedRunner, tup: Any) -> None:
        tup.state = OPEN
        self.bolt.execute(tup)
        if tup.roots is not None and tup.state == OPEN:
            self.task.held_weakly[tup] = 0.0
            tup.state = HELD

    with patch.object(ThreadedRunner, "call", call):
        yield


@contextmanager
def _acks_that_wait_are_lost() -> Iterator[None]:
    """A tuple that a thread has acked counts as done before its ack is carried out."""
    whole = ThreadedBoltTask._executed

    def executed(self: ThreadedBoltTask, tup: Any, begun: float, took: float, error: Any) -> None:
        if tup.state == SETTLED:
            self.under_way.pop(tup, None)
        whole(self, tup, begun, took, error)

    with patch.object(ThreadedBoltTask, "_executed", executed):
        yield


#: By name: the family whose search has to find it, and the race.
PLANTED: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "notes are announced late": ("at-least-once", _announced_late),
    "the inbox is cleared after a copy": ("at-least-once", _inbox_is_cleared),
    "a stale flag says awake": ("at-least-once", _wakes_by_a_stale_flag),
    "verdicts come during a call": ("at-least-once", _verdicts_at_once),
    "room for notes is missed": ("at-least-once", _room_is_missed),
    "nobody is unwound": ("at-least-once", _nobody_is_unwound),
    "emits that are noted are not pending": ("at-least-once", _pending_without_noted),
    "verdicts that are not heard are not pending": ("at-least-once", _pending_without_unheard),
    "changes during a start are not told": ("at-least-once", _not_told_after_the_start),
    "calls that are rolled back count": ("exactly-once", _rolled_back_calls_count),
    "turns come before the activation": ("at-least-once", _turns_before_activation),
    "calls of timers stay due": ("at-least-once", _timers_stay_due),
    "turns go on after the last call": ("at-least-once", _turns_go_on),
    "a spout is activated before it is open": ("at-least-once", _opened_late),
    "acks of threads overtake emits": ("at-least-once", _acks_overtake_emits),
    "acks that wait count as done": ("at-least-once", _acks_that_wait_are_lost),
}


#: Those that a search may miss in thousands of runs, because it takes one interruption between two certain lines.
RARE: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "a restart loses what was taken": ("at-least-once", _taken_are_lost),
    "emits count as taken of the next instance": ("at-least-once", _taken_of_the_next),
    "notes of an ended instance count": ("at-least-once", _ended_notes_count),
    "questions of an ended instance stay": ("at-least-once", _questions_stay),
    "a verdict is told again": ("at-least-once", _told_again),
    "a tuple that is taken is under way late": ("exactly-once", _under_way_late),
    "calls under way are read in the wrong order": ("exactly-once", _read_in_the_wrong_order),
    "errors are told of the next instance": ("at-least-once", _errors_of_the_next),
    "a tuple is held once its call has returned": ("at-least-once", _held_after_the_call),
}


def planted(name: str) -> Any:
    """The tree with that race in it."""
    return {**PLANTED, **RARE}[name][1]()
