"""Tuples to a Delta table, by delta-rs: acked when the commit that has them is done. Works on every engine."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from stormspark.api import Bolt, OutputCollector, TopologyContext, Tuple
from stormspark.api.state import KeyValueState, TransactionalSink
from stormspark.connectors.arrow_columns import Fit, columns_of
from stormspark.connectors.delta_files import StagedRows
from stormspark.connectors.delta_table import SinkTable, why_no_key
from stormspark.connectors.file_bolt_policies import CountSyncPolicy, SyncPolicy
from stormspark.connectors.outbox import Outbox
from stormspark.errors import InvalidTopologyError

__all__ = ["DeltaBolt"]

#: What delta-rs says of rows that a NOT NULL or a CHECK of the table refuses.
_REFUSED = "Invalid data found"
#: Merges of several tasks meet at every commit, and only one of them wins.
_MORE_TRIES_TO_MERGE = 10
#: So many rows are kept as tuples, at most; more of a batch wait as columns.
_CHUNK = 10_000
#: Files of so many bytes may wait for a table that can't be written to.
_MOST_WAITING = 4 << 30


class DeltaBolt(TransactionalSink, Bolt):
    """Appends tuples to the Delta table at ``table``, a path or a URL, and acks them after the commit.

    It commits when ``sync_policy`` says so, at least every ``interval_secs``; tasks commit side by side. The table is
    made if there is none: with ``schema`` (pyarrow), else with the names and types of the first tuples, and with
    ``partition_by``. A table that is there decides the types; columns that tuples do not have become null.

    With ``merge_on``, the names of a key's columns, a tuple replaces the row that has its key; of several in one commit the
    newest does. Where field ``delete_on`` is true it deletes the row. Group by the key, if several tasks write.

    A tuple that does not fit the table fails alone, with the reason. A commit that fails is tried again, ``retry_count`` times in
    all; then all of its tuples fail. A commit that was done although an error came is recognised by its transaction (Delta's
    ``txn``), and not done twice. What was committed and not acked because its worker died comes twice.

    Where the topology's batches are transactions (C42) nothing comes twice, and nothing is lost: what a batch has for the table
    is one commit of each task, made when the batch is committed; ``sync_policy`` and ``interval_secs`` have no say then.

    Raises `InvalidTopologyError` when it is made with a schema that can't be.

    >>> bolt = DeltaBolt("/data/counts", schema=pa.schema([("word", pa.string()), ("n", pa.int64())]), merge_on=["word"])
    """

    #: What waits for its delivery, where batches are transactions; else None.
    _outbox: Outbox[StagedRows] | None = None

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
        for what, wanted in ("partition_by", self.partition_by), ("merge_on", self.merge_on):
            missing = [name for name in wanted if schema is not None and name not in schema.names]
            if missing:
                names = ", ".join(schema.names) if schema is not None else ""
                msg = f"DeltaBolt: {what} has {missing[0]!r}, which is no column of its schema ({names})"
                raise InvalidTopologyError(msg)
        if schema is not None and (why := why_no_key(schema, self.merge_on)) is not None:
            raise InvalidTopologyError(why)
        if delete_on is not None and not self.merge_on:
            msg = f"DeltaBolt: delete_on={delete_on!r} deletes the row of a key, and no merge_on says what the key is"
            raise InvalidTopologyError(msg)
        if interval_secs <= 0:
            msg = f"DeltaBolt commits every interval_secs, which must be more than 0, got {interval_secs!r}"
            raise InvalidTopologyError(msg)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Look at the table, if it is there already; raises `InvalidTopologyError` where it is not as it was told."""
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
        self._columns: list[pa.Table] = []  # of the batch, behind them the tuples that wait
        self._fit: Fit | None = None
        name = f"{context.topology_name}/{context.this_component_id}/{context.this_task_id}"
        if self._outbox is None:
            self._sink.application = name
            self._sink.open()
            context.set_timer(self.interval_secs, self.flush)
        else:
            # Its own in each checkpoint, since batches begin at 0 in a new one.
            self._sink.application = (
                f"{context.topology_name}/{context.this_component_id}/{self._outbox.name}"
            )
            if self._sink.open():
                self._learn_the_schema()

    def execute(self, tup: Tuple) -> None:
        """Keep a tuple for the next commit."""
        if tup.is_tick:
            self._collector.ack(tup)
        elif self._outbox is not None:
            self._keep(tup)
        else:
            self._waiting.append(tup)
            if self.sync_policy.mark(tup, len(self._waiting)):
                self.flush()

    def flush(self) -> None:
        """Commit what waits."""
        waiting, self._waiting = self._waiting, []
        self.sync_policy.reset()
        if waiting:
            self._commit_or_fail(waiting)

    def cleanup(self) -> None:
        """Commit what waits."""
        if self._outbox is None:
            self.flush()

    # -- batches that are transactions -----------------------------------------------------------------------

    def init_state(self, state: KeyValueState[Any, Any]) -> None:  # type: ignore[override]
        """Batches are transactions: deliver what they have for the table when they are committed."""
        self._outbox = Outbox(state, self._deliver, most_bytes=_MOST_WAITING)

    def pre_save(self, checkpoint_id: int) -> None:
        """Write the batch's rows as files, and leave word of them in the state.

        Raises OSError where that can't be, ValueError where a tuple does not fit, and `StateError` where too much waits.
        """
        assert self._outbox is not None
        rows = self._rows()
        staged = None if rows is None else self._sink.stage(rows)
        self._outbox.save(checkpoint_id, staged, 0 if staged is None else staged.size)

    def post_save(self, checkpoint_id: int) -> None:
        """Commit the files to the table; what that raises leaves them to the next batch's end."""
        assert self._outbox is not None
        self._outbox.deliver(checkpoint_id)

    def _keep(self, tup: Tuple) -> None:
        if self._fit is None and self.schema is not None:
            self._sink.open_or_make()
            self._learn_the_schema()
        reason = None if self._fit is None else self._fit.why_not(tup)
        if reason is not None:
            self._fail_unfit(tup, reason)
            return
        self._waiting.append(tup)
        self._collector.ack(tup)  # the batch stands for it
        if len(self._waiting) >= _CHUNK and self._fit is not None:
            self._waiting_to_columns()

    def _rows(self) -> pa.Table | None:
        """All that the batch has for the table."""
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
            # It was acked before there was a table. There is one when the batch comes again, and then it fails alone.
            msg = f"{unfit[0][0]} does not fit the table {self.table}, which the first tuples made: {unfit[0][1]}"
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

    # -- batches that are none -------------------------------------------------------------------------------

    @property
    def _tries(self) -> int:
        return self.retry_count + (_MORE_TRIES_TO_MERGE if self.merge_on else 0)

    def _commit_or_fail(self, tuples: Sequence[Tuple]) -> None:
        """Ack the tuples, or fail them."""
        version = time.time_ns()  # tells this commit from every other one
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
                    f"{error}"
                )
                reason = (
                    f"could not be {'merged into' if self.merge_on else 'appended to'} {self.table}: {error}"
                )
                time.sleep(random.uniform(0.5, 1) * 0.05 * (attempt - 1))
        else:
            for tup in _open(tuples):
                self._collector.fail(tup, reason)
            return
        for tup in _open(tuples):
            self._collector.ack(tup)

    def _commit(self, tuples: Sequence[Tuple], version: int) -> Sequence[Tuple]:
        """Commit those that fit; they are returned, the others have failed."""
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
        """Of the rows of each key the last one."""
        keys = zip(*(_comparable(rows.column(name)) for name in self.merge_on), strict=True)
        last = {key: position for position, key in enumerate(keys)}
        return rows if len(last) == rows.num_rows else rows.take(pa.array(sorted(last.values()), pa.int64()))

    def _commit_parts(self, tuples: Sequence[Tuple], error: Exception) -> None:
        """The table refuses a row among these: find it by halves."""
        tuples = _open(tuples)
        if len(tuples) == 1:
            reason = f"the table {self.table} refuses it: {error}"
            self._collector.report_error(reason)
            self._collector.fail(tuples[0], reason)
            return
        middle = len(tuples) // 2
        self._commit_or_fail(tuples[:middle])
        self._commit_or_fail(tuples[middle:])

    def _is_committed(self, version: int) -> bool:
        """Whether the commit with that number is in the table, whatever error came of it."""
        self._sink.forget()
        try:
            return self._sink.open() and self._sink.last_commit() == version
        except Exception:
            return False


def _comparable(key: pa.ChunkedArray) -> list[Any]:
    """The values of a key's column, equal where a merge takes them for the same: all NaN are one, and no other is None."""
    values = key.to_pylist()
    if pa.types.is_floating(key.type):
        return [None if math.isnan(value) else value for value in values]
    return values  # type: ignore[no-any-return]


def _open(tuples: Sequence[Tuple]) -> list[Tuple]:
    """Those that are neither acked nor failed."""
    return [tup for tup in tuples if tup.state != 1]
