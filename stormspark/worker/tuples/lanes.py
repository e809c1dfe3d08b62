"""Lanes to other workers: tuples wait here until they leave as frames.

A lane holds the tuples from one task to one task of another worker, in order, so that emitting to another worker costs the
same as emitting within this one. `seal` packs all lanes to one worker into a frame: columns of values, and a table of trees
in which each tree has one edge for all of its tuples in the frame (see `stormspark.acker.ledger`).

Frames are bounded in bytes. The bytes that wait are an estimate, from the weight of some tuples and from the weight of the last
frames. A frame that turns out too heavy is packed again, as several frames that each have a table of their own.
"""

# lanes.pxd beside this module gives the attributes of `Lanes` and some variables their C types, with which Cython
# compiles it. When you add, rename or retype one of them, change both files and check with `make compiled`.
# `branch` and `numbers` are second names, for speed: the .pxd declares them as a `Branch` and as a typed view of the
# array, so compiled code reads and writes plain numbers.

from __future__ import annotations

import pickle
import struct
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import cloudpickle

from stormspark.acker import Outcome, RemoteEdges, Roots, TracedPart, TracedTree, Verdict
from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Branch, Part, Tree
from stormspark.api import TupleSource
from stormspark.worker.tuples.columns import Column, packed, unpacked
from stormspark.worker.tuples.edges import fail_roots
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.tuples.salvage import Damaged, error_text, salvage
from stormspark.worker.tuples.weights import exact, shallow, weight

__all__ = ["Lanes", "unpack"]

_LENGTH = struct.Struct("<Q")
_ONE_TREE = frozenset({Tree, Part, TracedTree, TracedPart})
_values_of, _roots_of = itemgetter(0), itemgetter(2)
_NOTHING = (0, 0)
#: A frame of more than this many times its intended bytes is packed again, as several.
_TOO_HEAVY = 2
#: The learned weight of a tuple decays with each frame of lighter tuples, by one part in so many.
_FORGOTTEN = 4
_NO_LANES: list[list[Delivery]] = []


class _Block(NamedTuple):
    """Tuples of one stream of task ``sender`` for task ``target``, in order, by column."""

    target: int
    sender: int
    stream: str
    count: int  # type: ignore[assignment]  # hides a tuple's method of that name, which nobody needs
    columns: list[Column]


class _Trees(NamedTuple):
    """The trees of a frame, and which of them each tuple belongs to.

    ``keys``: the distinct values that a tuple's roots have in this frame: None, the number of a tree, or several numbers. It is
    None itself if every tuple has one tree; then a key is the number of a tree. ``references``: for each block, the positions
    of its tuples' keys; None if the frame has no trees at all.
    """

    edges: RemoteEdges
    keys: list[int | tuple[int, ...] | None] | None
    references: list[array[int] | None]


#: For a lane with several streams, by the number of its first block: how many blocks it has, and the block of each tuple in
#: order.
_Orders: TypeAlias = "dict[int, tuple[int, array[int]]]"
#: The content of a lane: its sender, its target and its deliveries.
_Taken: TypeAlias = tuple[int, int, list[Delivery]]
#: Fails tuples that can't be sent. Takes the id of the sending task, the roots of each tuple, and the reason.
FailUnsent = Callable[[int, Iterable[Roots], str], None]
#: Fails a tuple that can't be unpickled. Takes the task that it was for, its roots, and the reason. The task is None if nobody
#: knows whom the tuple was for; then its trees have failed already.
Refuse = Callable[["int | None", Roots, str], None]


class _Damage(NamedTuple):
    """The field of a tuple that can't be unpickled, its type, and the reason."""

    field: int
    kind: str
    reason: str


