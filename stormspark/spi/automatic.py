"""Bolts whose tuples are acked when ``execute`` returns. A front-end makes one of these from its user's bolt.

Front-ends extend `AutoAckBolt` as users extend `BasicBolt`. But an `AutoAckBolt` has more freedom: it may fail a tuple, ack it
before ``execute`` returns, or keep it. Its tuples are objects of the front-end's own class, so the front-end need not wrap each
tuple in a second object. It may emit directly on a `Line`, which saves the search for the stream.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from stormspark.api.components import Bolt
from stormspark.api.tuples import Executor, Tuple, TupleSource

__all__ = ["ACK", "AutoAckBolt", "Line", "Send", "Sender"]

#: ``execute`` returns this to have its tuple acked, unless the tuple is already acked or failed.
ACK: Final = object()
#: A function that takes a tuple's values, one per field of the stream, and the tuple's trees. It emits the tuple and returns the
#: ids of the receiving tasks.
Send: TypeAlias = Callable[[tuple[Any, ...], Any], list[int]]
#: A function that returns the `Send` of one of the task's streams. It returns None if the stream is unknown. It
#: also returns None while threads of the user may emit, because all emits have to go through the collector then.
Sender: TypeAlias = Callable[[str], Send | None]


class Line(Protocol):
    """One of the task's streams. Sending on it needs no look-up."""

    def send(self, values: tuple[Any, ...], roots: Any, /) -> list[int]:
        """See `Send`."""


class AutoAckBolt(Bolt):
    """A `Bolt` whose ``execute`` returns `ACK` to have the tuple acked, or None if the bolt itself acks or fails the tuple.

    >>> class Counting(AutoAckBolt):
    ...     seen = 0
    ...     def execute(self, tup):
    ...         self.seen += 1
    ...         return ACK
    ...     def connected(self, line):
    ...         self.line = line("default")
    """

    #: The function that makes the tuples that ``execute`` receives. A tuple is reused if nothing but the engine still refers to
    #: it.
    new_tuple: Callable[[tuple[Any, ...], TupleSource, Any], Tuple] = Tuple
    #: The object whose ``execute`` is called for each tuple; None for the bolt itself.
    executor: Executor | None = None

    @abstractmethod
    def execute(self, tup: Tuple) -> object:  # type: ignore[override]
        """Process one tuple; return `ACK` to have it acked."""

    @abstractmethod
    def connected(self, line: Callable[[str], Line | None]) -> None:
        """Take a function that finds the task's streams. This is called when the bolt is prepared, and when its streams change.

        ``line`` returns the `Line` of a stream. It returns None in the cases in which a `Sender` returns None. Lines are valid
        until the next call of this method.
        """
