"""Components that have something at work outside of their worker: a child process, a device, a service that answers later.

A worker runs its tasks on one thread, and a batch ends when nothing is left to do. What is at work outside would be
forgotten there: tuples would wait for the next batch, and nobody would hold back those that come after them. So a bolt
that says what it has outside is asked for room before it is given tuples, is waited for at the end of a superstep, and
what it has not done by then counts as waiting (backpressure, transactions, the end of a run).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from stormspark.api.tuples import TupleSource
from stormspark.spi.automatic import Sender

__all__ = ["Given", "KeepsOutside", "LivesOutside", "WorksOutside"]

#: What a tuple is made of: its values, where it comes from, and its trees.
Given: TypeAlias = tuple[tuple[Any, ...], TupleSource, Any]


class LivesOutside(ABC):
    """Mixed into a `Spout` or `Bolt` that has something outside which must not outlive it."""

    @abstractmethod
    def let_go(self) -> None:
        """The instance ends without ``close`` or ``cleanup``: its task begins anew, or its engine is killed.

        May come twice, and after ``close`` or ``cleanup``.
        """


class WorksOutside(LivesOutside):
    """Mixed into a `Bolt` whose tuples are worked on outside. All methods are called on the thread that runs the tasks.

    It acks or fails each tuple sooner or later: one that it drops is kept by its task.

    What it emits, acks and fails in `take_in` is as if it did so in ``execute``; what it raises there, too.
    """

    @property
    @abstractmethod
    def room(self) -> int:
        """How many tuples it takes now; it is not given more, they wait in its queue."""

    @property
    @abstractmethod
    def outside(self) -> int:
        """How many tuples are worked on, so that a batch had better wait for them; not those that are held on purpose."""

    @abstractmethod
    def fileno(self) -> int:
        """What is readable when `take_in` has something to do, as for ``select.poll``; -1 while there is nothing."""

    @property
    def asks(self) -> bool:
        """Whether somebody outside may be waiting for an answer, so that what comes is taken in at once.

        What comes from others may be gathered for some milliseconds while there is such a one.
        """
        return True

    @abstractmethod
    def send(self) -> None:
        """No more tuples come for now: let go of those that were collected."""

    @abstractmethod
    def take_in(self) -> int:
        """Do what has come from outside, without waiting; returns how many tuples are done by that.

        Called when `fileno` is readable, and when the worker has waited for it in vain.
        """


class KeepsOutside(WorksOutside):
    """A `WorksOutside` that knows by itself what it has not settled yet, and is given many tuples at a time.

    So nothing is kept twice, and no `Tuple` is made that no user sees: it is given what tuples are made of, ``Tuple(*given)``
    where one is wanted after all.
    """

    @property
    def keeps(self) -> bool:
        """Whether it is one of these: a subclass may want to see each tuple. Asked once, after ``prepare``."""
        return True

    @abstractmethod
    def connected(self, sender: Sender, ack: Callable[[Sequence[Given]], None]) -> None:
        """From now on, until the next call, streams are reached by these and tuples acked so; see `AutoAckBolt.connected`."""

    @abstractmethod
    def execute_all(self, given: Sequence[Given], now: float) -> int:
        """Execute these, at most `room`; returns how many of them it has taken. What raises is the first one's fault."""

    @abstractmethod
    def kept(self) -> list[tuple[Given, float]]:
        """What it was given and has neither acked nor failed, each with the ``now`` of that."""