class Lanes:
    """All lanes from this worker to one other worker.

    After a task has emitted, only its own lanes are looked at (`is_full`), so that the cost per tuple does not grow with the
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
        #: The tuples and bytes that waited at the last look: of each sender, and of all.
        self._seen: dict[int, tuple[int, int]] = {}
        self.tuples = self.bytes = 0
        self._frame_bytes, self._most_bytes = frame_bytes, most_bytes
        #: The bytes per tuple in the last frames, and the number of looks so far.
        self._learned = self._looks = 0

    def inbox(self, sender: int, target: int) -> list[Delivery]:
        """Return the lane from task ``sender`` to task ``target``, for one more stream."""
        self._streams[sender, target] += 1
        lane = self._lanes.get((sender, target))
        if lane is None:
            lane = self._lanes[sender, target] = []
            self._of_sender.setdefault(sender, []).append(lane)
        return lane

    def is_full(self, tuples: int, size: int, sender: int | None = None) -> bool:
        """Return whether at least ``tuples`` tuples wait now, or about ``size`` bytes.

        Only the lanes of task ``sender`` are counted anew, or all lanes if it is None. Bytes are an estimate: by the shallow
        size of the newest tuple of each lane, by the full weight of one such tuple, and by the last frames.
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
                # A different lane each time: to weigh tuples of all lanes would cost more than to send the tuples.
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
        """Return the lanes, or those of one sender, each with the task that it is for."""
        return [(to, lane) for (by, to), lane in self._lanes.items() if sender is None or by == sender]

    def waiting(self) -> Counter[int]:
        """Count the waiting tuples by the task that they are for."""
        waiting: Counter[int] = Counter()
        for (_, target), lane in self._lanes.items():
            waiting[target] += len(lane)
        return waiting

    def clear(self) -> None:
        """Drop all waiting tuples."""
        self._take()

    def _take(self) -> list[_Taken]:
        """Take all waiting tuples out of the lanes, and return them."""
        taken = [(sender, target, lane[:]) for (sender, target), lane in self._lanes.items() if lane]
        for lane in self._lanes.values():
            lane.clear()  # not a new list, because senders hold this one
        self._seen.clear()
        self.tuples = self.bytes = 0
        return taken

    def seal(self) -> list[tuple[int, bytes]]:
        """Take all waiting tuples, and return them as payloads in sending order: pairs of a number of tuples and bytes.

        There is one payload unless the tuples are heavy. Tuples whose values can't be pickled fail, with a reason that names
        them, and so do tuples that are too large for Spark's rows. All others are sent.
        """
        known_heavy = self.bytes > _TOO_HEAVY * self._frame_bytes
        taken = self._take()
        if not taken:
            return []
        # Edges leave last: by then the tuples that could not be sent have closed theirs.
        if not known_heavy:
            frame = self._pickled(taken)
            if frame is None:
                taken = self._without(taken, self._unpicklable)
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

    def _pickled(self, taken: list[_Taken]) -> tuple[list[_Taken], bytes] | None:
        """Arrange the taken tuples by stream, and pickle them; None if some value can't be pickled."""
        runs, orders = self._by_stream(taken)
        blocks = self._pickled_blocks(runs, orders)
        return None if blocks is None else (runs, blocks)

    def _with_trees(self, runs: list[_Taken], blocks: bytes) -> tuple[int, bytes]:
        """Make a payload, and let its edges leave with it."""
        count = sum(len(run) for _, _, run in runs)
        self._learned = max(len(blocks) // count, self._learned - self._learned // _FORGOTTEN)
        trees = pickle.dumps(self._trees(runs), 5)
        return count, b"".join((_LENGTH.pack(len(trees)), trees, blocks))

    def _pieces(self, taken: list[_Taken]) -> list[list[_Taken]]:
        """Cut the taken tuples into pieces of about one frame's bytes each, without those that can't be sent."""
        try:
            sizes = self._weighed(taken)
        except (Exception, SystemExit):
            taken = self._without(taken, self._unpicklable)
            sizes = self._weighed(taken)
        if sizes and max(sizes) > self._most_bytes:
            each = iter(sizes)
            taken = self._without(taken, lambda delivery: self._too_large(delivery, next(each)))
            sizes = [size for size in sizes if size <= self._most_bytes]
        pieces: list[list[_Taken]] = []
        piece: list[_Taken] = []
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

    def _weighed(self, taken: list[_Taken]) -> list[int]:
        return exact(delivery[0] for _, _, lane in taken for delivery in lane)

    def _by_stream(self, taken: list[_Taken]) -> tuple[list[_Taken], _Orders]:
        """Split lanes with several streams into one run per stream; also return in which order these were mixed (E31)."""
        runs: list[_Taken] = []
        orders: _Orders = {}
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

    def _pickled_blocks(self, runs: list[_Taken], orders: _Orders) -> bytes | None:
        blocks = (
            [
                _Block(target, sender, run[0][1].stream, len(run), _columns(run))
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

    def _without(self, taken: list[_Taken], problem: Callable[[Delivery], str | None]) -> list[_Taken]:
        """Return the taken tuples without those that have a ``problem``; these fail, with that reason."""
        sendable = []
        for sender, target, lane in taken:
            kept = []
            for delivery in lane:
                reason = problem(delivery)
                if reason is None:
                    kept.append(delivery)
                    continue
                _, source, roots = delivery
                self._fail(source.task, (roots,), reason)
            if kept:
                sendable.append((sender, target, kept))
        return sendable

    def _unpicklable(self, delivery: Delivery) -> str | None:
        values, source, _ = delivery
        error = _pickle_error(values)
        if error is None:
            return None
        name, cause = error
        return (
            f"field {name} of a tuple on stream {source.stream!r} of {source.component!r} can't be pickled, so it "
            f"can't go to another worker: {cause} (C8)"
        )

    def _too_large(self, delivery: Delivery, size: int) -> str | None:
        source = delivery[1]
        if size <= self._most_bytes:
            return None
        return (
            f"a tuple on stream {source.stream!r} of {source.component!r} has {size:,} bytes, and one that goes to another "
            f"worker may have {self._most_bytes:,} (stormspark.tuple.max.bytes): emit it in parts, or where to find it"
        )

    def _trees(self, runs: list[_Taken]) -> _Trees:
        """Give each tree of the frame its edge."""
        return self._trees_of_ones(runs) or self._trees_of_any(runs)

    def _trees_of_ones(self, runs: list[_Taken]) -> _Trees | None:
        """Make the table of trees if every tuple has exactly one tree, as nearly always; else return None, and hand out no edge.

        Each branch is marked with the frame and its place in it, which saves looking up some 4,000 branches per frame.
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
        return _Trees(ledger.hand_out(branches, counts), None, references)

    def _trees_of_any(self, runs: list[_Taken]) -> _Trees:
        roots = [list(map(_roots_of, run)) for _, _, run in runs]
        by_key = Counter(chain.from_iterable(roots))
        if set(map(type, by_key)) <= _ONE_TREE:
            by_tree, keys = by_key, None
        else:
            by_tree, keys = _by_tree(by_key)
        positions = dict(zip(by_key, range(len(by_key)), strict=True))
        edges = self._ledger.send(by_tree)
        if not by_tree:
            return _Trees(edges, keys, [None] * len(runs))
        return _Trees(edges, keys, [array("I", map(positions.__getitem__, of_run)) for of_run in roots])


def _columns(run: list[Delivery]) -> list[Column]:
    """Return the values of a run of one stream, by column."""
    if len(run[0][0]) == 1:
        return [packed([delivery[0][0] for delivery in run])]
    return [packed(column) for column in zip(*map(_values_of, run), strict=True)]


def _by_tree(by_key: Mapping[Roots, int]) -> tuple[Counter[Branch], list[int | tuple[int, ...] | None]]:
    """Count tuples by tree, where some belong to no tree or to several; also return which trees each key stands for."""
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


def unpack(
    payload: bytes | memoryview,
    ledger: Ledger,
    sources: Mapping[tuple[int, str], TupleSource],
    inboxes: Mapping[int, list[Delivery]],
    traced: list[Branch] | None = None,
    refuse: Refuse | None = None,
) -> int:
    """Put a frame's tuples into the inboxes of their tasks, and their edges into the ledger; return the number of tuples.

    ``traced`` is the list that collects the branches of traced trees while the ledger takes in the edges. Their traces learn
    which tasks the frame's tuples are for, and then the list is cleared. If a tuple has a value that can't be unpickled,
    ``refuse`` is called for it, with a reason that names the value. By default that fails the tuple. The other tuples arrive.
    """
    view = memoryview(payload)
    split = _LENGTH.size + _LENGTH.unpack_from(view)[0]
    edges, keys, references = pickle.loads(view[_LENGTH.size : split])
    branches = ledger.receive(edges)
    trees: list[Any] = branches
    if keys is not None:
        trees = [
            None if key is None else trees[key] if type(key) is int else tuple(trees[one] for one in key)
            for key in keys
        ]
    damage: list[dict[int, _Damage]] | None = None
    if refuse is None:
        refuse = partial(_fail, ledger)
    try:
        blocks, orders = pickle.loads(view[split:])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # raised by a value's class, which may raise anything
        read = _salvaged(view[split:])
        if read is None:
            _fail_all(branches, edges, ledger, refuse, error)
            return 0
        blocks, orders, damage = read
    if traced:
        for branch in traced:
            _tell_arrivals(branch, trees, keys, blocks, references)
        traced.clear()
    received = mixed = 0
    runs: list[Iterator[Delivery]] = []
    for number, (block, reference) in enumerate(zip(blocks, references, strict=True)):
        target, sender, stream, count, columns = block
        source = sources[sender, stream]
        received += count
        simple = reference is not None and len(columns) == 1 and not mixed and number not in orders
        if simple and damage is None:
            _arrive(inboxes[target], list(unpacked(columns[0])), source, trees, reference)
            continue
        values: Iterable[tuple[Any, ...]] = (
            zip(*map(unpacked, columns), strict=True) if columns else [()] * count
        )
        trees_of: Iterable[Any] = repeat(None) if reference is None else map(trees.__getitem__, reference)
        deliveries: Iterator[Any] = zip(values, repeat(source), trees_of)
        if damage is not None:
            deliveries = _refused(deliveries, damage[number], target, refuse)
        if number in orders:
            mixed, order = orders[number]
        if not mixed:
            inboxes[target].extend(deliveries if damage is None else filter(None, deliveries))
            continue
        runs.append(deliveries)
        if len(runs) == mixed:
            ordered = [next(runs[run]) for run in order]
            inboxes[target].extend(ordered if damage is None else filter(None, ordered))
            mixed, runs = 0, []
    return received


def _salvaged(data: memoryview) -> tuple[list[_Block], _Orders, list[dict[int, _Damage]]] | None:
    """Read a frame in which some value can't be unpickled: its blocks, and for each block its damaged tuples by position.

    Returns None if the frame itself can't be read.
    """
    read = salvage(data, keep=(_Block,))
    if type(read.whole) is not tuple or not all(type(part) is _Block for part in read.whole[0]):
        return None
    blocks, orders = read.whole
    damage: list[dict[int, _Damage]] = []
    for block in blocks:
        of_block: dict[int, _Damage] = {}
        for field, column in enumerate(block.columns):
            if type(column) is tuple:
                for position, value in enumerate(column):
                    reason = read.damage_of(value)
                    if reason is not None:
                        kind = value.kind if isinstance(value, Damaged) else type(value).__qualname__
                        of_block.setdefault(position, _Damage(field, kind, reason))
        damage.append(of_block)
    return blocks, orders, damage


def _refused(
    deliveries: Iterable[Delivery], damage: Mapping[int, _Damage], target: int, refuse: Refuse
) -> Iterator[Any]:
    """Iterate over the deliveries of a block. Call ``refuse`` for each damaged one, and yield None in its place."""
    for position, delivery in enumerate(deliveries):
        found = damage.get(position)
        if found is None:
            yield delivery
            continue
        _, source, roots = delivery
        reason = (
            f"field {source.fields[found.field]!r} ({found.kind}) of a tuple on stream {source.stream!r} of "
            f"{source.component!r}, task {source.task}, can't be unpickled: {found.reason}. Emit plain values, or let the "
            f"class say how it is made again (__reduce__); topology.testing.always.try.serialize tries it with every tuple (C8)"
        )
        refuse(target, roots, reason)
        yield None


def _fail(ledger: Ledger, target: int | None, roots: Roots, reason: str) -> None:
    fail_roots(ledger, roots, Verdict(Outcome.FAILED, reason, None, target))


def _fail_all(
    branches: list[Branch], edges: RemoteEdges, ledger: Ledger, refuse: Refuse, error: BaseException
) -> None:
    """Fail the trees of a frame that can't be read, and close its edges: nobody knows which tuples were in it."""
    reason = f"a frame of tuples from another worker can't be read: {error_text(error)}"
    for branch, count in zip(branches, edges.counts, strict=True):
        for _ in range(count):
            fail_roots(ledger, branch, Verdict(Outcome.FAILED, reason))
    refuse(None, None, reason)


def _arrive(
    inbox: list[Delivery], column: list[Any], source: TupleSource, trees: list[Any], reference: array[int]
) -> None:
    """Put tuples of one value each into an inbox. Most tuples are like that."""
    numbers = reference
    for place in range(len(column)):
        inbox.append(((column[place],), source, trees[numbers[place]]))


def _tell_arrivals(
    branch: Any, trees: list[Any], keys: object, blocks: list[_Block], references: list[array[int] | None]
) -> None:
    """Record in the trace of a branch how many of a frame's tuples are for which task."""
    if keys is None:
        numbers = [trees.index(branch)]
    else:
        numbers = [n for n, of in enumerate(trees) if of is branch or (type(of) is tuple and branch in of)]
    for block, reference in zip(blocks, references, strict=True):
        tuples = sum(map(reference.count, numbers)) if reference is not None else 0
        if tuples:
            branch.trace.arrived(block.target, tuples)


def _pickle_error(values: tuple[Any, ...]) -> tuple[str, str] | None:
    """Return which of ``values`` can't be pickled and why; None if all can."""
    for position, value in enumerate(values):
        try:
            cloudpickle.dumps(value)
        except (Exception, SystemExit) as error:
            return f"{position} ({type(value).__name__})", error_text(error)
    return None
