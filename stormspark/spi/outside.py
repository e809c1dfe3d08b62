"""Components with work outside of their worker: in a child process, a device, or a service that answers later.

A worker runs its tasks on one thread, and a batch ends when nothing is left to do. Without these classes the worker
would overlook tuples that are worked on outside. They would wait for the next batch, and nothing would hold back
later tuples. So such a bolt reports its work. The worker checks it for room before it gives the bolt tuples, waits for
it at the end of a superstep, and counts its unfinished tuples as waiting (backpressure, transactions, end of a run).
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
    """A mixin for a `Spout` or `Bolt` that owns something outside which must not outlive it."""

    @abstractmethod
    def let_go(self) -> None:
        """Called when the instance ends without ``close`` or ``cleanup``: its task begins anew, or its engine is killed.

        It may be called twice, and after ``close`` or ``cleanup``.
        """


class WorksOutside(LivesOutside):
    """A mixin for a `Bolt` whose tuples are processed outside. The thread that runs the tasks calls all its methods.

    The bolt acks or fails each tuple sooner or later. Its task keeps a tuple that the bolt drops.

    Emits, acks, fails and exceptions in `take_in` count as if they happened in ``execute``.
    """

    @property
    @abstractmethod
    def room(self) -> int:
        """How many more tuples it takes now. Further tuples wait in its queue."""

    @property
    @abstractmethod
    def outside(self) -> int:
        """How many tuples are in progress, so that a batch should wait for them. Tuples held on purpose do not count."""

    @abstractmethod
    def fileno(self) -> int:
        """Return the descriptor that is readable when `take_in` has something to do, as for ``select.poll``; -1 if none."""

    @property
    def waits_for_answer(self) -> bool:
        """Whether somebody outside may be waiting for an answer, so that input is taken in at once.

        While one bolt has this set, the input of others may be gathered for some milliseconds.
        """
        return True

    @abstractmethod
    def send(self) -> None:
        """Called when no more tuples come for now: send those that were collected."""

    @abstractmethod
    def take_in(self) -> int:
        """Process what has come from outside, without waiting; return how many tuples are done by that.

        Called when `fileno` is readable, and when the worker has waited for that in vain.
        """


class KeepsOutside(WorksOutside):
    """A `WorksOutside` that keeps track of its unsettled tuples itself, and receives many tuples per call.

    So its task keeps no second record, and no `Tuple` is made that no user sees. It receives the parts of tuples, and can
    make one with ``Tuple(*given)``.
    """

    @property
    def keeps(self) -> bool:
        """Whether it works as a `KeepsOutside`; a subclass may want each tuple. Read once, before ``prepare``."""
        return True

    @abstractmethod
    def connected(self, sender: Sender, ack: Callable[[Sequence[Given]], None]) -> None:
        """Called with the ways to reach streams and to ack tuples, which hold until the next call.

        See `AutoAckBolt.connected`.
        """

    @abstractmethod
    def execute_all(self, given: Sequence[Given], now: float) -> int:
        """Execute at most `room` of these; return how many it has taken. An exception is attributed to the first."""

    @abstractmethod
    def kept(self) -> list[tuple[Given, float]]:
        """Return the tuples that it received and neither acked nor failed, each with the ``now`` of its execution."""
