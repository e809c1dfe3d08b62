"""The state table for a folder that only the driver can reach, such as a path that the workers' hosts do not share.

    workers: changed_rows(...)     in their reports, without a file
    driver:  commit(txid, rows)    writes the rows as workers would have written them, and commits the files
    driver:  newest(...)           the state that workers get when they begin

The table is the same as the one that `StateTable` writes, so a topology may continue with either class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stormspark.checkpoint.state_files import ChangedRows, write_rows
from stormspark.checkpoint.state_table import StateTable
from stormspark.errors import CheckpointError
from stormspark.extras import pyarrow as pa

__all__ = ["DriversStateTable"]


class DriversStateTable(StateTable):
    """A `StateTable` that only the driver reaches. Workers hand their changes to the driver, and get their state from it."""

    def commit(
        self,
        txid: int,
        files: Sequence[Any],
        metadata: Mapping[bytes, bytes | None] | None = None,
    ) -> None:
        """See `StateTable.commit`. ``files`` are `ChangedRows`, or None."""
        written = []
        for one in files:
            if not isinstance(one, ChangedRows):
                continue
            if (one.txid, one.generation) != (txid, self._generation):
                msg = (
                    f"changes of batch {one.txid} of generation {one.generation} can't be committed to {self.location} as batch "
                    f"{txid} of generation {self._generation}"
                )
                raise CheckpointError(msg)
            rows = one.table()
            written.append(write_rows(self.location, rows, generation=one.generation, txid=txid))
        super().commit(txid, written, metadata)

    def newest(
        self, tasks: Mapping[str, Sequence[int] | None], kind: str = "state"
    ) -> Iterator[pa.RecordBatch]:
        """Yield the newest rows of these tasks of each component. None stands for all its tasks. Raises `CheckpointError`."""
        for component, indices in tasks.items():
            for task in (None,) if indices is None else indices:
                yield from self.plan_restore(component, task, kind=kind).rows()
