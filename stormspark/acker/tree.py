"""One worker's knowledge of one tuple tree: the whole tree at home, a part of it elsewhere."""

# tree.pxd beside this module gives the attributes of `SpoutAccount`, `Branch`, `Tree` and `Part` their C types, with which
# Cython compiles this module. When you add, rename or retype one of them, change both files and check with `make compiled`.
# `_Traced` covers the slot `count` with a property, and `_count` is a second name for that slot. A traced branch keeps its count
# in the slot. For branches that are not traced, the property costs nothing.

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from stormspark.acker.verdict import Verdict

__all__ = ["Branch", "Part", "Roots", "SpoutAccount", "Trace", "TracedPart", "TracedTree", "Tree"]


class SpoutAccount:
    """The trees of one spout task: how many are open, and the trees that have ended and wait for ``ack`` or ``fail``.

    If batches are transactions, ``attempt`` counts the attempts at batches. It does not begin again at 0 when a new batch begins.
    Each tree keeps the number under which it began.
    """

    __slots__ = ("attempt", "ended", "pending", "task")

    def __init__(self, task: int) -> None:
        self.task = task
        self.pending = 0
        self.attempt = 0
        self.ended: list[Tree] = []


class Branch:
    """The part of a tree that lives in this worker: a `Tree` at home, a `Part` elsewhere.

    The tuple path (the code that runs for every tuple) reads and writes ``count`` and ``value`` directly, because a method
    call per tuple is too expensive in Python:

    - ``count``: the open edges (deliveries) in this worker. A delivery adds one when it is emitted here or arrives in a frame. It
      subtracts one when it is acked or failed, or leaves in a frame. Code that brings the count to zero calls `Ledger.drained`.
    - ``value``: the XOR of the edges to and from other workers, as far as this worker knows them.
    - ``root_id``: 0 while the tree is known at its home only, then a random number. It is even if the tree is traced, else odd.
    """

    __slots__ = ("count", "mark", "place", "root_id", "value", "verdict")

    count: int
    value: int
    root_id: int
    #: The number of the last frame that took tuples of this branch to another worker (`Ledger.frames`).
    mark: int
    #: The position of the branch in that frame.
    place: int
    #: How the tree ended; None before that. A part has a verdict once a bolt of this worker has failed it.
    verdict: Verdict | None


#: The trees that a tuple belongs to: none, one, or several distinct ones.
Roots: TypeAlias = Branch | tuple[Branch, ...] | None


class Tree(Branch):
    """A tree in the worker of its spout.

    ``emitted_at`` is the time of the emit by the worker's clock, and ``attempt`` is the account's ``attempt`` at that time.
    """

    __slots__ = ("account", "attempt", "bucket", "emitted_at", "message_id")

    def __init__(self, account: SpoutAccount, message_id: Hashable, emitted_at: float) -> None:
        self.count = 0
        self.value = 0
        self.root_id = 0
        self.mark = 0
        self.verdict = None
        self.account = account
        self.attempt = account.attempt
        self.message_id = message_id
        self.emitted_at = emitted_at
        self.bucket: dict[Tree, None] | None = (
            None  # the bucket that times it out; None before the tree begins and after it has ended
        )

    def __repr__(self) -> str:
        return f"Tree({self.message_id!r}, root={self.root_id:#018x}, count={self.count}, value={self.value:#018x})"


class Part(Branch):
    """One worker's share of a tree. The tree's ``home`` is another worker, or the tree has ended and its home is this worker."""

    __slots__ = ("home",)

    def __init__(self, home: int, root_id: int, value: int, count: int) -> None:
        self.home = home
        self.root_id = root_id
        self.value = value
        self.count = count
        self.mark = 0
        self.verdict = None

    def __repr__(self) -> str:
        return (
            f"Part(home={self.home}, root={self.root_id:#018x}, count={self.count}, value={self.value:#018x})"
        )


class Trace(Protocol):
    """An observer of one tree in one worker. It changes nothing."""

    root_id: int

    def changed(self, branch: Branch, by: int) -> None:
        """Called when this worker's open edges have changed by ``by``, which is negative if edges were closed or sent away."""

    def arrived(self, task: int, tuples: int) -> None:
        """Called when a frame has brought this many tuples for this task."""

    def ended(self, branch: Branch, verdict: Verdict) -> None:
        """Called at the tree's home when the tree has ended, and elsewhere when a bolt has failed the part there."""


# The slot itself, which the tuple path reads and writes. Traced branches cover it with a property.
_count: Any = Branch.__dict__["count"]


class _Traced(Branch):
    """A branch that reports every change of its count to its trace; the ledger reports the end.

    The tuple path handles a traced branch like any other, so tracing costs nothing for all other trees. But if a
    .pxd file gives a variable the type `Branch`, `Tree` or `Part`, compiled code uses the slot and bypasses the property. Code
    may change a count through such a variable only if the object's class is exactly `Tree` or `Part`.
    """

    __slots__ = ()

    trace: Trace

    @property
    def count(self) -> int:
        return _count.__get__(self)  # type: ignore[no-any-return]

    @count.setter
    def count(self, count: int) -> None:
        by = count - _count.__get__(self)
        _count.__set__(self, count)
        if by:
            self.trace.changed(self, by)


class TracedTree(_Traced, Tree):
    """A traced tree: its story is written down. Its root id is that of its trace. By an even root id, other workers see that a
    tree is traced (see `Ledger.hand_out`).
    """

    __slots__ = ("trace",)

    def __init__(self, account: SpoutAccount, message_id: Hashable, emitted_at: float, trace: Trace) -> None:
        self.trace = trace
        _count.__set__(self, 0)
        super().__init__(account, message_id, emitted_at)


class TracedPart(_Traced, Part):
    """A worker's part of a traced tree."""

    __slots__ = ("trace",)

    def __init__(self, home: int, root_id: int, value: int, count: int, trace: Trace) -> None:
        self.trace = trace
        _count.__set__(self, 0)
        super().__init__(home, root_id, value, 0)
        self.count = count  # through the property, so that the trace is informed
