"""The file in which the driver hands state to a worker, if only the driver can reach the state table. It is an Arrow stream.

The file holds the newest rows of the worker's tasks as of one batch, and the driver's metadata. If a component's state is dealt
out anew, the rows of all its tasks are in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stormspark.checkpoint.state_files import SCHEMA, Wanted
from stormspark.errors import CheckpointError
from stormspark.extras import pyarrow as pa

__all__ = ["HandedRows", "HandedState", "in_hand"]

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class HandedRows:
    """The ``wanted`` rows of an Arrow stream, which is a file or bytes. `Restore` has the same methods, and reads a table."""

    source: str | bytes
    wanted: Wanted

    def of_task(self, task: int) -> HandedRows:
        """Return the rows of one task."""
        return replace(self, wanted=replace(self.wanted, task=task))

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with all columns, in the order of the stream. Raises `CheckpointError` if the stream can't be read."""
        try:
            source = pa.OSFile(self.source) if isinstance(self.source, str) else pa.BufferReader(self.source)
            with source, pa.ipc.open_stream(source) as stream:
                for batch in stream:
                    found = self.wanted.of(batch)
                    if found.num_rows:
                        yield found
        except (OSError, pa.ArrowException) as error:
            msg = f"the state that the driver has sent can't be read: {error}"
            raise CheckpointError(msg) from error

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the columns ``key`` and ``value`` of the rows."""
        for rows in self.rows():
            yield rows.select(["key", "value"])


def in_hand(rows: pa.Table) -> HandedRows:
    """Turn rows into a `HandedRows` that holds the rows as bytes and can be pickled."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(rows, max_chunksize=_ROWS_AT_ONCE)
    return HandedRows(sink.getvalue().to_pybytes(), Wanted())


class HandedState:
    """The file at ``path``, with state from the table at ``location``.

    It has some of the methods with which `StateTable` is read. It knows the state as of one batch only.
    """

    def __init__(self, path: str, location: str) -> None:
        self.location, self._path = location, path

    def plan_restore(
        self,
        component: str | None = None,
        task: int | None = None,
        as_of: int | None = None,
        kind: str | None = "state",
    ) -> HandedRows:
        """See `StateTable.plan_restore`."""
        return HandedRows(self._path, Wanted(component, task, kind, as_of))

    def restore(
        self, component: str, task: int, as_of: int | None = None, kind: str = "state"
    ) -> Iterator[pa.RecordBatch]:
        """See `StateTable.restore`."""
        return self.plan_restore(component, task, as_of, kind).batches()

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        """See `StateTable.metadata`."""
        found = self.restore("", -1, as_of, "metadata")
        return {row["key"]: row["value"] for rows in found for row in rows.to_pylist()}
