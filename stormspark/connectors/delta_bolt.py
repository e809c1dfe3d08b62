"""A bolt that writes tuples to a Delta table with delta-rs, so it runs on both engines."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from stormspark.api import Bolt, OutputCollector, TopologyContext, Tuple
from stormspark.api.state import KeyValueState, TransactionalSink
from stormspark.checkpoint.delta_errors import in_one_line
from stormspark.connectors.arrow_columns import Fit, columns_of
from stormspark.connectors.delta_files import StagedRows
from stormspark.connectors.delta_table import SinkTable, why_no_key
from stormspark.connectors.file_bolt_policies import CountSyncPolicy, SyncPolicy
from stormspark.connectors.outbox import Outbox
from stormspark.errors import InvalidTopologyError
from stormspark.extras import pyarrow as pa
from stormspark.launcher import on_databricks, only_by_spark

__all__ = ["DeltaBolt"]

#: Part of the error that delta-rs raises for rows that break a NOT NULL or CHECK constraint of the table.
_REFUSED = "Invalid data found"
#: A commit that merges gets this many additional tries. If several tasks merge at the same time, only one merge succeeds, and the
#: others try again.
_MORE_TRIES_TO_MERGE = 10
#: When this many rows of a batch wait as tuples, they are converted to columns.
_CHUNK = 10_000
#: Files of up to this many bytes may wait while the table can't be written to.
_MOST_WAITING = 4 << 30


class DeltaBolt(TransactionalSink, Bolt):
    """A bolt that appends tuples to the Delta table at ``table``, a path or a URL, or merges them into it.

    Each task makes its own commits: when ``sync_policy`` says so, and at least every ``interval_secs``. It acks tuples after
    their commit. If there is no table, the bolt creates one, partitioned by ``partition_by``. The new table's columns come from
    ``schema`` (pyarrow). Without a schema, they come from the names and types of the first tuples. An existing table keeps its
    types. If a tuple has no field for a column, the column is null in the tuple's row.

    ``merge_on`` names the columns of a key. A tuple then replaces the row with the same key, or deletes this row if the tuple's
    field ``delete_on`` is true. If one commit has several tuples with the same key, the newest one counts. If several tasks
    write, group the tuples by the key.

    If a tuple does not fit the table, only this tuple fails, with the reason. The bolt tries a commit up to ``retry_count``
    times. With ``merge_on`` there are ten more tries. If all tries fail, the commit's tuples fail. A commit may succeed although
    delta-rs raised an error. The bolt recognises such a commit by its number (Delta's ``txn``), and does not repeat it. If a
    worker dies between a commit and its acks, and the spout emits the tuples again, they are written twice.

    If the topology's batches are transactions (C42), every tuple is written exactly once. Tuples are then acked at once, because
    the batch succeeds or fails as a whole. After a batch is committed, each task makes at most one commit with the batch's rows.
    ``sync_policy`` and ``interval_secs`` have no effect.

    Raises `InvalidTopologyError` for arguments that can't work.

    >>> bolt = DeltaBolt("/data/counts", schema=pa.schema([("word", pa.string()), ("n", pa.int64())]), merge_on=["word"])
    """

    _required_modules = ("deltalake", "pyarrow")
    #: If batches are transactions, the rows that are not delivered yet; otherwise None.
    _outbox: Outbox[StagedRows] | None = None
    #: If batches are transactions, whether the table's storage could not be reached in this batch.
    _is_away = False

    def __init__(
        self,
        table: str | PathLike[str],
        *,
        schema: pa.Schema | None = None,
        partition_by: Iterable[str] = (),
        merge_on: Iterable[str] = (),
        delete_on: str | None = None,
        sync_policy: SyncPolicy | None = None,
        interval_secs: float = 1.0,
        retry_count: int = 3,
        storage_options: Mapping[str, str] | None = None,
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        self.table, self.schema, self.partition_by = str(table), schema, list(partition_by)
        self.merge_on, self.delete_on = [merge_on] if isinstance(merge_on, str) else list(merge_on), delete_on
        self.sync_policy = sync_policy or CountSyncPolicy(10_000)
        self.interval_secs, self.retry_count = interval_secs, max(1, retry_count)
        self.storage_options = dict(storage_options or {})
        self.configuration = dict(configuration or {})
        if on_databricks() and (place := only_by_spark(self.table)) is not None:
            msg = (
                f"DeltaBolt: {self.table} is {place}, to which only Spark can write: give the URL of an external location, such "
                f"as s3://bucket/table, with storage_options, or let Spark write the table from the topology's state "
                f"(docs/databricks.md)"
            )
            raise InvalidTopologyError(msg)
        for option, wanted in ("partition_by", self.partition_by), ("merge_on", self.merge_on):
            missing = [name for name in wanted if schema is not None and name not in schema.names]
            if missing:
                names = ", ".join(schema.names) if schema is not None else ""
                msg = (
                    f"DeltaBolt: {option} names {missing[0]!r}, which is not a column of its schema ({names})"
                )
                raise InvalidTopologyError(msg)
        if schema is not None and (why := why_no_key(schema, self.merge_on)) is not None:
            raise InvalidTopologyError(why)
        if delete_on is not None and not self.merge_on:
            msg = f"DeltaBolt: delete_on={delete_on!r} deletes the row of a key, but merge_on names no key: give merge_on"
            raise InvalidTopologyError(msg)
        if interval_secs <= 0:
            msg = f"DeltaBolt commits every interval_secs, which must be more than 0, got {interval_secs!r}"
            raise InvalidTopologyError(msg)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Open the table, if it exists. Raises `InvalidTopologyError` if the table contradicts the bolt's settings."""
        self._sink = SinkTable(
            self.table,
            schema=self.schema,
            partition_by=self.partition_by,
            merge_on=self.merge_on,
            delete_on=self.delete_on,
            storage_options=self.storage_options,
            configuration=self.configuration,
        )
        self._collector = collector
        self._waiting: list[Tuple] = []
        self._columns: list[pa.Table] = []  # the batch's first rows; the waiting tuples follow them
        self._fit: Fit | None = None
        name = f"{context.topology_name}/{context.this_component_id}/{context.this_task_id}"
        if self._outbox is None:
            self._sink.application = name
            self._sink.open()
            context.set_timer(self.interval_secs, self.flush)
        else:
            # The name is different for each checkpoint folder, because in a new folder the numbers of batches begin at 0 again.
            self._sink.application = (
                f"{context.topology_name}/{context.this_component_id}/{self._outbox.name}"
            )
            if self._sink.open():
                self._learn_the_schema()

    def execute(self, tup: Tuple) -> None:
        """Keep a tuple for the next commit. Unless batches are transactions, commit now if the sync policy says so."""
        if tup.is_tick:
            self._collector.ack(tup)
        elif self._outbox is not None:
            self._keep(tup)
        else:
            self._waiting.append(tup)
            if self.sync_policy.mark(tup, len(self._waiting)):
                self.flush()

    def flush(self) -> None:
        """Commit the waiting tuples."""
        waiting, self._waiting = self._waiting, []
        self.sync_policy.reset()
        if waiting:
            self._commit_or_fail(waiting)

    def end_of_input(self) -> None:
        """Commit the waiting tuples, unless batches are transactions."""
        if self._outbox is None:
            self.flush()

    def cleanup(self) -> None:
        """Commit the waiting tuples, unless batches are transactions."""
        self.end_of_input()

    # -- batches that are transactions -----------------------------------------------------------------------

    def init_state(self, state: KeyValueState[Any, Any]) -> None:  # type: ignore[override]
        """Set up the outbox, which delivers rows after their batch's commit. Called only if batches are transactions."""
        self._outbox = Outbox(state, self._deliver, most_bytes=_MOST_WAITING)

    def pre_save(self, checkpoint_id: int) -> None:
        """Write the batch's rows to files, and record the files in the state.

        Raises OSError if the files can't be written, ValueError if a tuple does not fit the table, and `UnavailableError` if the
        files that wait to be delivered are too large.
        """
        assert self._outbox is not None
        rows = self._rows()
        staged = None if rows is None else self._sink.stage(rows)
        self._outbox.save(checkpoint_id, staged, 0 if staged is None else staged.size)

    def post_save(self, checkpoint_id: int) -> None:
        """Make the waiting files part of the table. If this raises an error, the bolt tries again at the end of a later batch."""
        assert self._outbox is not None
        self._outbox.deliver(checkpoint_id)

    def _keep(self, tup: Tuple) -> None:
        if self._fit is None and self.schema is not None and not self._is_away:
            try:
                self._sink.open_or_make()
                self._learn_the_schema()
            except OSError as error:  # no tuple is to blame: `pre_save` tries again, and raises the error
                self._is_away = True
                self._collector.report_error(error)
        reason = None if self._fit is None else self._fit.why_not(tup)
        if reason is not None:
            self._fail_unfit(tup, reason)
            return
        self._waiting.append(tup)
        self._collector.ack(tup)  # the batch as a whole succeeds or fails
        if len(self._waiting) >= _CHUNK and self._fit is not None:
            self._waiting_to_columns()

    def _rows(self) -> pa.Table | None:
        """Return the rows of the batch, or None if it has none. With ``merge_on``, only the newest row of each key is left."""
        if self._waiting:
            if self._fit is None:
                self._sink.open_or_make(self._waiting)
                self._learn_the_schema()
            self._waiting_to_columns()
        columns, self._columns = self._columns, []
        if not columns:
            return None
        rows = pa.concat_tables(columns)
        return self._newest(rows) if len(columns) > 1 and self.merge_on else rows

    def _waiting_to_columns(self) -> None:
        waiting, self._waiting = self._waiting, []
        assert self._fit is not None
        rows, unfit = columns_of(waiting, self._fit.schema, self.merge_on, self._fit.partitions)
        if unfit:
            # The tuple was acked before there was a table. When the batch runs again, there is a table, and only this tuple
            # fails.
            msg = f"{unfit[0][0]} does not fit the table {self.table}, whose columns come from the first tuples: {unfit[0][1]}"
            raise ValueError(msg)
        self._columns.append(self._newest(rows) if self.merge_on else rows)

    def _learn_the_schema(self) -> None:
        self._sink.check_for_transactions()
        schema = self._sink.arrow_schema()
        partitions = self._sink.partitions
        if self._fit is None or (self._fit.schema, self._fit.partitions) != (schema, tuple(partitions)):
            self._fit = Fit(schema, self.merge_on, partitions)

    def _deliver(self, txid: int, rows: StagedRows) -> None:
        for attempt in range(1, self._tries + 1):
            try:
                self._sink.commit_staged(rows, txid)
                return
            except Exception as error:
                self._sink.forget()
                if attempt == self._tries or isinstance(error, ValueError):
                    raise
                time.sleep(random.uniform(0, 0.05 * attempt))

    # -- batches that are not transactions -------------------------------------------------------------------

    @property
    def _tries(self) -> int:
        return self.retry_count + (_MORE_TRIES_TO_MERGE if self.merge_on else 0)

    def _commit_or_fail(self, tuples: Sequence[Tuple]) -> None:
        """Commit the tuples and ack them. If the commit fails, fail them."""
        version = time.time_ns()  # identifies this commit
        for attempt in range(1, self._tries + 1):
            try:
                tuples = self._commit(tuples, version)
                break
            except Exception as error:
                if self._is_committed(version):
                    break
                self._sink.forget()
                if _REFUSED in str(error):
                    self._commit_parts(tuples, error)
                    return
                self._collector.report_error(
                    f"{'merge into' if self.merge_on else 'append to'} {self.table} failed, attempt {attempt} of {self._tries}: "
                    f"{in_one_line(error)}"
                )
                how = "merged into" if self.merge_on else "appended to"
                reason = f"could not be {how} {self.table}: {in_one_line(error)}"
                time.sleep(random.uniform(0.5, 1) * 0.05 * (attempt - 1))
        else:
            for tup in _open(tuples):
                self._collector.fail(tup, reason)
            return
        for tup in _open(tuples):
            self._collector.ack(tup)

    def _commit(self, tuples: Sequence[Tuple], version: int) -> Sequence[Tuple]:
        """Commit the tuples that fit the table, and return them. Fail the others."""
        tuples = _open(tuples)
        self._sink.open_or_make(tuples)
        schema = self._sink.arrow_schema()
        columns, unfit = columns_of(tuples, schema, self.merge_on, self._sink.partitions)
        for tup, why in unfit:
            self._fail_unfit(tup, why)
        fitting = _open(tuples) if unfit else tuples
        if fitting:
            self._sink.write(self._newest(columns) if self.merge_on else columns, version)
        return fitting

    def _fail_unfit(self, tup: Tuple, why: str) -> None:
        reason = f"does not fit the table {self.table}: {why}"
        self._collector.report_error(reason)
        self._collector.fail(tup, reason)

    def _newest(self, rows: pa.Table) -> pa.Table:
        """Return the last row of each key."""
        keys = zip(*(_comparable(rows.column(name)) for name in self.merge_on), strict=True)
        last = {key: position for position, key in enumerate(keys)}
        return rows if len(last) == rows.num_rows else rows.take(pa.array(sorted(last.values()), pa.int64()))

    def _commit_parts(self, tuples: Sequence[Tuple], error: Exception) -> None:
        """Commit the tuples in halves, to find those that the table refuses."""
        tuples = _open(tuples)
        if len(tuples) == 1:
            reason = f"the table {self.table} refuses it: {in_one_line(error)}"
            self._collector.report_error(reason)
            self._collector.fail(tuples[0], reason)
            return
        middle = len(tuples) // 2
        self._commit_or_fail(tuples[:middle])
        self._commit_or_fail(tuples[middle:])

    def _is_committed(self, version: int) -> bool:
        """Whether the table has the commit with the number ``version``, although an error was raised."""
        self._sink.forget()
        try:
            return self._sink.open() and self._sink.last_commit() == version
        except Exception:
            return False


def _comparable(key: pa.ChunkedArray) -> list[Any]:
    """Return the values of a key's column for comparison: two of them are equal if a merge treats them as equal.

    A merge treats all NaN as one value. In the result, each NaN is None. No other value is None, because a key has no nulls.
    """
    values = key.to_pylist()
    if pa.types.is_floating(key.type):
        return [None if math.isnan(value) else value for value in values]
    return values  # type: ignore[no-any-return]


def _open(tuples: Sequence[Tuple]) -> list[Tuple]:
    """Return the tuples that are neither acked nor failed."""
    return [tup for tup in tuples if tup.state != 1]
