"""The XOR ledger of one worker (E1-E18).

An *edge* is one delivery within a tuple tree. In Storm every edge has 64 random bits. An acker XORs these bits into the
tree's value when the edge is made, and again when the edge is acked. A value of zero means that no edge is open. One
message per edge is expensive, and most edges begin and end in one worker. So in stormspark each worker keeps a *count* and a
*value* for each tree that it knows. The worker of the tree's spout is the tree's *home*.

1. *Inside a worker* edges are only counted (`Tree.count`), and have no ids. A tree that never leaves its worker is acked when
   its count is zero, and needs no random bits at all.
2. *Between workers* the tuples of one tree that travel in one frame share **one** random edge. The sender of a frame XORs the
   edge into its own value, and subtracts the tuples from its own count (`send`). The receiver XORs the edge into its own value,
   and adds the tuples to its own count (`receive`). When the count of a worker other than the home is zero, the worker sends its
   value home, as a *part*.

Invariant: over all workers and all parts and frames under way, the XOR of a tree's values and edges is zero. A worker does not
send its value while its count is not zero. Hence at home, count = 0 and value = 0 if and only if every edge is acked (but for a
chance of 2^-64). This holds in whatever order parts and frames arrive (E7). A part or frame that is lost or delivered twice would
break the invariant. Nothing is delivered twice, because workers remember their replies to requests. If a worker is lost, frames
may be lost with it. Then `abandon` fails every tree whose value is not zero, because such a tree has edges outside of its home.

Because values are XORed, a worker may also hold several parts of one tree, each with its own count. So `rotate`, which times
trees out, can also forget parts (E8). Otherwise a bolt that drops tuples without an ack would leave parts behind for ever. If the
edges of a forgotten part are closed after all, the part still sends its value home.

In Storm, an acker task finds out that a tree is done, and sends a message to the spout's task. In stormspark the spout's own
worker finds that out, as Heron's stream manager does (E19), so a verdict needs no further message.

A *branch* is a tree as one worker knows it: a `Tree` at home, a `Part` elsewhere.

A tree gets its root id when its first tuple leaves the worker. A tree is *traced* if its story is written down (`TracedTree`,
`TracedPart`). Root ids of traced trees are even, and all others are odd.
"""

# ledger.pxd beside this module gives the attributes of `Ledger` and some variables their C types, with which Cython compiles this
# module. When you add, rename or retype one of them, change both files and check with `make compiled`. Variables such as `one`,
# `tree` and `known` are second names of objects, for speed: the .pxd declares their types, so compiled code uses the object's C
# fields. Code changes a count through such a name only if the type is exactly `Tree` or `Part`, because the count of a traced
# tree or part is a property.

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from stormspark.acker.tree import Branch, Part, SpoutAccount, Trace, TracedPart, TracedTree, Tree
from stormspark.acker.verdict import ACKED, Outcome, Verdict

__all__ = ["Ledger", "LedgerStatistics", "Parts", "RemoteEdges"]

_FORGOTTEN = Verdict(Outcome.WORKER_LOST, "its spout's task began anew and knows nothing of it")
#: A function that returns why trees have timed out, as far as that is known.
Explain = Callable[[Sequence[Tree]], Mapping[Tree, str]]


class RemoteEdges(NamedTuple):
    """The trees of one frame, as parallel arrays.

    For each tree: its home worker, its root id, its edge, and how many of its tuples the frame holds.
    """

    homes: array[int]
    roots: array[int]
    edges: array[int]
    counts: array[int]


@dataclass
class Parts:
    """The parts and requests that one worker sends to another.

    A tree's home worker receives three things: XOR parts as packed arrays, failures with their verdicts, and the roots of trees
    whose timeouts were reset. ``wanted_stories`` go the other way: a home worker asks another worker for the stories of failed
    trees with these roots.
    """

    roots: array[int] = field(default_factory=lambda: array("Q"))
    values: array[int] = field(default_factory=lambda: array("Q"))
    fails: list[tuple[int, Verdict]] = field(default_factory=list)
    resets: set[int] = field(default_factory=set)
    wanted_stories: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.roots) + len(self.fails) + len(self.resets) + len(self.wanted_stories)


@dataclass(frozen=True)
class LedgerStatistics:
    """The sizes of a ledger's tables.

    There are four tables: open trees, this worker's trees that other workers know, parts of other workers' trees, and what waits
    to be sent to other workers.
    """

    open: int
    known_outside: int
    parts: int
    outgoing: int


