"""Bolts whose tuples are acked when ``execute`` returns, as a front-end's are: it makes of a user's bolt one of these.

What `BasicBolt` is for users, this is for front-ends. A tuple may still be failed, be acked earlier or be kept; the tuple object
is of the front-end's own class, so that no second one has to be made for it; and emits may go straight to a stream.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from stormspark.api.components import Bolt
from stormspark.api.tuples import Executor, Tuple, TupleSource

__all__ = ["ACK", "AutoAckBolt", "Line", "Send", "Sender"]

#: What ``execute`` gives back to have the tuple acked, unless it is acked or failed already.
ACK: Final = object()
#: Sends values, as many as the stream has fields, into the trees they belong to; gives the task ids.
Send: TypeAlias = Callable[[tuple[Any, ...], Any], list[int]]
#: How to send on one of the task's streams; None for a stream that it has not, and while threads of users' own may emit.
Sender: TypeAlias = Callable[[str], Send | None]


class Line(Protocol):
    """One of the task's streams, as it is reached without a look-up."""

    def send(self, values: tuple[Any, ...], roots: Any, /) -> list[int]:
        """See `Send`."""


class AutoAckBolt(Bolt):
    """A `Bolt` whose ``execute`` says by what it returns whether the tuple is acked: `ACK`, or None for "it settles it itself".

    >>> class Counting(AutoAckBolt):
    ...     seen = 0
    ...     def execute(self, tup):
    ...         self.seen += 1
    ...         return ACK
    ...     def connected(self, line):
    ...         self.line = line("default")
    """

    #: Makes the tuples that ``execute`` is given. They are used again while nobody but the engine has them.
    new_tuple: Callable[[tuple[Any, ...], TupleSource, Any], Tuple] = Tuple
    #: What does the work of ``execute`` where that is called for each tuple; None: ``execute`` itself.
    executor: Executor | None = None

    @abstractmethod
    def execute(self, tup: Tuple) -> object:  # type: ignore[override]
        """Process one tuple; `ACK` has it acked."""

    @abstractmethod
    def connected(self, line: Callable[[str], Line | None]) -> None:
        """From now on, until the next call, streams are reached by these; ``line`` gives what `Sender` gives the ``send`` of.

        Called when it is prepared, and when that changes.
        """
