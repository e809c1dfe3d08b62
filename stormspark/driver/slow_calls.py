"""Warns about calls of user code that do not return (B1)."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable

from stormspark.worker.busy import Busy
from stormspark.worker.executors.thread import STOP_SECS

__all__ = ["LAST_BATCH_SECS", "SlowCalls"]

_log = logging.getLogger(__name__)

#: When the topology stops, a call that holds up its worker has this many seconds to return. Then it is given up, and on Spark its
#: worker is killed.
LAST_BATCH_SECS = 60.0
#: The pause after the first warning about a component that blocks the event loop. Each further warning doubles it.
_FIRST_PAUSE_SECS = 10.0


class SlowCalls:
    """The warnings about calls in one worker.

    A call is named once it has lasted for ``stuck_secs``, and again each time when its length has doubled. A call that blocks the
    event loop is named at once. There is one warning for all tasks of a component. ``limits_starts`` says whether the engine can
    give up a start that takes long.
    """

    def __init__(self, worker: int, stuck_secs: float, *, limits_starts: bool) -> None:
        self._worker, self._stuck_secs, self._limits_starts = worker, stuck_secs, limits_starts
        #: For each component with a slow call, how long the call lasts when the next warning comes.
        self._next: dict[str, float] = {}
        #: For each component that has blocked the event loop, when the next warning may come, and the pause after it.
        self._next_on_loop: dict[str, tuple[float, float]] = {}

    def look_at(self, calls: Iterable[Busy], *, stops: bool = False) -> None:
        """Look at the calls that are under way now, and warn about slow ones. ``stops`` says that the topology stops."""
        slow: defaultdict[str, list[Busy]] = defaultdict(list)
        for busy in calls:
            if busy.on_loop:
                self._look_at_loop(busy)
            elif busy.seconds >= self._stuck_secs:
                slow[busy.component].append(busy)
        for returned in self._next.keys() - slow.keys():
            del self._next[returned]
        for component, theirs in slow.items():
            longest = max(theirs, key=lambda busy: (busy.place is not None, busy.seconds))
            if longest.seconds >= self._next.get(component, 0.0):
                self._next[component] = 2 * longest.seconds
                others = len({busy.task for busy in theirs}) - 1
                also = f"; more tasks of {component} in such a call: {others}" if others else ""
                _log.warning("%s%s", self._warning(longest, stops=stops), also)

    def _look_at_loop(self, busy: Busy) -> None:
        component, now = busy.component, time.monotonic()
        due, pause = self._next_on_loop.get(component, (0.0, _FIRST_PAUSE_SECS))
        if now >= due:
            self._next_on_loop[component] = now + pause, 2 * pause
            _log.warning("%s", self._warning(busy))

    def _warning(self, busy: Busy, *, stops: bool = False) -> str:
        """Return a warning that says whose code has not returned for a long time, and who waits for it."""
        worker, seconds = self._worker, f"{busy.seconds:.0f} s"
        if busy.on_loop:
            return (
                f"{busy.code} has blocked the event loop of worker {worker} for {seconds}, and no other coroutine of the worker "
                f"goes on meanwhile: await something there (asyncio.sleep, an async client, asyncio.to_thread), or make the "
                f"component an ordinary bolt or spout, whose executors get threads"
            )
        if stops and (not busy.of_spout if busy.alone else not busy.opens):
            most = STOP_SECS if busy.alone else LAST_BATCH_SECS
            return (
                f"{busy.code} in worker {worker} has not returned for {seconds}: the topology stops, and waits for such calls at "
                f"most {most:.0f} s"
            )
        if busy.alone and busy.awaits:
            then = (
                "the spout hears of nothing else until it returns" if busy.of_spout else _of_async_bolt(busy)
            )
            return f"{busy.code} in worker {worker} has not returned for {seconds}: {then}"
        if busy.alone and not busy.of_spout:
            return (
                f"{busy.code} has not returned for {seconds}; only its own executor in worker {worker} waits for it, and tuples "
                f"behind it time out once it has lasted longer than topology.message.timeout.secs"
            )
        if busy.alone:
            code = f"next_tuple of {busy.task}" if busy.place is None else busy.code
            return (
                f"{code} has not returned for {seconds}; only its own executor in worker {worker} waits for it, and the spout "
                f"hears of acks and fails when it returns"  # B3
            )
        if busy.opens:
            code = busy.task if busy.place is None else busy.code
            limit = "; set stormspark.prepare.timeout.secs to limit that" if self._limits_starts else ""
            if busy.starts_again:
                waits = "it emits nothing meanwhile" if busy.of_spout else "its tuples wait meanwhile"
                return f"{code} in worker {worker} has not returned for {seconds}: the task starts again, and {waits}{limit}"
            return (
                f"worker {worker} is not ready yet, and the topology waits for it: it has been in {code} for {seconds}, where a "
                f"task opens or state is read{limit}"
            )
        return (
            f"worker {worker} has been in {busy.code} for {seconds}, and the topology waits for it: next_tuple, execute and the "
            f"like must return soon; if this call never returns, kill the topology"
        )


def _of_async_bolt(busy: Busy) -> str:
    """Return what a call of an async bolt that does not return means, and what to do."""
    others = (
        f"all {busy.all_places} places of the task are taken"
        if busy.all_places
        else "other calls of the task go on"
    )
    if busy.cancelled_after:
        return (
            f"it was cancelled after {busy.cancelled_after:g} s (timeout_secs), but it goes on and keeps its place: let "
            f"asyncio.CancelledError through; {others}"
        )
    return f"{others}, and its tuple times out; set timeout_secs to limit such calls"  # E10
