"""Lanes to other workers. Tuples wait in lanes until they leave as frames.

A lane holds the tuples from one task to one task of another worker, in order. A lane is a list, as an inbox is, so an emit to
another worker costs the same as one within this worker. `seal` packs all lanes to one worker into a frame. A frame has columns
of values, and a table of trees. In the table each tree has one edge for all of its tuples in the frame (see
`stormspark.acker.ledger`).

Frames are bounded in bytes. To estimate how many bytes wait, the module weighs some of the tuples, and remembers the weight of
the last frames. A frame that turns out too heavy is packed again as several frames, each with a table of its own.
"""

# lanes.pxd beside this module gives C types for the attributes of `Lanes` and for some variables. Cython compiles this module
# with these types. When you add, rename or retype an attribute or a variable, change both files and check with `make compiled`.
# `branch` is a second name for `roots`, and `numbers` is one for `places`. The .pxd declares `branch` as a `Branch` and
# `numbers` as a typed view of the array, so compiled code reads and writes plain numbers.

from __future__ import annotations

import pickle
from array import array
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from operator import itemgetter
from typing import Any

import cloudpickle

from stormspark.acker import Roots, TracedPart, TracedTree
from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Branch, Part, Tree
from stormspark.worker.tuples.columns import Column, packed
from stormspark.worker.tuples.frame_layout import LENGTH, Block, Orders, Trees
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.tuples.unsendable import FailUnsent, Taken, too_large, unpicklable, without
from stormspark.worker.tuples.weights import exact, shallow, weight

__all__ = ["Lanes"]

_ONE_TREE = frozenset({Tree, Part, TracedTree, TracedPart})
_values_of, _roots_of = itemgetter(0), itemgetter(2)
_NOTHING = (0, 0)
#: If a frame is more than this many times as large as intended, it is packed again, as several frames.
_TOO_HEAVY = 2
#: A frame of lighter tuples reduces the learned weight of a tuple by at most a quarter (the weight divided by this number).
_FORGOTTEN = 4
_NO_LANES: list[list[Delivery]] = []


