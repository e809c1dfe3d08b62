"""Merges sorted runs of changes into one, for restores and for compaction.

The inputs are streams of record batches. Each stream is sorted by component, task, kind and key, and then by the batch,
newest first. The streams in the list are newest first: all changes in a stream come from older batches than the changes in the
streams before it. So after a stable sort by key, the rows of one key are newest first. The **horizon** is a batch that decides
which rows of a key are needed: all rows that are newer than the horizon, and the newest one of the others. Every batch from the
horizon on can still be restored from these rows.

Rows pass through Arrow a few thousand at a time, so only some rows of each stream are in memory. The merge looks at the last key
that each stream has in memory. It takes all keys that are smaller than all of these last keys. The smallest last key itself
waits, because its stream may have more rows of that key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from stormspark.extras import pyarrow as pa
from stormspark.extras import pyarrow_compute as pc

__all__ = ["merged"]

#: `_CHUNK_ROWS`: about how many rows of all streams together are sorted at once, which takes some milliseconds. Each stream has
#: an equal part of them in memory. `_LEAST_ROWS`: the size of this part if there are very many streams.
_CHUNK_ROWS, _LEAST_ROWS = 16_384, 512
_Group = tuple[str, int, str]


def merged(
    streams: Sequence[Iterable[pa.RecordBatch]], horizon: int, drop_deleted: bool
) -> Iterator[pa.RecordBatch]:
    """Yield, in order, those rows of all streams that a restore as of the horizon or of a later batch may need.

    With ``drop_deleted``, deletions up to the horizon are left out, too. Use this only if there are no older rows.
    """
    rows_each = max(_LEAST_ROWS, _CHUNK_ROWS // max(1, len(streams)))
    alive = [one for one in (_Stream(stream, rows_each) for stream in streams) if one.rows is not None]
    while alive:
        group = min(one.group for one in alive)
        now = [one for one in alive if one.group == group]
        limit = min((one.last_key for one in now if one.goes_on), default=None)
        taken = [rows for one in now if (rows := one.take(limit)).num_rows]
        if taken:
            rows = _needed(taken, horizon, drop_deleted)
            if rows.num_rows:
                yield rows
        else:
            for one in now:
                if one.goes_on and one.last_key == limit:
                    one.extend()
        alive = [one for one in alive if one.rows is not None]


class _Stream:
    """A stream, with the part of it that is in memory: ``rows`` of one ``group`` (component, task, kind), and the next part."""

    group: _Group
    rows: pa.RecordBatch | None

    def __init__(self, batches: Iterable[pa.RecordBatch], rows_each: int) -> None:
        self._parts = _parts(batches, rows_each)
        self._next = next(self._parts, None)
        self._advance()

    def _advance(self) -> None:
        if self._next is None:
            self.rows = None
        else:
            self.group, self.rows = self._next
            self._next = next(self._parts, None)

    @property
    def goes_on(self) -> bool:
        """Whether the group has more rows than ``rows``."""
        return self._next is not None and self._next[0] == self.group

    @property
    def last_key(self) -> bytes:
        """The last key of ``rows``."""
        assert self.rows is not None
        key: bytes = self.rows["key"][-1].as_py()
        return key

    def take(self, limit: bytes | None) -> pa.RecordBatch:
        """Remove and return the rows whose keys are below the limit; without a limit, all rows."""
        assert self.rows is not None
        rows, end = self.rows, self.rows.num_rows
        if limit is not None:
            end = bisect_left(rows["key"], limit, key=_as_bytes)
        if end == rows.num_rows:
            self._advance()
        else:
            self.rows = rows.slice(end)
        return rows.slice(0, end)

    def extend(self) -> None:
        """Add more rows of the same group to ``rows``."""
        assert self.rows is not None and self._next is not None
        more = pa.Table.from_batches([self.rows, self._next[1]]).combine_chunks().to_batches()
        self.rows = more[0]
        self._next = next(self._parts, None)


def _as_bytes(scalar: Any) -> bytes:
    found: bytes = scalar.as_py()
    return found


def _parts(batches: Iterable[pa.RecordBatch], rows_each: int) -> Iterator[tuple[_Group, pa.RecordBatch]]:
    """Cut record batches where the component, task or kind changes, and into parts of at most ``rows_each`` rows."""
    for batch in batches:
        ends = [0, *_changes(batch), batch.num_rows]
        for begin, end in pairwise(ends):
            if begin < end:
                group = (
                    batch["component"][begin].as_py(),
                    batch["task"][begin].as_py(),
                    batch["kind"][begin].as_py(),
                )
                for at in range(begin, end, rows_each):
                    yield group, batch.slice(at, min(rows_each, end - at))


def _changes(batch: pa.RecordBatch) -> list[int]:
    names = ("component", "task", "kind")
    if batch.num_rows < 2 or all(batch[name][0].equals(batch[name][-1]) for name in names):
        return []
    differs = np.zeros(batch.num_rows - 1, bool)
    for name in names:
        differs |= pc.not_equal(batch[name][1:], batch[name][:-1]).to_numpy(zero_copy_only=False)
    found: list[int] = (np.flatnonzero(differs) + 1).tolist()
    return found


def _needed(parts: list[pa.RecordBatch], horizon: int, drop_deleted: bool) -> pa.RecordBatch:
    """Merge ``parts`` into rows that are sorted by key, and leave out the rows that are not needed.

    The parts are ordered from the newest to the oldest. Together they have all rows of each of their keys.
    """
    if len(parts) == 1:
        rows = parts[0]
    else:
        rows = pa.concat_batches(parts)
        rows = rows.take(pc.array_sort_indices(rows["key"]))  # stable
    keys = rows["key"]
    behind = rows["txid"].to_numpy() <= horizon
    same = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    needed = np.ones(rows.num_rows, bool)
    needed[1:] = ~(same & behind[1:] & behind[:-1])
    if drop_deleted and rows["value"].null_count:
        needed &= ~(behind & rows["value"].is_null().to_numpy(zero_copy_only=False))
    return rows if needed.all() else rows.filter(pa.array(needed))
