"""The calls of user code that are under way in a worker, as another thread of its process sees them (B1)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

from stormspark.user_line import running_at
from stormspark.worker.asynchronous.life import AsyncExecutor
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.busy import Busy
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.executors.executors import Executors
from stormspark.worker.services import TaskServices
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.starting_again import StartsAgain

__all__ = ["UnderWay"]

_log = logging.getLogger(__name__)

#: A call that has lasted for so many seconds is named before all shorter ones.
_LONG_SECS = 1.0
#: A heartbeat has so many calls at most: one more than those that a user who kills the topology gets to see.
_MOST_IN_BEAT = 6


class UnderWay:
    """The calls on the worker's thread, on executors' own threads, and on the event loop."""

    def __init__(self, call: CurrentCall, executors: Executors, services: TaskServices) -> None:
        self._call, self._executors, self._services = call, executors, services

    def calls(self, least: float = 0.0) -> list[Busy]:
        """Return the calls that have been under way for ``least`` seconds.

        The most important call comes first (`Busy.importance`). Calls of coroutines that only wait for a blocked event loop are
        left out.
        """
        found = self._executors.calls(least)
        mine = self._call.busy()
        if mine is not None and mine.seconds >= least:
            theirs = next((one for one in found if one[1].task == mine.task), None)
            if theirs is None:
                found.append((self._call.thread, mine))
            elif theirs[1].seconds <= mine.seconds:
                # The worker's thread waits for the executor's thread, so that is one call.
                found[found.index(theirs)] = theirs[0], mine
        frames = sys._current_frames() if found else {}
        calls = [
            busy._replace(
                place=running_at(frames.get(thread), "stormspark.worker.core")
                or (self._call.place_on_loop if thread == self._call.thread else None)
            )
            for thread, busy in found
        ]
        for call in self._awaiting():
            awaiting = call
            mine = next((one for one in calls if call.opens and one.opens and one.task == call.task), None)
            if mine is not None:  # the worker's thread waits for the coroutine
                calls.remove(mine)
                awaiting = call._replace(seconds=mine.seconds, alone=mine.alone)
            if awaiting.seconds >= least:
                calls.append(awaiting)
        if (blocked := self._services.blocked_loop()) is not None:
            calls = _with_blocked(calls, blocked)
        return sorted(calls, key=lambda busy: busy.importance)

    def all(self) -> list[Busy]:
        """Return what an end of the topology would cut off now, the most important first.

        These are the `calls`, those that wait for a blocked event loop, and the tuples that child processes have been given.
        """
        awaiting, calls = {call.task: call for call in self._awaiting()}, []
        for call in self.calls():
            waits = awaiting.pop(call.task, None) if call.awaits or call.on_loop else None
            # A call that blocks the loop is one of those of its task.
            calls.append(call._replace(others=waits.others) if waits is not None and call.on_loop else call)
        return sorted([*calls, *awaiting.values(), *self._outside()], key=lambda busy: busy.importance)

    def some(self) -> tuple[Busy, ...]:
        """Return the first of `all`, for a heartbeat. The last one of them stands for all that follow, too.

        So the list is short, and the number of calls is right (`Busy.calls`).
        """
        calls = self.all()
        if len(calls) > _MOST_IN_BEAT:
            first, left = calls[: _MOST_IN_BEAT - 1], calls[_MOST_IN_BEAT - 1 :]
            calls = [*first, left[0]._replace(tuples=0, others=sum(busy.calls for busy in left) - 1)]
        return tuple(calls)

    def _awaiting(self) -> Iterator[Busy]:
        """Iterate over the calls of coroutines: of each task, the one that has been under way for longest."""
        for task in self._services.tasks:
            instance = task.instance
            call = instance.awaiting() if isinstance(instance, AsyncExecutor) else None
            if call is None:
                continue
            of_spout = isinstance(task, SpoutTask)
            # A batch of a transaction waits for all calls of bolts. There may be a time limit for the first call.
            waited_for = not of_spout and isinstance(task, StartsAgain) and task.in_transactions
            yield call._replace(
                alone=not (waited_for or call.opens),
                of_spout=of_spout,
                starts_again=call.opens and not waited_for and not self._call.opening,
            )

    def busy(self) -> Busy | None:
        """Return the most important of the `calls`, if there is one. Calls that have lasted for `_LONG_SECS` are more important
        than others.
        """
        return next(iter(self.calls(_LONG_SECS) or self.calls()), None)

    def give_up_calls(self) -> None:
        """If a stop has waited in vain for calls of async bolts, for one that blocks the event loop, or for bolts in other
        processes, warn about these calls, and remember them.

        The worker's thread calls this before the calls are cancelled. Calls of spouts and starts are waited for later.
        """
        if not self._executors.is_late() or self._executors.is_cut_off:
            return
        loggers = {task.name: task.logger for task in self._services.tasks}
        for call in self.all():
            if call.on_loop or call.tuples or (call.awaits and not call.of_spout and not call.opens):
                self._services.gave_up(call._replace(on_loop=False))
                left = call.long_call
                loggers.get(call.task, _log).warning(
                    "%s, and the topology stops without %s",
                    left.left("has"),
                    left.it,  # C1
                )

    def _outside(self) -> Iterator[Busy]:
        """Iterate over the work of bolts in other processes, which has lasted at least since the stop."""
        for task in self._services.tasks:
            if isinstance(task, BoltTask) and task.outside and not isinstance(task.instance, AsyncExecutor):
                secs, alone = self._executors.waited_secs, not task.in_transactions
                yield Busy(task.name, secs, alone=alone, tuples=task.outside)

    def look(self) -> None:
        """Check whether a task that has run for long is in one long call, and whether a coroutine blocks the event loop.

        Call this several times per second; see `CurrentCall.look` and `EventLoop.look`.
        """
        self._call.look()
        self._services.look_at_loop()


def _with_blocked(calls: list[Busy], blocked: Busy) -> list[Busy]:
    """Add the call that blocks the event loop, and leave out the coroutines' calls that only wait for the loop.

    If a batch or a start waits for the call that blocks the loop, the call is not `Busy.alone`.
    """
    for call in calls:
        if call.awaits and not call.alone and call.task == blocked.task and call.seconds >= blocked.seconds:
            blocked = blocked._replace(alone=False, opens=call.opens)
    return [
        *(call for call in calls if not call.awaits or not (call.alone or call.task == blocked.task)),
        blocked,
    ]
