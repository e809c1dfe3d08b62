"""A worker's log for the durable acker. It holds numbered change sets. A set stays in the log until the worker knows that the
set's batch is committed, or until the set is merged with the next one.

The invariant: **the acker's journal holds a prefix of each worker's log, with each change exactly once.** So the XOR of a
record's values in the journal is zero if and only if the journal both opens and closes the record.

The invariant holds for these reasons. A change set holds all changes since the previous set, and sets are in the order in which
the batches ended. A set goes to the driver with every report until the next batch begins. Spark begins the next batch only
after the set's own batch is committed. The driver writes the set of each number once.

If a batch runs again, its second run adds a change set of its own. The records that the first run opened are no longer valid.
If the first run's set was written, the second run's set closes these records. Sets that the driver never tried to write are
merged with the next set. Records that were both opened and closed in the merged sets are left out. So the sets do not grow in
an outage, during which one attempt follows another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from stormspark.acker.records import Change
from stormspark.extras import or_missing
from stormspark.extras import pyarrow as pa
from stormspark.extras import pyarrow_compute as compute

__all__ = ["ACKER_SCHEMA", "AckerLog", "change_table"]

#: The schema of changes of records. The columns after ``value`` are null if the change closes its record. ``created`` is in
#: microseconds of the acker's time (see `stormspark.acker.records`), which advances only by commits.
ACKER_SCHEMA = or_missing(
    lambda: pa.schema(
        [
            ("root", pa.int64()),
            ("created", pa.timestamp("us", "UTC")),
            ("value", pa.int64()),
            ("component", pa.string()),
            ("task", pa.int32()),
            ("batch", pa.int64()),
            ("message_id", pa.string()),
            ("row", pa.binary()),
        ]
    )
)


class _ChangeSet(NamedTuple):
    attempt: int
    number: int
    data: bytes  # an Arrow IPC stream


class AckerLog:
    """The log of one worker process. It holds the change sets that may not be in the journal yet."""

    def __init__(self) -> None:
        self._number = 0
        self._batch = -1
        self._unconfirmed: deque[_ChangeSet] = deque()

    def begin_batch(self, batch: int) -> None:
        """Begin a batch, or begin it again. Drop the change sets of earlier batches, because these batches are committed."""
        if batch > self._batch >= 0:
            self._unconfirmed.clear()
        self._batch = batch

    def add(self, changes: Iterable[pa.Table], attempt: int, tried: int) -> None:
        """Add the changes of a batch that ends in ``attempt``.

        ``tried`` is the last attempt whose change sets the driver may have tried to write.
        """
        tables = [ACKER_SCHEMA.empty_table(), *changes]
        merged = False
        while self._unconfirmed and self._unconfirmed[-1].attempt > tried:
            tables.append(pa.ipc.open_stream(self._unconfirmed.pop().data).read_all())
            merged = True
        table = pa.concat_tables(tables)
        if merged:
            table = _without_opened_and_closed(table)
        if table.num_rows:
            self._number += 1
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, ACKER_SCHEMA) as stream:
                stream.write_table(table)
            self._unconfirmed.append(_ChangeSet(attempt, self._number, sink.getvalue().to_pybytes()))

    @property
    def unconfirmed(self) -> tuple[tuple[int, bytes], ...]:
        """The change sets that may not be in the acker's journal yet, each as its number and its Arrow IPC stream."""
        return tuple((one.number, one.data) for one in self._unconfirmed)


def _without_opened_and_closed(table: pa.Table) -> pa.Table:
    """Return the table without the records that are both opened and closed in it. Each record has a root of its own."""
    found = compute.value_counts(table["root"])
    once = found.field("values").filter(compute.equal(found.field("counts"), 1))
    return table.filter(compute.is_in(table["root"], once))


def change_table(component: str, task: int, changes: list[Change]) -> pa.Table:
    """Return the changes of one task as a table with `ACKER_SCHEMA`."""
    count = len(changes)
    records, batches, ids, rows = zip(*changes, strict=True) if changes else ((), (), (), ())
    roots, created, values = zip(*records, strict=True) if records else ((), (), ())
    opened = pa.array([batch is not None for batch in batches], pa.bool_())
    nothing = pa.nulls(count, pa.string())
    return pa.table(
        [
            pa.array(roots, pa.int64()),
            pa.array(created, pa.timestamp("us", "UTC")),
            pa.array(values, pa.int64()),
            pa.compute.if_else(opened, pa.repeat(component, count), nothing),
            pa.compute.if_else(
                opened, pa.repeat(pa.scalar(task, pa.int32()), count), pa.nulls(count, pa.int32())
            ),
            pa.array(batches, pa.int64()),
            pa.array(ids, pa.string()),
            pa.array(rows, pa.binary()),
        ],
        schema=ACKER_SCHEMA,
    )
