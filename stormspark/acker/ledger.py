"""The XOR ledger of one worker (E1-E18, tiers 1 and 2).

Storm gives every edge of a tuple tree 64 random bits and XORs them at an acker when the edge is made and again when it is acked:
zero means that nothing is open. A message an edge is dear, and most edges begin and end in one worker. So here:

1. *Inside a worker* edges are counted (`Tree.count`), not numbered; a tree that never leaves its worker ends when its count
   is zero and needs no random bits at all.
2. *Between workers* the tuples of one tree that travel in one frame share **one** random edge. Handing the frame out XORs the
   edge into the sender's value and takes the tuples off its count (`send`); the receiver XORs it into its own value and puts
   them on its count (`receive`). A worker sends its value home, as a *part*, only when its count is zero.

Invariant: over all workers and all parts and frames under way, the XOR of a tree's values and edges is zero, and a worker whose
count is not zero still holds back a value. Hence, at home: count = 0 and value = 0 if and only if every edge is acked (but for
a chance of 2^-64), in whatever order parts arrive, also before the home knows of the edges (E7). What breaks it: a part
or frame that is lost or delivered twice. Frames are never delivered twice (replies are remembered per request), and when some
may be lost, with a worker, `abandon` fails every tree with something outside: its value is not zero.

What Storm does otherwise: an acker task keeps the record and tells the spout; here the spout's own worker keeps it, as Heron's stream
manager does (E19), so a verdict needs no further message.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stormspark.acker.tree import SpoutAccount, Tree
from stormspark.acker.verdict import ACKED, Outcome, Verdict

__all__ = ["Ledger", "LedgerStatistics", "Parts", "RemoteEdges"]


class RemoteEdges(NamedTuple):
    """The trees of one frame: for each its home worker, root id, edge, and how many of its tuples the frame holds."""

    homes: array[int]
    roots: array[int]
    edges: array[int]
    counts: array[int]


@dataclass
class Parts:
    """What goes home to one worker: XOR parts as packed arrays, and fails with their reasons."""

    roots: array[int] = field(default_factory=lambda: array("Q"))
    values: array[int] = field(default_factory=lambda: array("Q"))
    fails: list[tuple[int, Verdict]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.roots) + len(self.fails)


@dataclass(frozen=True)
class LedgerStatistics:
    """Sizes of a ledger's tables: open trees, those with edges elsewhere, parts of other workers' trees, parts to send."""

    open: int
    known_outside: int
    parts: int
    outgoing: int


class Ledger:
    """The trees that one worker owns, and the parts that it holds of other workers' trees.

    ``edge_id`` gives 64 random bits that are not zero; ``timeout`` is in seconds of the running clock, None for never.
    """

    def __init__(self, worker: int, edge_id: Callable[[], int], timeout: float | None) -> None:
        self.worker = worker
        self.parts_to_send: dict[int, Parts] = {}
        self._edge_id = edge_id
        self._timeout = timeout
        # Two buckets, rotated once a timeout: a tree fails after one to two timeouts (E10, E28).
        self._newest: dict[Tree, None] = {}
        self._oldest: dict[Tree, None] = {}
        self._rotated_at = 0.0
        self._outside: dict[int, Tree] = {}  # own trees that other workers know, by root id
        self._parts: dict[int, Tree] = {}  # parts of other workers' trees, by root id

    # -- at home ---------------------------------------------------------------------------------------------------------

    def begin(self, tree: Tree) -> None:
        """Keep the tree of a reliable emit, whose copies are on its ``count`` already (B6)."""
        tree.bucket = bucket = self._newest
        bucket[tree] = None
        account = tree.account
        assert account is not None
        account.pending += 1

    def drained(self, tree: Tree) -> None:
        """The last local edge of ``tree`` is closed: end the tree, or send its part home."""
        if tree.account is not None:
            if not tree.value:
                self._end(tree, ACKED)
        elif tree.home != self.worker:
            del self._parts[tree.root_id]
            parts = self._parts_for(tree.home)
            parts.roots.append(tree.root_id)
            parts.values.append(tree.value)

    def fail(self, tree: Tree, verdict: Verdict) -> None:
        """Fail a tree at once; what is left of it runs on and is ignored (E11, E24)."""
        if tree.account is not None:
            self._end(tree, verdict)
        elif tree.home != self.worker and tree.verdict is None:
            tree.verdict = verdict
            self._parts_for(tree.home).fails.append((tree.root_id, verdict))

    def take_parts(self, parts: Parts) -> None:
        """Parts came home. Those of trees that have ended, or of an earlier life of this worker, are ignored (E8, E33)."""
        outside = self._outside
        # A fail is told before the part that follows it, so that the XOR can't ack what a bolt has failed.
        for root, verdict in parts.fails:
            if (tree := outside.get(root)) is not None:
                self._end(tree, verdict)
        for root, value in zip(parts.roots, parts.values, strict=True):
            if (tree := outside.get(root)) is not None:
                tree.value ^= value
                if not tree.value and not tree.count:
                    self._end(tree, ACKED)

    def reset_timeout(self, tree: Tree) -> None:
        """Give an open tree of this worker a whole timeout again (C11)."""
        if tree.bucket is not None and tree.bucket is not self._newest:
            del tree.bucket[tree]
            tree.bucket = self._newest
            self._newest[tree] = None

    def rotate(self, running_seconds: float) -> int:
        """Time out what has been open for too long on the running clock (E10); return how many trees that were."""
        timeout = self._timeout
        if timeout is None or running_seconds - self._rotated_at < timeout:
            return 0
        self._rotated_at = running_seconds
        expired = list(self._oldest)
        for tree in expired:
            self._end(tree, Verdict(Outcome.TIMED_OUT, f"not fully processed within {timeout:g} s"))
        self._oldest, self._newest = self._newest, {}
        return len(expired)

    def abandon(self, reason: str) -> int:
        """Frames and parts under way are lost: fail the trees that have something outside (module docstring)."""
        lost = [tree for tree in self._outside.values() if tree.value]
        for tree in lost:
            self._end(tree, Verdict(Outcome.WORKER_LOST, reason))
        self.parts_to_send.clear()
        return len(lost)

    def forget(self, account: SpoutAccount) -> int:
        """A spout task starts anew: its trees are gone, without ack or fail (B10, E35)."""
        mine = [tree for bucket in (self._newest, self._oldest) for tree in bucket if tree.account is account]
        for tree in mine:
            self._end(tree, ACKED)
        account.ended.clear()
        return len(mine)

    def _end(self, tree: Tree, verdict: Verdict) -> None:
        bucket = tree.bucket
        if bucket is None:
            return  # it has ended already: one verdict a tree (E22)
        del bucket[tree]
        tree.bucket = None
        tree.verdict = verdict
        if tree.root_id:
            del self._outside[tree.root_id]
        account = tree.account
        assert account is not None
        account.pending -= 1
        account.ended.append(tree)

    # -- between workers -------------------------------------------------------------------------------------------------

    def send(self, counts: dict[Tree, int]) -> RemoteEdges:
        """Hand tuples out to another worker: ``counts`` says how many of each tree the frame holds."""
        edges = RemoteEdges(array("i"), array("Q"), array("Q"), array("L"))
        for tree, count in counts.items():
            root = tree.root_id
            if not root:
                tree.root_id = root = self._edge_id()
                # A tree that has ended is not to be found again: its late parts are ignored.
                if tree.bucket is not None:
                    self._outside[root] = tree
            edge = self._edge_id()
            tree.value ^= edge
            tree.count -= count
            edges.homes.append(self.worker if tree.account is not None else tree.home)
            edges.roots.append(root)
            edges.edges.append(edge)
            edges.counts.append(count)
            if not tree.count:
                self.drained(tree)
        return edges

    def receive(self, edges: RemoteEdges) -> list[Tree]:
        """Take the trees of a frame over; the list is parallel to ``edges`` and to the frame's references."""
        return [self._received(*one) for one in zip(*edges, strict=True)]

    def _received(self, home: int, root: int, edge: int, count: int) -> Tree:
        tree = self._outside.get(root) if home == self.worker else self._parts.get(root)
        if tree is None:
            # A part of another worker's tree; or a tree of ours that has ended, whose tuples still run (E11): it stays
            # outside of every table, which `drained` and `fail` see from its having no account at home.
            tree = Tree(None, None, 0.0)
            tree.root_id = root
            tree.home = home
            if home != self.worker:
                self._parts[root] = tree
        tree.value ^= edge
        tree.count += count
        return tree

    def _parts_for(self, home: int) -> Parts:
        parts = self.parts_to_send.get(home)
        if parts is None:
            parts = self.parts_to_send[home] = Parts()
        return parts

    # -- for people and tests --------------------------------------------------------------------------------------------

    def open_trees(self) -> Iterator[Tree]:
        """The open trees of this worker's spouts, oldest bucket first."""
        yield from self._oldest
        yield from self._newest

    def statistics(self) -> LedgerStatistics:
        """A frozen snapshot of the tables' sizes."""
        outgoing = sum(len(parts) for parts in self.parts_to_send.values())
        return LedgerStatistics(len(self._newest) + len(self._oldest), len(self._outside), len(self._parts), outgoing)

    def validate(self) -> None:
        """Check every invariant that one worker can see; on in tests."""
        for bucket in (self._newest, self._oldest):
            for tree in bucket:
                assert tree.bucket is bucket and tree.account is not None and tree.verdict is None, tree
                assert tree.count > 0 or tree.value, f"{tree} is done, yet open"
        for root, tree in self._outside.items():
            assert tree.root_id == root and tree.bucket is not None, tree
        for root, tree in self._parts.items():
            assert tree.root_id == root and tree.count > 0 and tree.home not in (-1, self.worker), tree
