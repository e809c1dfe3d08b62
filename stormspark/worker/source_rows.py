"""The rows of a source spout's task: what waits to be emitted, what is open, what is to be emitted again.

They belong to the task and not to the spout's instance, which may begin anew. A batch that is run again brings its rows
again, so those of the attempt that failed are forgotten (`forget_batch`); rows of batches before it stay, and are emitted again
as their trees fail.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from stormspark.api.retry import ExponentialBackoff

__all__ = ["Row", "SourceRows"]


class Row(NamedTuple):
    """One row of a source, and the batch it came with."""

    id: Hashable
    values: tuple[Any, ...]
    batch: int


class SourceRows:
    """For one task. Times are seconds of the worker's clock."""

    def __init__(self, retry: ExponentialBackoff, id_columns: Sequence[str]) -> None:
        self._retry, self._id_columns = retry, tuple(id_columns)
        self._waiting: deque[Row] = deque()
        self._open: dict[Hashable, Row] = {}
        self._fails: Counter[Hashable] = Counter()
        self._later: list[tuple[float, int, Row]] = []  # a heap by time; the number keeps their order
        self._numbered = 0
        self._batch = -1
        self._taken: Counter[int] = Counter()  # rows of each partition of that batch so far

    def __len__(self) -> int:
        """Rows that wait to be emitted, or to be emitted again."""
        return len(self._waiting) + len(self._later)

    def take(self, batch: int, partition: int, payload: bytes) -> None:
        """Rows of a partition, as an Arrow IPC stream, in order."""
        table = pa.ipc.open_stream(payload).read_all()
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        if self._id_columns:
            positions = [table.column_names.index(name) for name in self._id_columns]
            ids: Sequence[Hashable] = [tuple(row[position] for position in positions) for row in rows]
        else:
            if batch != self._batch:
                self._batch, self._taken = batch, Counter()
            first = self._taken[partition]
            self._taken[partition] += len(rows)
            ids = [(batch, partition, number) for number in range(first, first + len(rows))]
        self._waiting.extend(map(Row, ids, rows, [batch] * len(rows)))

    def next(self, now: float) -> Row | None:
        """The row to be emitted next: one that failed and is due, else one that waits; None where there is neither."""
        if self._later and self._later[0][0] <= now:
            row = heapq.heappop(self._later)[2]
        elif self._waiting:
            row = self._waiting.popleft()
        else:
            return None
        self._open[row.id] = row
        return row

    def acked(self, id: Hashable) -> None:
        """The row is done with."""
        self._open.pop(id, None)
        self._fails.pop(id, None)

    def failed(self, id: Hashable, now: float) -> Row | None:
        """The row is emitted again later; returned where that is given up (K4). One that was forgotten is ignored."""
        row = self._open.pop(id, None)
        if row is None:
            return None
        self._fails[id] += 1
        delay = self._retry.delay(self._fails[id])
        if delay is None:
            del self._fails[id]
            return row
        self._numbered += 1
        heapq.heappush(self._later, (now + delay, self._numbered, row))
        return None

    def reopen(self) -> None:
        """The spout's instance has begun anew and knows of no open tree: what was open is emitted again, first of all."""
        self._waiting.extendleft(reversed(self._open.values()))
        self._open.clear()

    def forget_batch(self, batch: int) -> None:
        """The batch is run again and brings its rows again."""
        self._batch = -1
        self._waiting = deque(row for row in self._waiting if row.batch < batch)
        self._open = {id: row for id, row in self._open.items() if row.batch < batch}
        self._later = [later for later in self._later if later[2].batch < batch]
        heapq.heapify(self._later)
