"""State that the driver has handed to a worker, where only the driver reaches the table: a file with an Arrow stream.

It has the newest rows of the worker's tasks, of all tasks of a component that is to be dealt out anew, and the driver's metadata,
as of one batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from stormspark.checkpoint.state_files import Wanted
from stormspark.errors import CheckpointError

__all__ = ["HandedRows", "HandedState"]


@dataclass(frozen=True)
class HandedRows:
    """The ``wanted`` rows of a file; what `Restore` is for a table."""

    path: str
    wanted: Wanted

    def rows(self) -> Iterator[pa.RecordBatch]:
        """With all columns, in the order of the file; raises `CheckpointError` where it can't be read."""
        try:
            with pa.OSFile(self.path) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    found = self.wanted.of(batch)
                    if found.num_rows:
                        yield found
        except (OSError, pa.ArrowException) as error:
            msg = f"the state that the driver has sent can't be read from {self.path}: {error}"
            raise CheckpointError(msg) from error

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The columns ``key`` and ``value``."""
        for rows in self.rows():
            yield rows.select(["key", "value"])


class HandedState:
    """The file at ``path``, out of the table at ``location``; read as a `StateTable`, as of the one batch that it is of."""

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
