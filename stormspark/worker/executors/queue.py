"""The queue of a bolt's task, for an executor with a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import TypeVar

from stormspark.acker import TracedPart, TracedTree
from stormspark.api import TICK_SOURCE
from stormspark.worker.bolts.queue import TupleQueue
from stormspark.worker.tuples.outlets import Delivery

__all__ = ["SharedQueue"]

_T = TypeVar("_T")


class SharedQueue(TupleQueue):
    """A `TupleQueue` that the worker's thread fills and an executor's thread empties.

    Senders append to ``inbox`` without a lock. So a thread that takes tuples out counts them first, then copies that many, and
    then deletes that many.

    >>> queue = SharedQueue()
    >>> queue.inbox += [(("a",), None, None), (("b",), None, None)]
    >>> queue.next(lambda delivery: delivery[0]), queue.executed, queue.waiting
    (('a',), 1, 1)
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        #: Whether a tuple was taken and its execution has not ended yet. `next` sets this, under the lock, when it takes a
        #: tuple.
        self.is_executed = False
        #: Whether no tuple may be taken, because the instance of the bolt ends.
        self.is_shut = False
        #: The newest delivery that was taken out of the inbox, if its tree may be traced.
        self._newest_taken: Delivery | None = None

    def next(self, begin: Callable[[Delivery], _T]) -> _T | None:
        """Take the oldest tuple out, and return what ``begin`` returns for it. The executor's thread calls this.

        Return None if no tuple waits, or if none may be taken. ``begin`` is called while the lock is held. So the worker's thread
        never misses a tuple that has been taken.
        """
        with self._lock:
            if self.is_shut:
                return None
            if self._next >= len(self._taken):
                self._taken, self._next = self._all_of_inbox(), 0
                if not self._taken:
                    return None
            delivery = self._taken[self._next]
            self._next += 1
            self.executed += 1
            self.is_executed = True
            if self._next >= len(self._taken):
                self._taken, self._next = [], 0
            if delivery[1] is TICK_SOURCE:
                self.ticks -= 1
            return begin(delivery)

    def shut(self) -> None:
        """Let no tuple be taken from now on."""
        with self._lock:
            self.is_shut = True

    def _all_of_inbox(self) -> list[Delivery]:
        inbox = self.inbox
        count = len(inbox)
        taken = inbox[:count]
        if taken and isinstance(taken[-1][2], tuple | TracedTree | TracedPart):
            self._newest_taken = taken[-1]  # before it is deleted, so that it is always found
        del inbox[:count]
        return taken

    @property
    def newest(self) -> Delivery | None:
        """See `TupleQueue.newest`. The executor's thread may have taken it out before the worker's thread has noted that it was
        sent.
        """
        try:
            return self.inbox[-1]
        except IndexError:
            return self._newest_taken

    def add_tick(self, seconds: float) -> None:
        """See `TupleQueue.add_tick`."""
        with self._lock:
            super().add_tick(seconds)

    @property
    def waiting(self) -> int:
        """How many tuples wait."""
        with self._lock:
            return super().waiting

    def deliveries(self) -> Iterator[Delivery]:
        """Iterate over the tuples that waited when this was called, in order."""
        with self._lock:
            return iter(list(super().deliveries()))

    def size_of_one(self) -> int:
        """See `TupleQueue.size_of_one`."""
        with self._lock:
            return super().size_of_one()

    def take(self, most: int) -> list[Delivery]:
        """Raise an error, because the executor's thread calls `next` instead."""
        raise NotImplementedError

    def take_newest(self, most: int) -> list[Delivery]:
        """See `TupleQueue.take_newest`."""
        with self._lock:
            return super().take_newest(most)

    def clear(self) -> None:
        """Drop all tuples that wait."""
        with self._lock:
            super().clear()
