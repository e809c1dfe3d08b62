"""Reads a state table that Spark has written, with delta-rs and without Spark. This is for people who look at a state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stormspark.checkpoint.delta_errors import in_one_line
from stormspark.checkpoint.handed_state import HandedRows, in_hand
from stormspark.checkpoint.state_files import ORDER, SCHEMA
from stormspark.checkpoint.state_merge import merged
from stormspark.errors import CheckpointError
from stormspark.extras import deltalake
from stormspark.extras import pyarrow as pa

__all__ = ["FORMAT", "TableOfSpark", "stand_in"]

#: The format of the tables that Spark writes.
FORMAT = 1


def stand_in(user_metadata: str | None) -> dict[str, Any] | None:
    """Return the metadata that a driver has put into an entry of the table's log; None for an entry of somebody else.

    >>> stand_in('{"stormspark": {"txid": 7}}'), stand_in('{"job": "nightly"}'), stand_in(None)
    ({'txid': 7}, None, None)
    """
    try:
        found: dict[str, Any] = json.loads(user_metadata or "")["stormspark"]
    except (ValueError, KeyError, TypeError):
        return None
    return found


class TableOfSpark:
    """A table that Spark has written, with the reading methods of `StateTable`. Raises `CheckpointError` if it can't be read."""

    def __init__(self, location: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.location = location
        try:
            self._table = deltalake.DeltaTable(
                location, storage_options=dict(storage_options) if storage_options else None
            )
            found = (stand_in(entry.get("userMetadata")) for entry in self._table.history())
            stands = [one for one in found if one is not None]
            # An earlier driver may still have written right before a later driver opened the table. So the later driver's first
            # entry (``opening``) may have old metadata, and the newest of the other entries counts.
            stand = next((one for one in stands if not one.get("opening")), next(iter(stands), None))
        except Exception as error:
            msg = f"the state table {location} can't be read: {in_one_line(error)}"
            raise CheckpointError(msg) from error
        if stand is None:
            msg = f"the log of the state table {location} has no entry of a topology's driver"
            raise CheckpointError(msg)
        if stand["format"] > FORMAT:
            msg = f"the state table {location} was written by a newer stormspark (format {stand['format']}): use that version"
            raise CheckpointError(msg)
        self.last_txid, self.oldest_txid = stand["txid"], stand["oldest"]

    def plan_restore(
        self,
        component: str | None = None,
        task: int | None = None,
        as_of: int | None = None,
        kind: str | None = "state",
    ) -> HandedRows:
        """Read the newest rows into memory. See `StateTable.plan_restore`."""
        txid = self.last_txid if as_of is None else as_of
        if not self.oldest_txid <= txid <= self.last_txid:
            msg = f"the state table {self.location} has the batches {self.oldest_txid} to {self.last_txid}, but not batch {txid}"
            raise CheckpointError(msg)
        wanted = (("component", "=", component), ("task", "=", task), ("kind", "=", kind))
        filters = [("txid", "<=", txid), *(one for one in wanted if one[2] is not None)]
        rows = self._table.to_pyarrow_table(filters=filters).select(SCHEMA.names).cast(SCHEMA)
        order = [*((name, "ascending") for name in ORDER), ("txid", "descending")]
        newest = merged([rows.sort_by(order).to_batches()], txid, drop_deleted=True)
        return in_hand(pa.Table.from_batches(newest, SCHEMA))

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        """See `StateTable.metadata`."""
        found = self.plan_restore("", -1, as_of, "metadata").batches()
        return {row["key"]: row["value"] for rows in found for row in rows.to_pylist()}
