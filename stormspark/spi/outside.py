"""Components with work outside of their worker: in a child process, a device, or a service that answers later.

A worker ends a superstep when it has nothing left to do, or when the time is up. Without these classes the worker would overlook
tuples that are processed outside. The results of these tuples would wait for the next batch, and nothing would hold back later
tuples. A bolt of these classes tells the worker about its work outside. The worker gives the bolt only as many tuples as the bolt
has room for, and waits for the bolt at the end of a superstep. Backpressure, transactions and the end of a run treat the bolt's
unfinished tuples as tuples that wait.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from stormspark.api.tuples import TupleSource
from stormspark.spi.automatic import Sender

__all__ = ["Given", "KeepsOutside", "LivesOutside", "WorksOutside"]

#: The parts of a tuple: its values, its source, and its trees.
Given: TypeAlias = tuple[tuple[Any, ...], TupleSource, Any]


class LivesOutside(ABC):
    """A mixin for a `Spout` or `Bolt` that owns something outside, such as a child process, and has to end it."""

    @abstractmethod
    def let_go(self) -> None:
        """Release the things outside that the component owns. Called when the instance ends without ``close`` or ``cleanup``.

        This happens when a new instance replaces this one, or when the engine is killed. This method may be called twice, and
        after ``close`` or ``cleanup``.
        """


class WorksOutside(LivesOutside):
    """A mixin for a `Bolt` whose tuples are processed outside. The worker's thread calls all methods of the bolt.

    The bolt acks or fails each tuple sooner or later. Until then its task keeps the tuple, even if the bolt does not. A bolt that
    is an `AutoAckBolt` or a `BasicBolt`, and also has this mixin, is run like any other bolt of its kind.

    Emits, acks, fails and exceptions in `take_in` count as if they happened in ``execute``.
    """

    #: If `take_in` raises, the error message has these words instead of the name of a method.
    works_in = "what it has outside"
    #: The worker waits for such a bolt by `fileno`, so the bolt's executors never have threads of their own
    #: (`stormspark.worker.executors`).
    on_workers_thread = True

    @property
    @abstractmethod
    def room(self) -> int:
        """The number of tuples that the bolt can take now. Further tuples wait in its queue."""

    @property
    @abstractmethod
    def outside(self) -> int:
        """The number of tuples in progress, for which a batch should wait. Tuples that the bolt keeps on purpose do not count."""

    @abstractmethod
    def fileno(self) -> int:
        """Return a file descriptor that becomes readable when `take_in` has something to do; -1 if there is none."""

    @property
    def waits_for_answer(self) -> bool:
        """Whether somebody outside may be waiting for an answer from this bolt. If so, the worker does not delay `take_in`.

        If not, the worker may let input gather for some milliseconds.
        """
        return True

    @abstractmethod
    def send(self) -> None:
        """Called when no more tuples come for now. Send the tuples that the bolt has collected."""

    @abstractmethod
    def take_in(self) -> int:
        """Process the answers that have come from outside, without waiting. Return how many tuples these answers finished.

        Called when `fileno` is readable, and also when the worker has waited for some time and it has not become readable.
        """


class KeepsOutside(WorksOutside):
    """A `WorksOutside` that keeps track of its unsettled tuples itself, and receives many tuples per call.

    So its task does not keep track of these tuples. The bolt receives the parts of each tuple (`Given`). It makes a `Tuple` only
    if user code sees the tuple, with ``Tuple(*given)``.
    """

    @property
    def keeps(self) -> bool:
        """Whether the engine calls `execute_all` with many tuples. If not, it calls ``execute`` with one tuple at a time.

        The task reads this once, before ``prepare``.
        """
        return True

    @abstractmethod
    def connected(self, sender: Sender, ack: Callable[[Sequence[Given]], None]) -> None:
        """Called with functions that find the task's streams and that ack tuples.

        The functions are valid until the next call of this method. See `AutoAckBolt.connected`.
        """

    @abstractmethod
    def execute_all(self, given: Sequence[Given], now: float) -> int:
        """Execute the first of these tuples, at most `room`; return their number. An exception counts as caused by the first
        tuple.
        """

    @abstractmethod
    def kept(self) -> list[tuple[Given, float]]:
        """Return the tuples that the bolt has neither acked nor failed, each with the ``now`` that `execute_all` got."""
