"""The trees that the rows of a record batch belong to. They are kept as one column of numbers, instead of one `Roots` per row.

Rows with equal roots mostly share one *key*. ``rows`` holds, for each row, the index of its key in ``keys``. Edges are counted by
key.
If all rows have the same key, the count takes one addition. Otherwise it takes one `np.bincount`. The counts are the same as on
the tuple path, which has one edge for each copy of a row (see `stormspark.acker.ledger`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stormspark.acker import Branch, Ledger, Roots, Verdict
from stormspark.api import ROW_BY_ROW
from stormspark.errors import EmitError
from stormspark.extras import pyarrow as pa

__all__ = ["UNTRACKED", "BatchRoots", "positions_of"]

Positions = NDArray[np.intp]


class BatchRoots:
    """The roots of the rows of a record batch.

    ``keys`` are roots, in any order; the same roots may come more than once. ``rows``: for each row, the index of its roots in
    ``keys``. ``rows`` is None if all rows have the same roots.

    >>> roots = BatchRoots([None, None], np.array([0, 1, 0]))
    >>> list(roots.counted(3))
    [(None, 2), (None, 1)]
    """

    __slots__ = ("keys", "rows")

    def __init__(self, keys: Sequence[Roots], rows: Positions | None = None) -> None:
        self.keys = keys
        self.rows = rows

    @staticmethod
    def of(each: Iterable[Roots]) -> BatchRoots:
        """Make an object from the roots of each row."""
        numbers: dict[Roots, int] = {}
        rows = [numbers.setdefault(roots, len(numbers)) for roots in each]
        if len(numbers) <= 1:
            return BatchRoots(list(numbers) or [None])
        return BatchRoots(list(numbers), np.array(rows, np.intp))

    @staticmethod
    def joined(parts: Sequence[tuple[BatchRoots, int]]) -> BatchRoots:
        """Join the roots of several record batches, in order. Each part is a pair of roots and a number of rows."""
        first = parts[0][0]
        if all(roots.rows is None and roots.keys[0] is first.keys[0] for roots, _ in parts):
            return first
        keys: list[Roots] = []
        columns = []
        for roots, count in parts:
            base = len(keys)
            keys.extend(roots.keys)
            columns.append(np.full(count, base, np.intp) if roots.rows is None else roots.rows + base)
        return BatchRoots(keys, np.concatenate(columns))

    def take(self, positions: Positions | None) -> BatchRoots:
        """Return the roots of the rows at these positions, or of all rows if ``positions`` is None."""
        if positions is None or self.rows is None:
            return self
        return BatchRoots(self.keys, self.rows[positions])

    def each(self) -> Iterator[Roots]:
        """Iterate over the roots of each row. If all rows have the same roots, the iteration never ends."""
        if self.rows is None:
            return repeat(self.keys[0])
        return map(self.keys.__getitem__, self.rows.tolist())

    def counted(self, count: int) -> Iterable[tuple[Roots, int]]:
        """Count the rows of each key that has rows. ``count`` is the number of all rows."""
        if self.rows is None:
            return ((self.keys[0], count),) if count else ()
        counts = np.bincount(self.rows, minlength=len(self.keys))
        there = np.flatnonzero(counts)
        return zip(map(self.keys.__getitem__, there.tolist()), counts[there].tolist(), strict=True)

    @property
    def tracked(self) -> bool:
        """Whether any row belongs to a tree."""
        return any(key is not None for key in self.keys)

    def any_in_no_tree(self, count: int) -> bool:
        """Return whether any of the ``count`` rows belongs to no tree."""
        return any(key is None for key, _ in self.counted(count))

    # -- the ledger ------------------------------------------------------------------------------------------

    def open_edges(self, count: int) -> None:
        """Open one edge for every tree of every row."""
        for key, edges in self.counted(count):
            if isinstance(key, tuple):
                for branch in key:
                    branch.count += edges
            elif key is not None:
                key.count += edges

    def close_edges(self, ledger: Ledger, count: int) -> None:
        """Close one edge for every tree of every row."""
        for key, edges in self.counted(count):
            for branch in key if isinstance(key, tuple) else (key,):
                if branch is not None:
                    branch.count -= edges
                    if not branch.count:
                        ledger.drained(branch)

    def fail(self, ledger: Ledger, count: int, verdict: Verdict) -> None:
        """Fail all trees of all rows. Their edges stay open."""
        for branch in self.branches(count):
            ledger.fail(branch, verdict)

    def branches(self, count: int) -> dict[Branch, None]:
        """Return the trees of all rows, each once."""
        trees: dict[Branch, None] = {}
        for key, _ in self.counted(count):
            if isinstance(key, tuple):
                trees.update(dict.fromkeys(key))
            elif key is not None:
                trees[key] = None
        return trees

    # -- anchors ---------------------------------------------------------------------------------------------

    def anchored(self, anchors: Any, count: int, emitted: int, place: str) -> BatchRoots:
        """Return the roots of ``emitted`` rows that are anchored to rows of the current record batch, which has ``count`` rows.

        ``anchors`` means the same as in `ArrowOutputCollector.emit_batch`. Raises `EmitError`, with a message that begins with
        ``place``.
        """
        if anchors is None:
            trees = tuple(self.branches(count))
            return BatchRoots([trees if len(trees) > 1 else trees[0] if trees else None])
        if isinstance(anchors, str):
            if anchors != ROW_BY_ROW or emitted != count:
                msg = (
                    f"{place}: anchors are {anchors!r} for {emitted} rows, while the batch at hand has {count}: say of which "
                    f"input row each row comes, as an array of positions"
                )
                raise EmitError(msg)
            return self
        if isinstance(anchors, pa.Array | pa.ChunkedArray) and _is_list(anchors.type):
            return self._anchored_to_several(anchors, count, emitted, place)
        positions = _checked(anchors, count, place)
        if len(positions) != emitted:
            msg = f"{place}: there are {len(positions)} anchors for {emitted} rows: each row has one"
            raise EmitError(msg)
        return self.take(positions)

    def _anchored_to_several(self, anchors: Any, count: int, emitted: int, place: str) -> BatchRoots:
        if isinstance(anchors, pa.ChunkedArray):
            anchors = anchors.combine_chunks()
        if len(anchors) != emitted:
            msg = f"{place}: there are {len(anchors)} lists of anchors for {emitted} rows: each row has one"
            raise EmitError(msg)
        flat = _checked(anchors.flatten(), count, place)
        lengths = anchors.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths)
        keys, rows = self.keys, self.rows
        of_rows: list[Roots] = []
        for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
            trees: dict[Branch, None] = {}
            for row in flat[start:end].tolist():
                key = keys[0] if rows is None else keys[rows[row]]
                if isinstance(key, tuple):
                    trees.update(dict.fromkeys(key))
                elif key is not None:
                    trees[key] = None
            of_rows.append(tuple(trees) if len(trees) > 1 else next(iter(trees), None))
        return BatchRoots.of(of_rows)


#: The roots of rows that belong to no tree.
UNTRACKED = BatchRoots([None])


def positions_of(rows: Any, count: int, place: str) -> Positions:
    """Return the positions of some of ``count`` rows. ``rows``: these positions, or one bool per row."""
    array = _numbers(rows)
    if array.dtype == np.bool_:
        if len(array) != count:
            msg = f"{place}: {len(array)} bools say which rows are meant, but there are {count} rows"
            raise EmitError(msg)
        return np.flatnonzero(array)
    return _checked(array, count, place)


def _checked(positions: Any, count: int, place: str) -> Positions:
    array = _numbers(positions)
    if array.dtype.kind not in "iu" and len(array):
        msg = f"{place}: positions of input rows are integers, got an array of {array.dtype}"
        raise EmitError(msg)
    array = array.astype(np.intp, copy=False)
    if len(array) and (array.min() < 0 or array.max() >= count):
        wrong = array[(array < 0) | (array >= count)][0]
        msg = f"{place}: the batch at hand has {count} rows, 0 to {count - 1}, and there is no row {wrong}"
        raise EmitError(msg)
    return array


def _numbers(rows: Any) -> NDArray[Any]:
    if isinstance(rows, pa.ChunkedArray):
        rows = rows.combine_chunks()
    if isinstance(rows, pa.Array):
        rows = rows.to_numpy(zero_copy_only=False)
    return np.asarray(rows)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
