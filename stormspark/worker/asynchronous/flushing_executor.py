"""The executor of an `AsyncBolt` that flushes at the end of its input (`AsyncBolt.end_of_input`).

Calls of ``execute`` may wait for further tuples, for example until a batch is full. When the input has ended, no further tuples
come. So these calls don't keep the bolt from its flush (`waiting_calls`), but bolts behind it wait for them. Tuples that fail in
a flush may come again and wait anew, so there may be several flushes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stormspark.api import TICK_SOURCE, AsyncBolt, Tuple
from stormspark.api.components import overrides
from stormspark.worker.asynchronous.bolt_collector import Call
from stormspark.worker.asynchronous.bolt_executor import AsyncBoltExecutor

__all__ = ["FlushingExecutor", "executor_of"]


def executor_of(bolt: AsyncBolt, *arguments: Any) -> AsyncBoltExecutor:
    """Return the executor of this bolt. For the arguments, see `AsyncBoltExecutor`."""
    kind = FlushingExecutor if overrides(bolt, "end_of_input", AsyncBolt) else AsyncBoltExecutor
    return kind(bolt, *arguments)


class FlushingExecutor(AsyncBoltExecutor):
    """An executor that calls ``end_of_input`` of its bolt on the event loop, as it calls ``execute``."""

    #: The tuple of the last call of ``end_of_input``.
    _end: Tuple | None = None
    #: Whether that call has not begun.
    _begins_end = False
    #: The last call of ``end_of_input``, and the calls that were under way when it began. They need no further flush.
    _flushed: Sequence[Call] = ()

    @property
    def waiting_calls(self) -> int:
        """How many calls have not ended, and may wait for a flush."""
        if self._begins_end:
            return 0
        return max(0, self._outside - sum(not call.is_over for call in self._flushed))

    def end_of_input(self) -> None:
        """Begin a call of the bolt's ``end_of_input``. The call's tuple is like a tick: it belongs to no tree, and is not
        counted. The call may be one more than ``capacity``, because all others may wait for it.
        """
        if self._is_starting:
            return  # the bolt has got nothing yet
        self._end, self._begins_end = (end := Tuple((), TICK_SOURCE, None)), True
        self._occupied += 1
        self._outside += 1
        now = self._loop.now()
        self._begun += now
        self._loop.call(self._begin_end, end, now)

    def _begin_end(self, end: Tuple, begun: float) -> None:
        if self._closed:
            return
        call = Call(end, begun, 0.0)
        self._calls[call] = None
        self._flushed = tuple(self._calls)
        self._begins_end = False
        if self._ordered:
            self._order.append(call)
        call.running = self._loop.begin(self._run(call, self._flush), self.task)

    async def _flush(self, _end: Tuple) -> None:
        await self.bolt.end_of_input()

    def _raise_or_fail(self, tup: Tuple, error: Exception) -> None:
        self.works_in = "end_of_input" if tup is self._end else type(self).works_in
        super()._raise_or_fail(tup, error)
