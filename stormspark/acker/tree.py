"""What one worker knows of one tuple tree: all of it at home, a part of it elsewhere."""

# tree.pxd beside this module gives the attributes of `SpoutAccount`, `Branch`, `Tree` and `Part` their C types, with
# which Cython compiles it. When you add, rename or retype one of them, change both files and check with `make
# compiled`.
# `_count` is a second name for the slot that `_Traced` covers with a property: a traced branch keeps its number there,
# and branches that are not traced pay nothing for the property.

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from stormspark.acker.verdict import Verdict

__all__ = ["Branch", "Part", "Roots", "SpoutAccount", "Trace", "TracedPart", "TracedTree", "Tree"]


class SpoutAccount:
    """The trees of one spout task: how many are open, and those that ended and wait for ``ack`` or ``fail``.

    ``attempt`` counts the attempts at batches, where these are transactions; each tree has the number of the one it belongs to.
    """

    __slots__ = ("attempt", "ended", "pending", "task")

    def __init__(self, task: int) -> None:
        self.task = task
        self.pending = 0
        self.attempt = 0
        self.ended: list[Tree] = []


class Branch:
    """A tree as far as it lives in this worker: a `Tree` at home, a `Part` elsewhere.

    The tuple path works on the first two numbers directly, since a method call a tuple is what Python can't
    afford:

    - ``count``: edges that are open in this worker. A copy of a tuple emitted here adds one, its ack takes
      one away, and whoever brings it to zero calls `Ledger.drained`.
    - ``value``: the XOR of the edges to other workers as far as they are known here.
    - ``root_id``: 64 random bits once the tree is known outside of its home; 0 before.
    """

    __slots__ = ("count", "mark", "place", "root_id", "value", "verdict")

    count: int
    value: int
    root_id: int
    #: The last frame that took tuples of it to another worker, and its number there.
    mark: int
    place: int
    #: How it ended; for a part: that its failure was told.
    verdict: Verdict | None


#: The trees that a tuple belongs to: none, one, or several distinct ones.
Roots: TypeAlias = Branch | tuple[Branch, ...] | None


class Tree(Branch):
    """A tree in the worker of its spout. ``emitted_at`` is when, by the worker's clock; ``attempt`` is its account's then."""

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
            None  # where the timeouts keep it; None before its begin and after its end
        )

    def __repr__(self) -> str:
        return f"Tree({self.message_id!r}, root={self.root_id:#018x}, count={self.count}, value={self.value:#018x})"


class Part(Branch):
    """What a worker holds of a tree whose ``home`` is another worker, or of one of its own that has ended."""

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
    """Is told what happens to one tree in one worker. It looks on and changes nothing."""

    root_id: int

    def changed(self, branch: Branch, by: int) -> None:
        """Edges were opened (``by`` above 0) or closed, or moved between workers."""

    def arrived(self, task: int, tuples: int) -> None:
        """So many of the tuples that a frame brought are for this task."""

    def ended(self, branch: Branch, verdict: Verdict) -> None:
        """The tree has ended, or a bolt of another worker than its home has failed it."""


# What the tuple path reads and writes of a branch: the slot itself, which traced branches put a property before.
_count: Any = Branch.__dict__["count"]


class _Traced(Branch):
    """A branch that tells its trace of every change of its count; the ledger tells it of its end.

    The tuple path does to it what it does to any other, so that tracing costs the trees that are not traced nothing. But where
    it is compiled, code that knows the type of a branch sees the slot and not the property: only what is exactly a `Tree` or a
    `Part` may be treated so.
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
    """A tree whose story is written down; it has its trace's root id, which is even (see `Ledger.send`)."""

    __slots__ = ("trace",)

    def __init__(self, account: SpoutAccount, message_id: Hashable, emitted_at: float, trace: Trace) -> None:
        self.trace = trace
        _count.__set__(self, 0)
        super().__init__(account, message_id, emitted_at)


class TracedPart(_Traced, Part):
    """The part of a traced tree."""

    __slots__ = ("trace",)

    def __init__(self, home: int, root_id: int, value: int, count: int, trace: Trace) -> None:
        self.trace = trace
        _count.__set__(self, 0)
        super().__init__(home, root_id, value, 0)
        self.count = count  # of which the trace is told
