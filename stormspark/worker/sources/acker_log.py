"""A worker's log of what the durable acker has to know: numbered change sets, each kept until its batch is
known to be committed.

The invariant: **the acker's journal holds a prefix of each worker's log, every change of it once.** So an XOR
of it means something.

Why it holds. A change set says what changed since the one before, in the order of the batches' ends. It goes
to the driver with every report until a later batch begins, which Spark starts only when this one is
committed; the driver writes a number once. A batch that is run again adds a change set of its own: what it
forgot was opened by the one before, if that was written, and is closed by this one. Sets that the driver never
tried to write become one with the next, without what was opened and closed in them: so an outage, in which
one attempt follows another, makes them no larger.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
from pyarrow import compute

from stormspark.acker.records import Change

__all__ = ["ACKER_SCHEMA", "AckerLog", "change_table"]

#: A change of a record; what comes after ``value`` is null where it is closed. ``created`` are microseconds
#: of the acker's time.
ACKER_SCHEMA = pa.schema(
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


class _ChangeSet(NamedTuple):
    attempt: int
    number: int
    data: bytes  # an Arrow IPC stream


class AckerLog:
    """For one worker process."""

    def __init__(self) -> None:
        self._number = 0
        self._batch = -1
        self._unconfirmed: deque[_ChangeSet] = deque()

    def begin_batch(self, batch: int) -> None:
        """A batch begins, perhaps again; those before it are committed."""
        if batch > self._batch >= 0:
            self._unconfirmed.clear()
        self._batch = batch

    def add(self, changes: Iterable[pa.Table], attempt: int, tried: int) -> None:
        """The changes of a batch that ends in ``attempt``; of attempts after ``tried`` nothing has been written."""
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
        """What may not be in the acker's journal yet: number and Arrow IPC stream of each."""
        return tuple((one.number, one.data) for one in self._unconfirmed)


def _without_opened_and_closed(table: pa.Table) -> pa.Table:
    """Without the changes of records whose opening and whose end are both in it: a record's root is its own."""
    found = compute.value_counts(table["root"])
    once = found.field("values").filter(compute.equal(found.field("counts"), 1))
    return table.filter(compute.is_in(table["root"], once))


def change_table(component: str, task: int, changes: list[Change]) -> pa.Table:
    """Lay the changes of one task out."""
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
