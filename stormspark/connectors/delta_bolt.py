"""Tuples to a Delta table, by delta-rs: acked when the commit that has them is done. Works on every engine."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from stormspark.api import Bolt, OutputCollector, TopologyContext, Tuple
from stormspark.connectors.arrow_columns import columns_of, inferred_schema
from stormspark.connectors.file_bolt_policies import CountSyncPolicy, SyncPolicy
from stormspark.errors import InvalidTopologyError, UnsupportedEnvironmentError

__all__ = ["DeltaBolt"]

#: What delta-rs says of rows that a NOT NULL or a CHECK of the table refuses.
_REFUSED = "Invalid data found"


class DeltaBolt(Bolt):
    """Appends tuples to the Delta table at ``table``, a path or a URL, and acks them after the commit.

    It commits when ``sync_policy`` says so, at least every ``interval_secs``; tasks commit side by side. The table is
    made if there is none: with ``schema`` (pyarrow), else with the names and types of the first tuples, and with
    ``partition_by``. A table that is there decides the types; columns that tuples do not have become null.

    A tuple that does not fit the table fails alone, with the reason. A commit that fails is tried again, ``retry_count`` times in
    all; then all of its tuples fail. A commit that was done although an error came is recognised by its transaction (Delta's
    ``txn``), and not done twice. What was committed and not acked because its worker died comes twice.

    Raises `InvalidTopologyError` when it is made with a schema that can't be.

    >>> bolt = DeltaBolt("/data/counts", schema=pa.schema([("word", pa.string()), ("n", pa.int64())]), partition_by=["word"])
    """

    def __init__(
        self,
        table: str | PathLike[str],
        *,
        schema: pa.Schema | None = None,
        partition_by: Iterable[str] = (),
        sync_policy: SyncPolicy | None = None,
        interval_secs: float = 1.0,
        retry_count: int = 3,
        storage_options: Mapping[str, str] | None = None,
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        self.table, self.schema, self.partition_by = str(table), schema, list(partition_by)
        self.sync_policy = sync_policy or CountSyncPolicy(10_000)
        self.interval_secs, self.retry_count = interval_secs, max(1, retry_count)
        self.storage_options = dict(storage_options or {})
        self.configuration = dict(configuration or {})
        names = self.partition_by if schema is None else schema.names
        missing = [name for name in self.partition_by if name not in names]
        if missing:
            msg = f"DeltaBolt: partition_by has {missing[0]!r}, which is no column of its schema ({', '.join(names)})"
            raise InvalidTopologyError(msg)
        if interval_secs <= 0:
            msg = f"DeltaBolt commits every interval_secs, which must be more than 0, got {interval_secs!r}"
            raise InvalidTopologyError(msg)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Look at the table, if it is there already; raises `InvalidTopologyError` where it is not as it was told."""
        try:
            import deltalake
        except ImportError as error:
            msg = "DeltaBolt needs deltalake: pip install deltalake"
            raise UnsupportedEnvironmentError(msg) from error
        self._delta: Any = deltalake
        self._collector = collector
        self._waiting: list[Tuple] = []
        self._application = f"{context.topology_name}/{context.this_component_id}/{context.this_task_id}"
        self._handle: Any = None
        if deltalake.DeltaTable.is_deltatable(self.table, self.storage_options):
            self._handle = self._opened()
        context.set_timer(self.interval_secs, self.flush)

    def execute(self, tup: Tuple) -> None:
        """Keep a tuple for the next commit."""
        if tup.is_tick:
            self._collector.ack(tup)
            return
        self._waiting.append(tup)
        if self.sync_policy.mark(tup, len(self._waiting)):
            self.flush()

    def flush(self) -> None:
        """Commit what waits."""
        waiting, self._waiting = self._waiting, []
        self.sync_policy.reset()
        if waiting:
            self._append(waiting)

    def cleanup(self) -> None:
        """Commit what waits."""
        self.flush()

    def _append(self, tuples: Sequence[Tuple]) -> None:
        """Ack the tuples, or fail them."""
        version = time.time_ns()  # tells this commit from every other one
        for attempt in range(1, self.retry_count + 1):
            try:
                tuples = self._commit(tuples, version)
                break
            except Exception as error:
                if self._is_committed(version):
                    break
                self._handle = None  # another process may have changed it, or made it anew
                if _REFUSED in str(error):
                    self._append_parts(tuples, error)
                    return
                self._collector.report_error(
                    f"append to {self.table} failed, attempt {attempt} of {self.retry_count}: {error}"
                )
                reason = f"could not be appended to {self.table}: {error}"
                time.sleep(0.05 * (attempt - 1))
        else:
            for tup in _open(tuples):
                self._collector.fail(tup, reason)
            return
        for tup in _open(tuples):
            self._collector.ack(tup)

    def _commit(self, tuples: Sequence[Tuple], version: int) -> Sequence[Tuple]:
        """Append those that fit; they are returned, the others have failed."""
        tuples = _open(tuples)
        if self._handle is None:
            self._handle = self._opened_or_made(tuples)
        else:
            self._handle.update_incremental()
        table = self._handle
        columns, unfit = columns_of(tuples, pa.schema(table.schema().to_arrow()))
        for tup, why in unfit:
            reason = f"does not fit the table {self.table}: {why}"
            self._collector.report_error(reason)
            self._collector.fail(tup, reason)
        fitting = _open(tuples) if unfit else tuples
        if fitting:
            self._delta.write_deltalake(
                table,
                columns,
                mode="append",
                commit_properties=self._delta.CommitProperties(
                    app_transactions=[self._delta.Transaction(self._application, version)]
                ),
            )
        return fitting

    def _append_parts(self, tuples: Sequence[Tuple], error: Exception) -> None:
        """The table refuses a row among these: find it by halves."""
        tuples = _open(tuples)
        if len(tuples) == 1:
            reason = f"the table {self.table} refuses it: {error}"
            self._collector.report_error(reason)
            self._collector.fail(tuples[0], reason)
            return
        middle = len(tuples) // 2
        self._append(tuples[:middle])
        self._append(tuples[middle:])

    def _is_committed(self, version: int) -> bool:
        """Whether the commit with that number is in the table, whatever error came of it."""
        try:
            table = self._delta.DeltaTable(self.table, storage_options=self.storage_options)
            return bool(table.transaction_version(self._application) == version)
        except Exception:
            return False

    def _opened_or_made(self, tuples: Sequence[Tuple]) -> Any:
        table = self._delta.DeltaTable
        if not table.is_deltatable(self.table, self.storage_options):
            schema = self.schema if self.schema is not None else inferred_schema(tuples)
            try:
                table.create(
                    self.table,
                    schema,
                    mode="ignore",
                    partition_by=self.partition_by or None,
                    configuration=self.configuration or None,
                    storage_options=self.storage_options or None,
                )
            except Exception:
                # Another task may have been faster.
                if not table.is_deltatable(self.table, self.storage_options):
                    raise
        return self._opened()

    def _opened(self) -> Any:
        table = self._delta.DeltaTable(self.table, storage_options=self.storage_options)
        names = [field.name for field in table.schema().fields]
        partitions = table.metadata().partition_columns
        missing = [
            name for name in (self.schema.names if self.schema is not None else ()) if name not in names
        ]
        if missing:
            msg = (
                f"DeltaBolt: the table {self.table} has no column {missing[0]!r}, which its schema has; it has "
                f"{', '.join(names)}. Add the column to the table, or take it out of the schema"
            )
            raise InvalidTopologyError(msg)
        if self.partition_by and partitions != self.partition_by:
            msg = f"DeltaBolt: the table {self.table} is partitioned by {partitions}, not by {self.partition_by}"
            raise InvalidTopologyError(msg)
        return table


def _open(tuples: Sequence[Tuple]) -> list[Tuple]:
    """Those that are neither acked nor failed."""
    return [tup for tup in tuples if tup.state != 1]