class Ledger:
    """The trees that one worker owns, and the parts that it holds of other workers' trees.

    ``edge_ids(n)`` returns n random numbers of 64 bits. ``timeout`` is in seconds of the running clock; None means never.
    ``trace`` is a function that makes the trace of a part from its root id; None if there are no traces. With b ``buckets`` an
    open tree fails after 1 to b / (b - 1) timeouts, which is one to two with Storm's two buckets (E10, E28).
    """

    def __init__(
        self,
        worker: int,
        edge_ids: Callable[[int], Sequence[int]],
        timeout: float | None,
        trace: Callable[[int], Trace] | None = None,
        buckets: int = 2,
    ) -> None:
        self.worker = worker
        self.parts_to_send: dict[int, Parts] = {}
        #: The number of frames packed so far, including the current one. If a branch has this number as its `mark`, the current
        #: frame already has tuples of the branch.
        self.frames = 0
        self.wanted_stories: list[int] = []  # the roots for which other workers want stories
        #: For traces: -1 while tuples leave for another worker, 1 while tuples from another worker come in, else 0.
        self.moving = 0
        self._trace = trace
        self._edge_ids = edge_ids
        self._timeout = timeout
        # Open trees, in buckets. New trees go into the newest bucket. After each `_period`, this bucket is closed and a new one
        # begins. One timeout after a bucket was closed, its trees time out.
        self._newest: dict[Tree, None] = {}
        self._closed: deque[tuple[float, dict[Tree, None]]] = (
            deque()
        )  # (when it was closed, bucket), oldest first
        self._period = math.inf if timeout is None else timeout / (buckets - 1)
        self._rotated_at = self._parts_rotated_at = 0.0
        self._outside: dict[int, Tree] = {}  # this worker's own trees that other workers know, by root id
        # Parts of other workers' trees, by root id: new ones since the last rotation, and those that are one rotation older.
        self._parts: dict[int, Part] = {}
        self._older_parts: dict[int, Part] = {}
        self._forgotten_parts: dict[int, Part] = {}  # forgotten by the last rotation; for stories only

    # -- at home ---------------------------------------------------------------------------------------------

    def begin(self, tree: Tree) -> None:
        """Keep the tree of a reliable emit. The tree's ``count`` already includes the copies of the emitted tuple (B6)."""
        tree.bucket = bucket = self._newest
        bucket[tree] = None
        tree.account.pending += 1

    def drained(self, branch: Branch) -> None:
        """Called when the last edge of ``branch`` in this worker is closed.

        If ``branch`` is a tree without edges in other workers, the tree is acked. If it is a part of another worker's tree, and
        no bolt here has failed it, its value is sent home.
        """
        kind = type(branch)
        if kind is Tree or kind is TracedTree:
            if not branch.value:
                self._end(branch, ACKED)  # type: ignore[arg-type]
        elif branch.home != self.worker:  # type: ignore[attr-defined]
            # If a rotation has forgotten this part, these lines may remove another part of the tree. That part
            # still goes home when its own edges are closed.
            root = branch.root_id
            if self._parts.pop(root, None) is None:
                self._older_parts.pop(root, None)
            # A failed part never sends its value, so the tree can't be acked, whatever the order of parts (E21).
            if branch.verdict is None:
                parts = self._parts_for(branch.home)  # type: ignore[attr-defined]
                parts.roots.append(root)
                parts.values.append(branch.value)

    def fail(self, branch: Branch, verdict: Verdict) -> None:
        """Fail a tree at once. If ``branch`` is a part of another worker's tree, send its first failure home.

        The tree's remaining tuples are still executed, but no longer count (E11, E24).
        """
        if isinstance(branch, Tree):
            self._end(branch, verdict)
        elif isinstance(branch, Part) and branch.home != self.worker and branch.verdict is None:
            branch.verdict = verdict
            if type(branch) is TracedPart:
                branch.trace.ended(branch, verdict)
            self._parts_for(branch.home).fails.append((branch.root_id, verdict))

    def take_parts(self, parts: Parts) -> None:
        """Process what another worker has sent: parts, failures and resets of this worker's trees, and requests for stories.

        Parts, failures and resets are ignored if their tree has ended, or began in an earlier incarnation of this worker (E8,
        E33).
        """
        self.wanted_stories += parts.wanted_stories
        outside = self._outside
        for root, verdict in parts.fails:
            if (tree := outside.get(root)) is not None:
                self._end(tree, verdict)
        for root in parts.resets:
            if (tree := outside.get(root)) is not None:
                self.reset_timeout(tree)
        roots, values = parts.roots, parts.values
        assert len(values) == len(roots)
        for place in range(len(roots)):
            if (tree := outside.get(roots[place])) is not None:
                one: Tree = tree
                one.value ^= values[place]
                if not one.value and not one.count:
                    self._end(one, ACKED)

    def reset_timeout(self, branch: Branch) -> None:
        """Give an open tree a whole timeout again (C11). If its home is another worker, send a message there.

        Bolts ask for this, and the worker does so for trees whose tuples merely wait (W2). Nothing else extends a timeout. A
        failure ends the tree at once (E9).
        """
        if isinstance(branch, Tree):
            if branch.bucket is not None and branch.bucket is not self._newest:
                del branch.bucket[branch]
                branch.bucket = self._newest
                self._newest[branch] = None
        elif isinstance(branch, Part) and branch.home != self.worker and branch.verdict is None:
            self._parts_for(branch.home).resets.add(branch.root_id)

    def rotate(self, running_seconds: float, explain: Explain | None = None) -> int:
        """Time out trees that have been open for too long on the running clock (E10); return the number of these trees.

        ``explain`` gets these trees before they end, and may return the reasons. `rotate` calls ``explain`` at least once per
        timeout, even if there are no such trees.

        One call of `rotate` closes one bucket at most, however far the clock has gone. The bucket's last trees may have begun a
        moment ago. So the timeout of all its trees begins when the bucket is closed, and no tree fails early (E28).
        """
        timeout = self._timeout
        if timeout is None:
            return 0
        expired: list[Tree] = []
        while self._closed and running_seconds - self._closed[0][0] >= timeout:
            expired += self._closed.popleft()[1]
        whole = running_seconds - self._parts_rotated_at >= timeout
        # ``explain`` keeps track of how long tuples have waited, so it is called even if no tree is late.
        if expired or whole:
            late = Verdict(Outcome.TIMED_OUT, f"not fully processed within {timeout:g} s")
            reasons = explain(expired) if explain is not None else {}
            for tree in expired:
                reason = reasons.get(tree)
                self._end(tree, replace(late, reason=f"{late.reason}: {reason}") if reason else late)
        if running_seconds - self._rotated_at >= self._period:
            self._rotated_at = running_seconds
            self._closed.append((running_seconds, self._newest))
            self._newest = {}
        if whole:
            self._parts_rotated_at = running_seconds
            self._forgotten_parts, self._older_parts, self._parts = self._older_parts, self._parts, {}
        return len(expired)

    def abandon(self, reason: str) -> int:
        """Fail the trees that have edges in other workers, because frames and parts under way are lost.

        Return the number of these trees.
        """
        lost = [tree for tree in self._outside.values() if tree.value]
        for tree in lost:
            self._end(tree, Verdict(Outcome.WORKER_LOST, reason))
        self.parts_to_send.clear()
        return len(lost)

    def roll_back(self, reason: str) -> int:
        """Fail all open trees and forget the parts of other workers' trees, because everything under way is taken back.

        Return the number of trees that failed.
        """
        open_trees = list(self.open_trees())
        for tree in open_trees:
            self._end(tree, Verdict(Outcome.TAKEN_BACK, reason))
        self.parts_to_send.clear()
        self._parts, self._older_parts, self._forgotten_parts = {}, {}, {}
        return len(open_trees)

    def forget(self, account: SpoutAccount) -> int:
        """Drop the open trees of a spout task that starts anew, without ack or fail (B10, E35). Return their number."""
        mine = [tree for tree in self.open_trees() if tree.account is account]
        for tree in mine:
            self._end(tree, _FORGOTTEN)
        account.ended.clear()
        return len(mine)

    def _end(self, tree: Tree, verdict: Verdict) -> None:
        bucket = tree.bucket
        if bucket is None:
            return  # The tree has already ended, and there is one verdict per tree (E22).
        del bucket[tree]
        tree.bucket = None
        tree.verdict = verdict
        if type(tree) is TracedTree:
            tree.trace.ended(tree, verdict)
        if tree.root_id:
            del self._outside[tree.root_id]
        account = tree.account
        account.ended.append(tree)  # first, because another thread may read both
        account.pending -= 1

    # -- between workers -------------------------------------------------------------------------------------

    def send(self, counts: Mapping[Branch, int]) -> RemoteEdges:
        """Hand tuples out to another worker. ``counts`` holds how many tuples of each tree are in the frame."""
        return self.hand_out(list(counts), list(counts.values()))

    def hand_out(self, branches: list[Any], counts: list[int]) -> RemoteEdges:
        """Hand out ``counts[i]`` tuples of ``branches[i]``, as `send` does. Each branch occurs once."""
        new = 0
        for known in branches:
            new += not known.root_id  # a part always has a root id
        # `edges`, `homes` and `roots` are second names of the arrays. Through them, compiled code uses the numbers as C does.
        ids = array("Q", self._edge_ids(new))
        all_edges = array("Q", self._edge_ids(len(branches)))
        all_homes = array("i", (self.worker,)) * len(branches)
        all_roots = array("Q", (0,)) * len(branches)
        edges, homes, roots = all_edges, all_homes, all_roots
        new = 0
        self.moving = -1
        for place, branch in enumerate(branches):
            kind = type(branch)
            if kind is Tree or kind is TracedTree:
                tree: Tree = branch
                if not tree.root_id:
                    # The lowest bit tells every worker that receives tuples of the tree whether the tree is traced.
                    root = ids[new] | 1
                    new += 1
                    tree.root_id = branch.trace.root_id if kind is TracedTree else root
                    # A tree that has ended must not be found under its root id, so that late parts of it are ignored.
                    if tree.bucket is not None:
                        self._outside[tree.root_id] = tree
            else:
                homes[place] = branch.home
            known = branch
            roots[place] = known.root_id
            known.value ^= edges[place]
            if kind is Tree or kind is Part:
                known.count -= counts[place]
            else:
                branch.count -= counts[place]
            if not known.count:
                self.drained(branch)
        self.moving = 0
        return RemoteEdges(all_homes, all_roots, all_edges, array("L", counts))

    def receive(self, edges: RemoteEdges) -> list[Branch]:
        """Take over the trees of a frame; return their branches, in the order of ``edges``."""
        here, parts, older, outside = self.worker, self._parts, self._older_parts, self._outside
        self.moving = 1
        branches: list[Branch] = []
        homes, roots, values, counts = edges
        assert len(homes) == len(roots) == len(values) == len(counts)
        for place in range(len(roots)):
            home, root, edge, count = homes[place], roots[place], values[place], counts[place]
            branch: Any = outside.get(root) if home == here else parts.get(root) or older.get(root)
            if branch is not None:
                kind = type(branch)
                known: Branch = branch
                known.value ^= edge
                if kind is Tree or kind is Part:
                    known.count += count
                else:
                    branch.count += count
            elif home == here:
                # This worker is the tree's home, and the tree has ended, but its tuples are still executed (E11). The part is in
                # no table and is never sent.
                branch = Part(home, root, edge, count)
            elif root & 1 or self._trace is None:
                branch = parts[root] = Part(home, root, edge, count)
            else:
                branch = parts[root] = TracedPart(home, root, edge, count, self._trace(root))
            branches.append(branch)
        self.moving = 0
        return branches

    def _parts_for(self, home: int) -> Parts:
        parts = self.parts_to_send.get(home)
        if parts is None:
            parts = self.parts_to_send[home] = Parts()
        return parts

    def ask(self, root: int, workers: Iterable[int]) -> None:
        """Ask other workers for what they know of a failed tree."""
        for worker in workers:
            self._parts_for(worker).wanted_stories.append(root)

    def new_root(self, *, traced: bool) -> int:
        """Return a root id for a tree that has not left its worker. The id of a traced tree is even, any other id is odd."""
        root = self._edge_ids(1)[0]
        return root & ~1 or 2 if traced else root | 1

    # -- for people and tests --------------------------------------------------------------------------------

    def part(self, root: int) -> Part | None:
        """Return this worker's part of another worker's tree, even if the last rotation has forgotten the part."""
        return self._parts.get(root) or self._older_parts.get(root) or self._forgotten_parts.get(root)

    def open_trees(self) -> Iterator[Tree]:
        """Yield the open trees of this worker's spouts, oldest bucket first."""
        for _, bucket in self._closed:
            yield from bucket
        yield from self._newest

    def statistics(self) -> LedgerStatistics:
        """Return a frozen snapshot of the tables' sizes."""
        outgoing = sum(len(parts) for parts in self.parts_to_send.values())
        return LedgerStatistics(
            len(self._newest) + sum(len(bucket) for _, bucket in self._closed),
            len(self._outside),
            len(self._parts) + len(self._older_parts),
            outgoing,
        )

    def validate(self) -> None:
        """Check every invariant that one worker can see. Only tests call this."""
        for bucket in (self._newest, *(bucket for _, bucket in self._closed)):
            for tree in bucket:
                assert tree.bucket is bucket and tree.verdict is None, tree
                assert tree.count > 0 or tree.value, f"{tree} is done, yet open"
        for root, tree in self._outside.items():
            assert tree.root_id == root and tree.bucket is not None, tree
        assert not self._parts.keys() & self._older_parts.keys()
        for root, part in [*self._parts.items(), *self._older_parts.items()]:
            assert part.root_id == root and part.count > 0 and part.home != self.worker, part
