"""The unpacking of a frame. The frame's tuples go into the inboxes of their tasks, and its edges go into the ledger.

If a value can't be unpickled, its tuple fails, and the other tuples arrive.
"""

# unpacking.pxd beside this module gives C types for some variables, and Cython compiles this module with these types. When you
# rename or retype one of these variables, change both files and check with `make compiled`.
# `numbers` in `_arrive` is a second name, for speed: the .pxd declares it as a typed view of the array, so compiled code reads
# plain numbers.

from __future__ import annotations

import pickle
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from stormspark.acker import Outcome, RemoteEdges, Roots, Verdict
from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Branch
from stormspark.api import TupleSource
from stormspark.worker.tuples.columns import unpacked
from stormspark.worker.tuples.edges import fail_roots
from stormspark.worker.tuples.frame_layout import LENGTH, Block, Orders
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.tuples.salvage import Damaged, error_text, salvage

__all__ = ["Refuse", "unpack"]

#: A function that fails a tuple that can't be unpickled. It takes the task that should have received the tuple, the tuple's
#: roots, and the reason. The task is None if nobody knows it. In that case the trees have failed already.
Refuse = Callable[["int | None", Roots, str], None]


class _Damage(NamedTuple):
    """The field of a tuple that can't be unpickled, its type, and the reason."""

    field: int
    kind: str
    reason: str


def unpack(
    payload: bytes | memoryview,
    ledger: Ledger,
    sources: Mapping[tuple[int, str], TupleSource],
    inboxes: Mapping[int, list[Delivery]],
    traced: list[Branch] | None = None,
    refuse: Refuse | None = None,
) -> int:
    """Put a frame's tuples into the inboxes of their tasks, and their edges into the ledger. Return the number of tuples.

    While the ledger takes in the edges, it calls the `Recording` of each traced tree (`stormspark.worker.stories`), and the
    `Recording` appends the tree's branch to the list ``traced``. This function records in the traces of these branches which
    tasks the frame's tuples are for, and clears the list. If a tuple has a value that can't be unpickled, ``refuse`` is called
    for the tuple, with a reason that names the field. By default ``refuse`` fails the tuple. The other tuples arrive. If the
    whole frame can't be read, all its trees fail, and 0 is returned.
    """
    view = memoryview(payload)
    split = LENGTH.size + LENGTH.unpack_from(view)[0]
    edges, keys, references = pickle.loads(view[LENGTH.size : split])
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
            _trace_arrivals(branch, trees, keys, blocks, references)
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


def _salvaged(data: memoryview) -> tuple[list[Block], Orders, list[dict[int, _Damage]]] | None:
    """Read a frame in which some value can't be unpickled. Return its blocks and `Orders`, and the damaged tuples of each block
    by position.

    Returns None if the frame itself can't be read.
    """
    read = salvage(data, keep=(Block,))
    if type(read.whole) is not tuple or not all(type(part) is Block for part in read.whole[0]):
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
    """Iterate over the deliveries of a block. Call ``refuse`` for each damaged delivery, and yield None in its place."""
    for position, delivery in enumerate(deliveries):
        found = damage.get(position)
        if found is None:
            yield delivery
            continue
        _, source, roots = delivery
        reason = (
            f"field {source.fields[found.field]!r} ({found.kind}) of a tuple on stream {source.stream!r} of "
            f"{source.component!r}, task {source.task}, can't be unpickled: {found.reason}. Emit plain values, or "
            f"define __reduce__ in the class; topology.testing.always.try.serialize tries it with every tuple"  # C8
        )
        refuse(target, roots, reason)
        yield None


def _fail(ledger: Ledger, target: int | None, roots: Roots, reason: str) -> None:
    fail_roots(ledger, roots, Verdict(Outcome.FAILED, reason, None, target))


def _fail_all(
    branches: list[Branch], edges: RemoteEdges, ledger: Ledger, refuse: Refuse, error: BaseException
) -> None:
    """Fail the trees of a frame that can't be read, and close its edges, because the tuples in the frame are unknown."""
    reason = f"a frame of tuples from another worker can't be read: {error_text(error)}"
    for branch, count in zip(branches, edges.counts, strict=True):
        for _ in range(count):
            fail_roots(ledger, branch, Verdict(Outcome.FAILED, reason))
    refuse(None, None, reason)


def _arrive(
    inbox: list[Delivery], column: list[Any], source: TupleSource, trees: list[Any], reference: array[int]
) -> None:
    """Put tuples that have one value each into an inbox. Most tuples have one value."""
    numbers = reference
    for place in range(len(column)):
        inbox.append(((column[place],), source, trees[numbers[place]]))


def _trace_arrivals(
    branch: Any, trees: list[Any], keys: object, blocks: list[Block], references: list[array[int] | None]
) -> None:
    """Record in the trace of a branch how many of the branch's tuples in this frame each task gets."""
    if keys is None:
        numbers = [trees.index(branch)]
    else:
        numbers = [n for n, of in enumerate(trees) if of is branch or (type(of) is tuple and branch in of)]
    for block, reference in zip(blocks, references, strict=True):
        tuples = sum(map(reference.count, numbers)) if reference is not None else 0
        if tuples:
            branch.trace.arrived(block.target, tuples)
