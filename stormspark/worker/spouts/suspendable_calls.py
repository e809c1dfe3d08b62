"""The calls of a spout's ``next_tuple``. They run in a greenlet of their own, so that an emit can suspend them.

Storm requires that ``next_tuple`` returns soon and does not block (B1). A spout that meets this requirement never notices the
greenlet. But a spout may emit a whole file in a single call, or emit for ever. Such a call is suspended inside ``emit`` when
its turn is used up, and resumed at the next turn. So no call emits without bounds in one superstep (B4, E27), and the superstep
ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from greenlet import GreenletExit, getcurrent, greenlet

from stormspark.worker.errors_of_code import ERRORS_OF_CODE
from stormspark.worker.tuples.execution import ask_for_tuples

if TYPE_CHECKING:
    from stormspark.api import Spout
    from stormspark.worker.stories.spout_stories import SpoutStories
    from stormspark.worker.tuples.spout_collector import SpoutCollector

__all__ = ["SuspendableCalls"]


class SuspendableCalls:
    """The calls of one spout's task. At most one call is suspended.

    No call is made while ``most_pending`` trees are open. ``stories`` chooses which emits are traced. `turn`, `most` and
    `deadline` bound the current turn. `ask_for_tuples` reads them.
    """

    def __init__(self, clock: Callable[[], float], stories: SpoutStories, most_pending: int) -> None:
        self._clock, self._stories, self._most_pending = clock, stories, most_pending
        self._spout: Spout
        self._collector: SpoutCollector
        self._runner: greenlet | None = None
        #: Whether a call is suspended inside an emit.
        self.suspended = False
        #: How many tuples the suspended call has emitted in its turns so far; 0 once the call has returned.
        self.emits_in_call = 0
        #: `turn`: how many emits a call may make before it is suspended. `most`: how many calls may be made. `deadline`: when
        #: to make no more calls.
        self.turn = 0
        self.most = 0
        self.deadline = 0.0

    def begin(self, spout: Spout, collector: SpoutCollector) -> None:
        """From now on, call this instance of the spout, which emits through ``collector``."""
        self._spout, self._collector = spout, collector

    def take_turn(self, turn: int, most: int, deadline: float) -> bool | BaseException:
        """Resume the suspended call, or call ``next_tuple`` up to ``most`` times.

        The turn ends earlier if a call has emitted nothing, if the suspended call has returned, if ``deadline`` has come, or if
        too many trees are open. Returns whether the last call emitted, or the exception that the call raised. A call that
        has made ``turn`` emits is suspended, and the result is true.
        """
        collector = self._collector
        self.turn, self.most, self.deadline = turn, most, deadline
        if self._runner is None:
            # The greenlet is made here, because it belongs to the thread that makes it. It has only a weak reference to this
            # object, because the garbage collector can't look into a suspended greenlet.
            self._runner = greenlet(partial(_take_turns, ref(self)))
        if self.suspended:
            collector.pause_at = collector.emitted + turn
        result: bool | BaseException = self._runner.switch()
        collector.pause_at = -1
        return result

    def _call(self) -> bool | BaseException:
        self.stamp_emits()
        try:
            return ask_for_tuples(
                self._spout.next_tuple, self._collector, self._clock, self._most_pending, self
            )
        except ERRORS_OF_CODE as error:
            return error

    def stamp_emits(self) -> None:
        """Stamp the emits from now on with the present time, and choose which of them are traced."""
        collector = self._collector
        collector.now = now = self._clock()
        collector.new_tree = self._stories.maker(now)

    def suspend(self) -> None:
        """Suspend the call that emits now, until the next turn. If the emit is not inside such a call, do nothing.

        Raises `GreenletExit` if the spout's instance ends meanwhile.
        """
        runner = self._runner
        if runner is None or getcurrent() is not runner:
            self._collector.pause_at = -1  # an emit in another thread, or after the end of the call
            return
        self.emits_in_call += self.turn
        hub = runner.parent
        assert hub is not None
        self.suspended = True
        try:
            hub.switch(True)
        finally:
            del hub  # see `_take_turns`
        self.suspended = False
        self.stamp_emits()

    def end(self) -> None:
        """Unwind a suspended call, because the spout's instance ends."""
        runner, self._runner, suspended, self.suspended = self._runner, None, self.suspended, False
        if runner is not None and suspended:
            self._collector.pause_at = -1
            # GreenletExit makes the call run its `finally` blocks. Errors in these blocks no longer matter. A greenlet can be
            # unwound only in the thread that made it. In another thread this fails, and the greenlet ends with its own thread.
            with contextlib.suppress(Exception):
                runner.throw(GreenletExit)


def _take_turns(of: ReferenceType[SuspendableCalls]) -> None:
    """Take one turn each time the greenlet is switched to. This is the main function of the greenlet.

    Whoever keeps an error of the spout keeps the frames of this function, too. A variable of theirs must not keep the greenlet of
    the worker's thread when that thread ends: greenlet would look for its owner in the main thread, among all objects, and in
    the middle of whatever the main thread does.
    """
    hub = getcurrent().parent
    assert hub is not None
    try:
        while (calls := of()) is not None:
            result = calls._call()
            del calls
            hub.switch(result)
            del result
    finally:
        del hub