class Lanes:
    """All lanes from this worker to one other worker.

    After a task has emitted, `is_full` looks only at the lanes of this task, so that the cost per tuple does not grow with the
    number of tasks.
    """

    def __init__(
        self,
        worker: int,
        ledger: Ledger,
        fail: FailUnsent,
        frame_bytes: int = 4 << 20,
        most_bytes: int = 1 << 30,
    ) -> None:
        self.worker = worker
        self._ledger = ledger
        self._fail = fail
        self._lanes: dict[tuple[int, int], list[Delivery]] = {}
        self._streams: Counter[tuple[int, int]] = Counter()
        self._of_sender: dict[int, list[list[Delivery]]] = {}
        #: For each sender, the number of tuples and of bytes that waited when `is_full` last looked at its lanes.
        self._seen: dict[int, tuple[int, int]] = {}
        self.tuples = self.bytes = 0
        self._frame_bytes, self._most_bytes = frame_bytes, most_bytes
        #: `_learned`: the bytes per tuple in the last frames. `_looks`: how often `is_full` has looked at lanes so far.
        self._learned = self._looks = 0

    def inbox(self, sender: int, target: int) -> list[Delivery]:
        """Return the lane from task ``sender`` to task ``target``. Call this once for each stream between them."""
        self._streams[sender, target] += 1
        lane = self._lanes.get((sender, target))
        if lane is None:
            lane = self._lanes[sender, target] = []
            self._of_sender.setdefault(sender, []).append(lane)
        return lane

    def is_full(self, tuples: int, size: int, sender: int | None = None) -> bool:
        """Return whether at least ``tuples`` tuples wait now, or at least about ``size`` bytes.

        Only the lanes of task ``sender`` are counted anew, or all lanes if ``sender`` is None. The bytes are estimated from the
        shallow size of the newest tuple of each lane, from the full weight of one such tuple, and from the last frames.
        """
        self._looks += 1
        for task in self._of_sender if sender is None else (sender,):
            count = waiting = 0
            lanes = self._of_sender.get(task, _NO_LANES)
            for lane in lanes:
                if lane:
                    count += len(lane)
                    waiting += len(lane) * shallow(lane[-1][0])
            if count:
                # Weigh a tuple of a different lane each time. Weighing tuples of all lanes would cost more than sending them.
                lane = lanes[self._looks % len(lanes)]
                if lane:
                    waiting = max(waiting, len(lane) * weight(lane[-1][0]))
                waiting = max(waiting, count * self._learned)
            before, before_bytes = self._seen.get(task, _NOTHING)
            self._seen[task] = (count, waiting)
            self.tuples += count - before
            self.bytes += waiting - before_bytes
        return self.tuples >= tuples or self.bytes >= size

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def by_target(self, sender: int | None = None) -> list[tuple[int, list[Delivery]]]:
        """Return the lanes, or the lanes of one sender, each with the id of its target task."""
        return [(to, lane) for (by, to), lane in self._lanes.items() if sender is None or by == sender]

    def waiting(self) -> Counter[int]:
        """Count the waiting tuples by target task."""
        waiting: Counter[int] = Counter()
        for (_, target), lane in self._lanes.items():
            waiting[target] += len(lane)
        return waiting

    def clear(self) -> None:
        """Drop all waiting tuples."""
        self._take()

    def _take(self) -> list[Taken]:
        """Take all waiting tuples out of the lanes, and return them."""
        taken = [(sender, target, lane[:]) for (sender, target), lane in self._lanes.items() if lane]
        for lane in self._lanes.values():
            lane.clear()  # not a new list, because senders hold this one
        self._seen.clear()
        self.tuples = self.bytes = 0
        return taken

    def seal(self) -> list[tuple[int, bytes]]:
        """Take all waiting tuples, and return them as payloads in sending order, each as (number of tuples, bytes).

        There is a single payload unless the tuples are heavy. A tuple fails if its values can't be pickled, or if they have more
        than ``most_bytes`` bytes. Each such tuple fails with a reason of its own. All other tuples are sent.
        """
        known_heavy = self.bytes > _TOO_HEAVY * self._frame_bytes
        taken = self._take()
        if not taken:
            return []
        # Edges leave last, because by then the edges of tuples that can't be sent are closed.
        if not known_heavy:
            frame = self._pickled(taken)
            if frame is None:
                taken = without(taken, unpicklable, self._fail)
                frame = self._pickled(taken)
                assert frame is not None
            runs, blocks = frame
            if len(blocks) <= min(_TOO_HEAVY * self._frame_bytes, self._most_bytes):
                return [self._with_trees(runs, blocks)] if runs else []
        sealed = []
        for piece in self._pieces(taken):
            frame = self._pickled(piece)
            assert frame is not None
            sealed.append(self._with_trees(*frame))
        return sealed

    def _pickled(self, taken: list[Taken]) -> tuple[list[Taken], bytes] | None:
        """Arrange the taken tuples by stream, and pickle them. Return None if some value can't be pickled."""
        runs, orders = self._by_stream(taken)
        blocks = self._pickled_blocks(runs, orders)
        return None if blocks is None else (runs, blocks)

    def _with_trees(self, runs: list[Taken], blocks: bytes) -> tuple[int, bytes]:
        """Make a payload, and move the edges of its tuples to the other worker."""
        count = sum(len(run) for _, _, run in runs)
        self._learned = max(len(blocks) // count, self._learned - self._learned // _FORGOTTEN)
        trees = pickle.dumps(self._trees(runs), 5)
        return count, b"".join((LENGTH.pack(len(trees)), trees, blocks))

    def _pieces(self, taken: list[Taken]) -> list[list[Taken]]:
        """Cut the taken tuples into pieces of about one frame's bytes each, without those that can't be sent."""
        try:
            sizes = self._weighed(taken)
        except (Exception, SystemExit):
            taken = without(taken, unpicklable, self._fail)
            sizes = self._weighed(taken)
        if sizes and max(sizes) > self._most_bytes:
            each = iter(sizes)
            taken = without(
                taken, lambda delivery: too_large(delivery, next(each), self._most_bytes), self._fail
            )
            sizes = [size for size in sizes if size <= self._most_bytes]
        pieces: list[list[Taken]] = []
        piece: list[Taken] = []
        filled, number = 0, 0
        for sender, target, lane in taken:
            begin = 0
            for end in range(len(lane)):
                size = sizes[number]
                number += 1
                if filled and filled + size > self._frame_bytes:
                    if end > begin:
                        piece.append((sender, target, lane[begin:end]))
                    pieces.append(piece)
                    piece, filled, begin = [], 0, end
                filled += size
            piece.append((sender, target, lane[begin:]))
        if piece:
            pieces.append(piece)
        return pieces

    def _weighed(self, taken: list[Taken]) -> list[int]:
        return exact(delivery[0] for _, _, lane in taken for delivery in lane)

    def _by_stream(self, taken: list[Taken]) -> tuple[list[Taken], Orders]:
        """Split lanes with several streams into one run per stream. Also return the order of the tuples in these lanes (E31)."""
        runs: list[Taken] = []
        orders: Orders = {}
        for sender, target, lane in taken:
            if self._streams[sender, target] == 1:
                runs.append((sender, target, lane))
                continue
            of_stream: dict[str, list[Delivery]] = {}
            for delivery in lane:
                of_stream.setdefault(delivery[1].stream, []).append(delivery)
            if len(of_stream) > 1:
                numbers = {stream: number for number, stream in enumerate(of_stream)}
                order = array("H", [numbers[delivery[1].stream] for delivery in lane])
                orders[len(runs)] = (len(of_stream), order)
            runs.extend((sender, target, run) for run in of_stream.values())
        return runs, orders

    def _pickled_blocks(self, runs: list[Taken], orders: Orders) -> bytes | None:
        blocks = (
            [
                Block(target, sender, run[0][1].stream, len(run), _columns(run))
                for sender, target, run in runs
            ],
            orders,
        )
        try:
            return pickle.dumps(blocks, 5)
        except (Exception, SystemExit):
            pass
        try:
            return cloudpickle.dumps(blocks, 5)  # type: ignore[no-any-return]  # for classes of notebooks and scripts
        except (Exception, SystemExit):
            return None

    def _trees(self, runs: list[Taken]) -> Trees:
        """Give each tree of the frame its edge to the other worker."""
        return self._trees_of_ones(runs) or self._trees_of_any(runs)

    def _trees_of_ones(self, runs: list[Taken]) -> Trees | None:
        """Make the table of trees if every tuple has exactly one tree, which is the usual case. Otherwise return None.

        Each branch (a `Tree` or a `Part`) is marked with the frame and with the branch's place in the table. Without this mark,
        the branch of each tuple would have to be looked up.
        """
        ledger = self._ledger
        ledger.frames += 1
        mark = ledger.frames
        branches: list[Branch] = []
        counts: list[int] = []
        references: list[array[int] | None] = []
        for _, _, run in runs:
            places = array("I", (0,)) * len(run)
            numbers = places
            for number, delivery in enumerate(run):
                roots = delivery[2]
                kind = type(roots)
                if kind is not Tree and kind is not Part and kind not in _ONE_TREE:
                    return None
                branch: Any = roots
                if branch.mark == mark:
                    place = branch.place
                    counts[place] += 1
                else:
                    branch.mark = mark
                    branch.place = place = len(branches)
                    branches.append(branch)
                    counts.append(1)
                numbers[number] = place
            references.append(places)
        return Trees(ledger.hand_out(branches, counts), None, references)

    def _trees_of_any(self, runs: list[Taken]) -> Trees:
        roots = [list(map(_roots_of, run)) for _, _, run in runs]
        by_key = Counter(chain.from_iterable(roots))
        if set(map(type, by_key)) <= _ONE_TREE:
            by_tree, keys = by_key, None
        else:
            by_tree, keys = _by_tree(by_key)
        positions = dict(zip(by_key, range(len(by_key)), strict=True))
        edges = self._ledger.send(by_tree)
        if not by_tree:
            return Trees(edges, keys, [None] * len(runs))
        return Trees(edges, keys, [array("I", map(positions.__getitem__, of_run)) for of_run in roots])


def _columns(run: list[Delivery]) -> list[Column]:
    """Return the values of a run of one stream, by column."""
    if len(run[0][0]) == 1:
        return [packed([delivery[0][0] for delivery in run])]
    return [packed(column) for column in zip(*map(_values_of, run), strict=True)]


def _by_tree(by_key: Mapping[Roots, int]) -> tuple[Counter[Branch], list[int | tuple[int, ...] | None]]:
    """Count tuples by tree, in a frame where some tuples belong to no tree or to several. Also return the indices of the trees
    of each key of ``by_key``.
    """
    by_tree: Counter[Branch] = Counter()
    for key, count in by_key.items():
        for tree in key if isinstance(key, tuple) else (key,):
            if tree is not None:
                by_tree[tree] += count
    numbers = {tree: number for number, tree in enumerate(by_tree)}
    keys: list[int | tuple[int, ...] | None] = [
        tuple(numbers[tree] for tree in key)
        if isinstance(key, tuple)
        else None
        if key is None
        else numbers[key]
        for key in by_key
    ]
    return by_tree, keys
