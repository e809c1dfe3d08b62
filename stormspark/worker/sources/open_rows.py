"""The open rows of a source spout's task, with their records in the durable acker.

A row that is not done is in one of two tables:

- *fresh*: the row came since the last report. Most rows are acked before their batch ends, and cost only two operations on a
  dict.
- *kept*: the row was open at the end of a batch, so the durable acker has a record of the row, or will have one.

At the end of each batch `OpenRows.changes` returns the records that are opened and those that are closed. The cost of this
method depends on the number of changes, and not on the number of open rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from stormspark.acker.records import AckerTime, Change, Record
from stormspark.worker.sources.row_codec import encode_or_give_up
from stormspark.worker.sources.rows import RangeKey, Row, is_letter, message_id_of

__all__ = ["OpenRows"]


class _Kept(NamedTuple):
    row: Row
    record: Record


class OpenRows:
    """The open rows and open ranges (`RangeSpout`) of one task.

    `fresh` is public, so that callers can remove a row from it directly if the row is acked in its own batch. This is faster
    than a call.
    """

    def __init__(self) -> None:
        self.fresh: dict[Hashable, Row] = {}
        self._kept: dict[Hashable, _Kept] = {}  # the oldest record comes first
        self._closed: list[Record] = []  # records closed since the last report

    def __len__(self) -> int:
        return len(self.fresh) + len(self._kept)

    def __contains__(self, id: Hashable) -> bool:
        return id in self.fresh or id in self._kept

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the open rows and ranges. Kept rows come first."""
        for kept in self._kept.values():
            yield kept.row
        yield from self.fresh.values()

    def get(self, id: Hashable) -> Row | None:
        """Return the open row with this id, or None if no open row has it."""
        row = self.fresh.get(id)
        if row is None:
            kept = self._kept.get(id)
            row = kept.row if kept is not None else None
        return row

    def rows(self) -> Iterator[Row]:
        """Iterate over the open rows without the ranges. Kept rows come first."""
        return (row for row in self if not isinstance(row.id, RangeKey))

    def message_ids(self) -> Iterator[Hashable]:
        """Iterate over the message ids of the open rows, as users see them. Rows that were dead letters are left out, because
        their source is past them.
        """
        return (message_id_of(row.id) for row in self.rows() if not is_letter(row.id))

    def has_any(self, ids: Mapping[Hashable, object]) -> bool:
        """Return whether an open row has one of these ids."""
        return not (self.fresh.keys().isdisjoint(ids) and self._kept.keys().isdisjoint(ids))

    def without_kept(self, rows: list[Row]) -> list[Row]:
        """Return those of ``rows`` that are not kept yet. A row with the id of a kept row is the same row, which has come
        again.
        """
        return [row for row in rows if row.id not in self._kept] if self._kept else rows

    def add_range(self, range: Row) -> None:
        """Add a range that has come, unless it is kept already."""
        if range.id not in self._kept:
            self.fresh[range.id] = range

    def close_kept(self, id: Hashable) -> None:
        """Remove a kept row that is done. Do nothing if no kept row has this id."""
        kept = self._kept.pop(id, None)
        if kept is not None:
            self._closed.append(kept.record)

    def forget_batch(self, batch: int) -> None:
        """Remove the rows of this batch and of later batches, because these rows come again."""
        for id in [id for id, kept in self._kept.items() if kept.row.batch >= batch]:
            self._closed.append(self._kept.pop(id).record)
        self.fresh = {id: row for id, row in self.fresh.items() if row.batch < batch}

    def adopt(self, records: Iterable[tuple[Record | None, Row]]) -> list[Row]:
        """Add rows that an earlier incarnation of the worker left open, each with its record if there is one. Return the rows
        that the task did not know yet.

        If a row is open already, the adopted record is closed, unless it is the row's own record.
        """
        new: list[Row] = []
        for record, row in records:
            if row.id in self:
                if record is not None and self._kept.get(row.id, (None, None))[1] != record:
                    self._closed.append(record)
                continue
            if record is None:
                self.fresh[row.id] = row
            else:
                self._kept[row.id] = _Kept(row, record)
            new.append(row)
        # Adopted records are older than the others, and `changes` expects the oldest record first.
        self._kept = dict(sorted(self._kept.items(), key=lambda item: item[1].record.created))
        return new

    def changes(
        self, unread: Iterable[Row], time: AckerTime, draw: Callable[[int], Sequence[int]]
    ) -> list[Change]:
        """Return the records that were opened or closed since the last call, as changes for the durable acker. All open rows
        become kept rows.

        Old records are closed, and new records of the same rows are opened instead, so that the acker's watermark never passes
        an open record. ``unread`` holds the unread rest of each range. ``draw(n)`` returns n random signed numbers of 64 bits.
        """
        changes = [Change(record) for record in self._closed]
        self._closed = []
        opened = list(self.fresh.values())
        self.fresh = {}
        for range in unread:  # the rest may have fewer rows than the range's record
            kept = self._kept.get(range.id)
            if kept is not None and kept.row.values != range.values:
                changes.append(Change(self._kept.pop(range.id).record))
                opened.append(range)
        while self._kept:
            kept = next(iter(self._kept.values()))
            if kept.record.created >= time.refresh_before:
                break
            del self._kept[kept.row.id]
            changes.append(Change(kept.record))
            opened.append(kept.row)
        numbers = iter(draw(2 * len(opened)))
        for row, root, value in zip(opened, numbers, numbers, strict=False):
            record = Record(root, time.at, value or 1)
            self._kept[row.id] = _Kept(row, record)
            changes.append(Change(record, row.batch, repr(row.id), encode_or_give_up(row)))
        return changes
