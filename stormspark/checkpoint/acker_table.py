"""The durable acker's table: an append-only Delta table beside the topology's checkpoint, written by
delta-rs.

One writer, the topology's driver, and one reader, the acker query. A commit takes some 30 ms with 100,000
changes, and a batch without changes makes none. Rows are partitioned by the epoch of their commit, so that
what the reader has left behind goes by whole files (`tidy`).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

__all__ = ["AckerTable"]

_DELAY = "stormspark.acker.delay"
_EPOCH = pa.field("epoch", pa.int64())
#: A commit a second is 3,600 small files of Delta's log an hour; the reader is never that far behind.
_LOG_SETTINGS = {"delta.logRetentionDuration": "interval 1 hours", "delta.checkpointInterval": "100"}


class AckerTable:
    """``location`` is a path or a URL that delta-rs knows; ``schema`` is that of the changes, with
    ``created`` in microseconds.

    ``delay`` is the watermark's, in seconds. It is fixed with the first commit: what is old follows from it.
    Versions of an ``app`` begin with 1 and go up.
    """

    def __init__(self, location: str, schema: pa.Schema, delay: float) -> None:
        self.location, self.delay = location, delay
        self._schema = schema.append(_EPOCH)
        self._table: DeltaTable | None = None
        self._epochs: dict[int, int] = {}  # the last version of each epoch that is not tidied away
        if DeltaTable.is_deltatable(location):
            self._table = DeltaTable(location)
            self.delay = float((self._table.metadata().description or "").removeprefix(f"{_DELAY}=") or delay)

    @property
    def exists(self) -> bool:
        """Whether anything was ever written."""
        return self._table is not None

    @property
    def version(self) -> int:
        """The last version; -1 where there is none."""
        return self._table.version() if self._table is not None else -1

    @property
    def last_time(self) -> int | None:
        """The acker's time at the last commit, in microseconds; None where there was none."""
        if self._table is None:
            return None
        files = pa.table(self._table.get_add_actions(flatten=True))
        newest = pa.compute.max(files["max.created"]).as_py() if files.num_rows else None
        return None if newest is None else pa.scalar(newest, pa.timestamp("us", "UTC")).value

    def append(self, changes: pa.Table, at: int, app: str, version: int) -> None:
        """Write changes and a row that moves the watermark to ``at``, in one commit; raises what delta-rs
        raises.
        """
        epoch = at // round(self.delay * 1_000_000)
        tick = pa.table(
            {
                "root": pa.array([0], pa.int64()),
                "created": pa.array([at], pa.timestamp("us", "UTC")),
                "value": [0],
            }
        )
        rows = pa.concat_tables([changes, tick], promote_options="default")
        rows = rows.append_column(_EPOCH, pa.repeat(pa.scalar(epoch), rows.num_rows)).cast(self._schema)
        once = CommitProperties(app_transactions=[Transaction(app, version)], max_commit_retries=0)
        if self._table is None:
            if "://" not in self.location:
                Path(self.location).mkdir(parents=True, exist_ok=True)
            self._table = DeltaTable.create(
                self.location,
                self._schema,
                partition_by=["epoch"],
                description=f"{_DELAY}={self.delay}",
                configuration=_LOG_SETTINGS,
            )
        write_deltalake(self._table, rows, mode="append", commit_properties=once)
        self._epochs[epoch] = self._table.version()

    def has(self, app: str, version: int) -> bool:
        """Whether this version was written, by what the table says now."""
        if self._table is None:
            return False
        self._table.update_incremental()
        return (self._table.transaction_version(app) or 0) >= version

    def tidy(self, read_up_to: int) -> int:
        """Remove the epochs before the last two whose versions the acker query has read; returns how many."""
        newest = max(self._epochs, default=0)
        old = [
            epoch for epoch, version in self._epochs.items() if epoch < newest - 1 and version <= read_up_to
        ]
        if old and self._table is not None:
            self._table.delete(f"epoch <= {max(old)}")
            self._table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
            for epoch in old:
                del self._epochs[epoch]
                with contextlib.suppress(OSError):  # a URL has no folders
                    Path(self.location, f"epoch={epoch}").rmdir()
        return len(old)
