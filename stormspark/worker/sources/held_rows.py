"""Held rows, for topologies whose batches are transactions. These are rows of a source whose tuples a bolt holds beyond the end
of their batch.

The invariant: **after each commit the state table has exactly the rows of committed batches that are neither acked nor given
up.** So a worker that starts from a commit emits these rows again, and no row is lost with a worker.

The invariant holds because the changes of held rows are written and committed together with the batch's other changes. A row
that is acked in a batch leaves the table with that batch's commit. If the batch is rolled back, the row is still in the table.

Nearly always all rows of a batch are done when the batch ends. In that case nothing is written, and no row has to be found.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from stormspark.checkpoint.state_files import ROWS, TaskChanges
from stormspark.errors import SerializationError
from stormspark.worker.sources.row_codec import decode, encode, readable
from stormspark.worker.sources.rows import Row
from stormspark.worker.tuples.salvage import error_text

__all__ = ["HeldRows"]


class _Place(NamedTuple):
    """The place of a row in the state table. It consists of the index of the row's task, and of a key."""

    task: int
    key: bytes


class HeldRows:
    """The held rows of task ``index`` of ``component``.

    >>> held = HeldRows("lines", 0)
    >>> row = Row((4, 1, 0), ("text",), 4)
    >>> [(changes.task, len(changes.items)) for changes in held.changes({row.id: row})]
    [(0, 1)]
    >>> held.commit()
    >>> [changes.items[0][1] for changes in held.changes({})]
    [None]
    """

    def __init__(self, component: str, index: int) -> None:
        self._component, self._index = component, index
        self._there: dict[Hashable, _Place] = {}
        #: The places of the held rows once the prepared batch is committed; None if no batch is prepared.
        self._prepared: dict[Hashable, _Place] | None = None

    def __len__(self) -> int:
        return len(self._there)

    def __contains__(self, id: object) -> bool:
        return id in self._there

    def load(self, found: Iterable[tuple[int, bytes, bytes]]) -> Iterator[Row]:
        """Take over ``found``, the entries of the state table as (task, key, value), and iterate over their rows."""
        for task, key, value in found:
            row = readable(value, (task, key), "the state table")
            self._there[row.id] = _Place(task, key)
            yield row

    def changes(self, open: Mapping[Hashable, Row]) -> list[TaskChanges]:
        """Return the changes to the state table at the end of a batch. ``open`` maps ids to the rows that are open when the
        batch ends.

        Raises `SerializationError` if a row could not be read back from the table.
        """
        by_task: defaultdict[int, list[tuple[bytes, bytes | None]]] = defaultdict(list)
        after: dict[Hashable, _Place] = {}
        for id, place in self._there.items():
            if id in open:
                after[id] = place
            else:
                by_task[place.task].append((place.key, None))
        for id, row in open.items():
            if id not in after:
                key, value = _encoded(row)
                after[id] = _Place(self._index, key)
                by_task[self._index].append((key, value))
        self._prepared = after
        return [TaskChanges(self._component, task, items, ROWS) for task, items in by_task.items()]

    def commit(self) -> None:
        """Take over the prepared changes, because their batch is committed."""
        if self._prepared is not None:
            self._there, self._prepared = self._prepared, None

    def roll_back(self) -> None:
        """Drop the prepared changes, because their batch is rolled back."""
        self._prepared = None


def _encoded(row: Row) -> tuple[bytes, bytes]:
    """Encode a row as key and value, and make sure that the row can be read back."""
    try:
        value = encode(row)
        decode(value)
        return pickle.dumps(row.id, 5), value
    except Exception as error:
        msg = (
            f"its row {row.message_id!r:.300} can't be kept until it is acked: {error_text(error)}. Have the source give "
            f"values as Spark's columns hold them, or ack the tuple in its batch"
        )
        raise SerializationError(msg) from error
