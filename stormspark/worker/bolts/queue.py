"""The queue of a bolt's task: the tuples that wait to be executed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from sys import getsizeof

from stormspark.api import TICK_SOURCE
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.tuples.weights import weight

__all__ = ["TupleQueue"]

#: About how many of the waiting tuples are weighed to estimate the size of all waiting tuples.
_SAMPLE = 8
#: How many bytes a delivery takes besides its values.
_DELIVERY_BYTES = 2 * getsizeof(())


class TupleQueue:
    """The tuples that wait for one task of a bolt, oldest first. ``inbox`` is the list that senders append to."""

    def __init__(self) -> None:
        self.inbox: list[Delivery] = []
        #: Deliveries that were taken out of the inbox. The deliveries from index `_next` on still wait, and are older than
        #: those in the inbox.
        self._taken: list[Delivery] = []
        self._next = 0
        #: How many ticks were added and are not executed yet.
        self.ticks = 0
        #: How many deliveries were executed since the task was made.
        self.executed = 0
        #: How many tuples waited at the last call of `not_reached`, and the value of `executed` at that call. Tuples that were
        #: dropped since then, and not executed, don't count.
        self._seen = (0, 0)

    @property
    def waiting(self) -> int:
        """How many tuples wait."""
        return len(self.inbox) + len(self._taken) - self._next

    def deliveries(self) -> Iterator[Delivery]:
        """Iterate over the waiting tuples, in order."""
        return chain(islice(self._taken, self._next, None), self.inbox)

    def not_reached(self) -> Iterator[Delivery]:
        """Iterate over the waiting tuples that already waited when this method was called the previous time."""
        return islice(self.deliveries(), self._still_waiting())

    def _still_waiting(self) -> int:
        """Return how many of the tuples that waited at the previous call of `not_reached` still wait."""
        waiting, executed = self._seen
        self._seen = (self.waiting, self.executed)
        return max(0, waiting - (self.executed - executed))

    def size_of_one(self) -> int:
        """Estimate the bytes of one waiting tuple: the bytes of its values (`weight`), and the bytes that the queue needs
        besides.

        The estimate is a mean over a few tuples, spread evenly from the oldest to the newest.
        """
        taken, inbox, gone = self._taken, self.inbox, len(self._taken)
        waiting = range(self._next, gone + len(inbox))
        some = waiting[:: max(1, len(waiting) // _SAMPLE)]
        if not some:
            return _DELIVERY_BYTES
        values = (taken[at][0] if at < gone else inbox[at - gone][0] for at in some)
        return _DELIVERY_BYTES + sum(map(weight, values)) // len(some)

    @property
    def newest(self) -> Delivery | None:
        """The delivery that was appended to the inbox last, if it is known."""
        return self.inbox[-1] if self.inbox else None

    # -- in --------------------------------------------------------------------------------------------------

    def add_tick(self, seconds: float) -> None:
        """Add a tick behind the tuples that wait already (C9)."""
        self.inbox.append(((seconds,), TICK_SOURCE, None))
        self.ticks += 1

    def put_back(self, deliveries: list[Delivery]) -> None:
        """Put back tuples that `take` returned, ahead of all others."""
        self._taken[self._next : self._next] = deliveries

    # -- out -------------------------------------------------------------------------------------------------

    def take(self, most: int) -> list[Delivery]:
        """Take the oldest tuples out, at most ``most`` of them."""
        if self._next >= len(self._taken):
            inbox = self.inbox
            if len(inbox) <= most:
                batch = inbox[:]
                inbox.clear()  # not a new list, because senders hold this one
                return batch
            self._taken, self._next = inbox[:], 0
            inbox.clear()
        batch = self._taken[self._next : self._next + most]
        self._next += len(batch)
        if self._next >= len(self._taken):
            self._taken, self._next = [], 0
        return batch

    def take_newest(self, most: int) -> list[Delivery]:
        """Take the newest ``most`` tuples out, in order. Ticks among them stay (C9)."""
        newest: list[Delivery] = []
        for queue, first in ((self.inbox, 0), (self._taken, self._next)):
            cut = max(first, len(queue) - (most - len(newest)))
            end = queue[cut:]
            del queue[cut:]
            if self.ticks:
                queue.extend(delivery for delivery in end if delivery[1] is TICK_SOURCE)
                end = [delivery for delivery in end if delivery[1] is not TICK_SOURCE]
            newest = end + newest
        self._forget_newest(len(self.inbox) + len(self._taken) - self._next)
        return newest

    def _forget_newest(self, left: int) -> None:
        """Remember for `not_reached` that only the oldest ``left`` tuples still wait."""
        waiting, executed = self._seen
        self._seen = (min(waiting, left + self.executed - executed), executed)

    def count_ticks(self, chunk: list[Delivery], start: int, end: int) -> int:
        """Count the ticks in the executed part of a chunk, and subtract their number from `ticks`. Return their number."""
        ticks = sum(source is TICK_SOURCE for _, source, _ in chunk[start:end])
        self.ticks -= ticks
        return ticks

    def clear(self) -> None:
        """Drop all tuples that wait."""
        self.inbox.clear()  # not a new list, because senders hold this one
        self._taken, self._next, self.ticks = [], 0, 0
        self._forget_newest(0)
