"""The state table, written by Spark. It is for storage that only Spark's file systems and credentials can reach.

    workers: changed_rows(...)     in their reports, without a file
    driver:  commit(txid, rows)    one append of Delta's, with all of the rows
    driver:  newest(...)           the state that workers get when they begin (`StateHandOver`)

It makes the same promises as `stormspark.checkpoint.state_table`. A batch is in the table whole or not at all, and never twice.
One driver writes. The error of a failed commit does not say whether the commit is in the log, so the driver then reads the log.

**How only one driver writes.** Delta lets an application number its entries. Such a number is called a version of the
application. In this table, the application is ``stormspark``. The high bits of a version are the generation. The low bits are a
number that grows with each try to write an entry. Delta silently drops an entry whose version is not above the last one. If two
entries are written at the same time, Delta rejects one of them, because both writers have read the last version. So once a later
generation has written anything, Delta takes no entry of an earlier generation, not even one whose write has already begun. To
find out whether a write has left an entry, the driver looks at the version that Delta reports for this session, or else at the
newest entry of the log.

**The table's metadata** is in the ``userMetadata`` of the newest entry that a driver wrote: the last batch, and so on (`_Stand`).
Only entries of an ``OPTIMIZE`` or ``VACUUM`` may come after that entry.

**Compaction** rewrites the table between two batches, in one entry. Afterwards the table has the rows of the retained batches,
and of the earlier rows only the newest one of each key. The more state there is, the longer compaction takes. So if the last
compaction left n rows, the next one waits until n rows were added, or until the log has very many new entries. While the state
does not grow, compaction then writes on average about one row per changed row. The replaced files stay until somebody runs a
``VACUUM``, which is allowed at any time.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions

from stormspark.checkpoint.handed_state import HandedRows, in_hand
from stormspark.checkpoint.missing_batch import missing_batch
from stormspark.checkpoint.state_files import DELTA_RS, ORDER, SCHEMA, ChangedRows, TaskChanges, rows_of
from stormspark.checkpoint.table_of_spark import FORMAT, stand_in
from stormspark.config import DELTA_PACKAGE
from stormspark.errors import (
    CheckpointError,
    FencedError,
    UnsupportedEnvironmentError,
)
from stormspark.launcher import on_databricks
from stormspark.spark.java_errors import in_words

__all__ = ["SparkStateTable", "is_for_spark"]

_APPLICATION = _STAND = "stormspark"
_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
#: This many low bits of a version hold the number of the try. The generation is in the bits above.
_NUMBER_BITS = 36
#: Operations of other programs that leave the rows as they are.
_HARMLESS = {"OPTIMIZE", "VACUUM START", "VACUUM END"}
#: The component, the task and the two kinds in the driver's own rows.
_DRIVER, _NO_TASK, _METADATA, _ANNOUNCED = "", -1, "metadata", "announced"
#: The table is compacted after `_COMPACT_AFTER` entries if enough has changed. After about `_COMPACT_AT_LAST` entries it is
#: compacted in any case, because each entry has a file.
_COMPACT_AFTER, _COMPACT_AT_LAST = 50, 1000
_ROWS_A_FILE = 1_000_000
_ROWS_AT_ONCE = 8192
_NOT_WRITTEN = "could not be written to"
#: `open` tries this many times to write its entry while an earlier driver still writes.
_TRIES = 10
_TABLE_SETTINGS = {
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}


def is_for_spark(setting: str | None, location: str) -> bool:
    """Whether Spark writes the state table at ``location``.

    ``setting`` is the value of ``stormspark.state.table``. If it is None, the location's scheme decides. On Databricks, Spark
    alone gets the credentials for a URL, from Unity Catalog.

    >>> is_for_spark(None, "/checkpoints/count"), is_for_spark(None, "hdfs://name/checkpoints/count")
    (False, True)
    """
    scheme, colon, _ = location.partition(":")
    is_path = location.startswith("/") or not colon
    reached = is_path or (scheme.lower() in DELTA_RS and not on_databricks())
    return setting == "spark" or (setting is None and not reached)


def reads_delta(session: SparkSession) -> bool:
    """Whether Delta's jars are on the class path."""
    try:
        session.sparkContext._jvm.java.lang.Class.forName(  # type: ignore[union-attr]
            "io.delta.sql.DeltaSparkSessionExtension",
            False,
            session.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader(),  # type: ignore[union-attr]
        )
    except Py4JError:
        return False
    return True


@dataclass(frozen=True)
class _Stand:
    """The metadata of the newest entry: its writer, the last batch, the last announced batch, and the oldest readable batch."""

    format: int = FORMAT
    generation: int = -1
    number: int = -1
    token: str = ""
    txid: int = -1
    oldest: int = -1
    announced: int = -1
    #: Whether this is a driver's first entry, which keeps earlier drivers out. An earlier driver may still have written right
    #: before this entry. So only the writer is taken from this entry; the rest of the metadata comes from the entry before.
    opening: bool = False
    #: How many rows the last compaction left.
    compacted: int = 0
    #: How many rows were added since the last compaction.
    rows: int = 0
    #: How many entries were added since the last compaction.
    entries: int = 0


class SparkStateTable:
    """The state table at ``location``, which is a URL of any file system that Spark knows.

    At least the ``retain_txids`` batches before the last one can be read, and also the batches of the last ``retain_hours``
    hours. ``clock`` measures how long ago this driver committed a batch. Raises `UnsupportedEnvironmentError` if the session
    has no Delta.
    """

    def __init__(
        self,
        session: SparkSession,
        location: str,
        *,
        retain_txids: int = 10,
        retain_hours: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not reads_delta(session):
            msg = (
                f"this Spark session has no Delta, but only Spark can write the state table {location} "
                f"(stormspark.state.table): start Spark with --packages {DELTA_PACKAGE}"
            )
            raise UnsupportedEnvironmentError(msg)
        self.location = location
        self._session = _own_session(session)
        self._tables: Any = self._session._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr]
        self._retain_txids, self._retain_secs, self._clock = retain_txids, retain_hours * 3600, clock
        self._committed: deque[tuple[float, int]] = deque()  # time and batch, for retention by hours
        self._stand: _Stand | None = None
        self._refused: str | FencedError | None = "was not opened to be written to"
        self._generation: int | None = None
        self._number, self._token = -1, ""  # the number and the token of the last try
        self._compact_after = _COMPACT_AFTER

    # -- what is in the table --------------------------------------------------------------------

    def refresh(self) -> None:
        """Read from the log what is committed. The driver that writes need not call this. Raises `CheckpointError`."""
        self._stand = self._look()

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return (self._stand or self._look()) is not None

    @property
    def last_txid(self) -> int:
        """The batch that was committed last; -1 before the first."""
        return self._known().txid

    @property
    def oldest_txid(self) -> int:
        """The oldest batch that can still be read."""
        return self._known().oldest

    def newest(
        self, tasks: Mapping[str, Sequence[int] | None], kind: str = "state"
    ) -> Iterator[pa.RecordBatch]:
        """Yield the newest rows of these tasks.

        ``tasks`` maps each component to its tasks; None stands for all tasks of the component. This raises the same errors as
        `newest_rows`.
        """
        if not tasks:
            return
        where = " or ".join(
            f"component = {_literal(name)}"
            if indices is None
            else f"(component = {_literal(name)} and task in ({', '.join(map(str, indices))}))"
            for name, indices in tasks.items()
        )
        yield from self.newest_rows(where, kind=kind).to_batches(_ROWS_AT_ONCE)

    def newest_rows(self, where: str = "true", as_of: int | None = None, kind: str = "state") -> pa.Table:
        """Return the newest row of each key as of a batch, sorted and without deleted keys. ``where`` is a filter in SQL.

        All rows are read into memory. Raises `CheckpointError` if the table does not have that batch, or can't be read.
        """
        stand = self._known()
        txid = stand.txid if as_of is None else as_of
        if as_of is not None and not stand.oldest <= as_of <= stand.txid:
            raise CheckpointError(missing_batch(self.location, stand.oldest, stand.txid, as_of))
        try:
            rows = self._rows().where(functions.col("kind") == kind).where(f"txid <= {txid}").where(where)
            found = _newest(rows).toArrow()
        except (PySparkException, Py4JError) as error:
            raise self._unreadable(error) from error
        return found.cast(SCHEMA).sort_by([(name, "ascending") for name in ORDER])

    def plan_restore(
        self, component: str | None = None, task: int | None = None, as_of: int | None = None
    ) -> HandedRows:
        """Read the newest rows into memory, for people who look at a state."""
        wanted = [f"component = {_literal(component)}"] if component is not None else []
        wanted += [f"task = {task}"] if task is not None else []
        return in_hand(self.newest_rows(" and ".join(wanted) or "true", as_of))

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        """Return the newest values of the metadata that the driver committed with its batches."""
        found = self.newest_rows(as_of=as_of, kind=_METADATA).to_pylist()
        return {row["key"]: row["value"] for row in found}

    def announced(self) -> tuple[int, dict[bytes, bytes]]:
        """Return the number of the batch after the last committed one, and the announcement of this batch.

        Return -1 and {} if this batch has no announcement.
        """
        stand = self._known()
        if stand.announced <= stand.txid:
            return -1, {}
        try:
            found = self._rows().where(f"kind = '{_ANNOUNCED}' and txid = {stand.announced}").toArrow()
        except (PySparkException, Py4JError) as error:
            raise self._unreadable(error) from error
        return stand.announced, {row["key"]: row["value"] for row in found.to_pylist()}

    # -- the driver -------------------------------------------------------------------------------

    def open(self, generation: int, first_txid: int = 0) -> None:
        """Begin to write as this generation, and make the table if there is none. Afterwards no earlier writer can write any
        more.

        ``first_txid`` is the first batch of a new table. After an error, the driver calls this again to continue. Raises
        `FencedError` if another driver of the same or of a later generation has opened the table. Raises `CheckpointError` if the
        table can't be read, or needs another version of stormspark.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                self._open(generation, first_txid)
            except FencedError:
                raise
            except CheckpointError:
                # An earlier driver may have written at the same time, and won. It may win several times, so try again.
                if not tries_left or self._refused != _NOT_WRITTEN:
                    raise
            else:
                return

    def _open(self, generation: int, first_txid: int) -> None:
        if isinstance(self._refused, FencedError):
            raise self._refused
        found = self._look()
        mine = found is not None and found.token == self._token
        if found is not None and not mine and found.generation >= generation:
            # In our own generation, only this object itself may have written the newest entry.
            before = self._stand.token if self._stand is not None and self._generation == generation else None
            if found.token != before:
                raise self._fenced(found)
        if mine and self._refused is None and generation == self._generation:
            return
        self._refused = "could not be opened"
        if generation != self._generation:
            self._generation = generation
            self._number = -1
        self._stand = found
        self._append(SCHEMA.empty_table(), replace(found or _Stand(), opening=True))
        # From now on Delta rejects every entry of an earlier generation. So only now can the table be read reliably.
        self._refused = "could not be opened"
        stand = self._look()
        assert stand is not None
        if stand.token != self._token:
            raise self._fenced(stand)
        self._stand = stand
        if stand.txid < 0 < first_txid:
            stand = replace(stand, txid=first_txid - 1, oldest=first_txid - 1)
        self._append(SCHEMA.empty_table(), stand)

    def commit(
        self,
        txid: int,
        files: Sequence[ChangedRows | None],
        metadata: Mapping[bytes, bytes | None] | None = None,
    ) -> None:
        """Make a batch part of the table: the changes of its workers, and the driver's own metadata.

        The commit is in the table when this returns. Raises `CheckpointError` if this is not the batch after the last one, if
        rows belong to another batch, or if the commit can't be written. Raises `FencedError` if another driver has taken over.
        """
        stand = self._writing()
        self._check_order(txid, stand.txid)
        changes = [one for one in files if one is not None]
        for one in changes:
            if (one.txid, one.generation) != (txid, self._generation):
                msg = (
                    f"changes of batch {one.txid} of generation {one.generation} can't be committed to {self.location} as batch "
                    f"{txid} of generation {self._generation}"
                )
                raise CheckpointError(msg)
        tables = [one.table() for one in changes]
        own = rows_of([TaskChanges(_DRIVER, _NO_TASK, (metadata or {}).items(), _METADATA)], txid)
        tables += [own] if own is not None else []
        oldest = txid if stand.oldest < 0 else stand.oldest
        self._append(
            pa.concat_tables([SCHEMA.empty_table(), *tables]), replace(stand, txid=txid, oldest=oldest)
        )
        if self._retain_secs:
            self._committed.append((self._clock(), txid))

    def announce(self, txid: int, metadata: Mapping[bytes, bytes]) -> None:
        """Store ``metadata`` for the next attempt at a batch, until the batch is committed. Call this at most once per batch.

        The announcement is in the table when this returns. This raises the same errors as `commit`.
        """
        stand = self._writing()
        self._check_order(txid, stand.txid)
        if stand.announced == txid:
            msg = f"batch {txid} is announced already in {self.location}, and its announcement is the same for every attempt"
            raise CheckpointError(msg)
        rows = rows_of([TaskChanges(_DRIVER, _NO_TASK, metadata.items(), _ANNOUNCED)], txid)
        self._append(SCHEMA.empty_table() if rows is None else rows, replace(stand, announced=txid))

    def compact(self, budget_secs: float) -> bool:
        """Rewrite the table if compaction is due, however long that takes.

        Return false, because nothing is left to do afterwards. Compaction does not change the rows of any retained batch. This
        raises the same errors as `commit`.
        """
        stand = self._writing()
        enough = stand.entries >= self._compact_after and stand.rows >= stand.compacted
        if not enough and stand.entries < _COMPACT_AT_LAST + self._compact_after:
            return False
        self._compact_after = stand.entries + _COMPACT_AFTER  # when to try again, if this try fails
        horizon = self._horizon(stand)
        try:
            rows = self._rows().where(f"kind <> '{_ANNOUNCED}' or txid > {stand.txid}")
            needed = _newest(rows.where(f"txid <= {horizon}")).union(rows.where(f"txid > {horizon}"))
            count = needed.count()
            files = needed.repartition(1 + count // _ROWS_A_FILE)
        except (PySparkException, Py4JError) as error:
            raise self._unreadable(error) from error
        compacted = replace(stand, oldest=max(stand.oldest, horizon), compacted=count, rows=0, entries=-1)
        self._append(files, compacted)
        self._compact_after = _COMPACT_AFTER
        return False

    def vacuum(self, budget_secs: float) -> int:
        """Delete nothing, and return 0. Deletion is left to Delta's ``VACUUM``, which takes longer than a batch may wait."""
        return 0

    def close(self) -> None:
        """Stop writing. `open` begins again."""
        if not isinstance(self._refused, FencedError):
            self._refused = "was closed"

    # -- reading ----------------------------------------------------------------------------------

    def _known(self) -> _Stand:
        if self._stand is None:
            self._stand = self._look()
        if self._stand is None:
            msg = f"there is no state table at {self.location}"
            raise CheckpointError(msg)
        return self._stand

    def _rows(self) -> DataFrame:
        return self._session.read.format("delta").load(self.location).select(*SCHEMA.names)

    def _look(self) -> _Stand | None:
        """Read the table's metadata from the log; None if there is no table."""
        java = self._session._jsparkSession
        try:
            if not self._tables.isDeltaTable(java, self.location):
                return None
            table = self._tables.forPath(java, self.location)
            for history, whole in ((table.history(10), False), (table.history(), True)):
                entries = DataFrame(history, self._session).select("version", "operation", "userMetadata")
                found = self._stand_in(sorted(entries.collect(), reverse=True), whole)
                if found is not None:
                    return found
        except (PySparkException, Py4JError) as error:
            raise self._unreadable(error) from error
        msg = (
            f"{self.location} is a Delta table, but not a state table that Spark has written (stormspark.state.table: spark): "
            f"use the setting with which its topology began, or give another checkpoint folder"
        )
        raise CheckpointError(msg)

    def _stand_in(self, entries: Sequence[Any], whole: bool) -> _Stand | None:
        """Return the metadata of our newest entry; None if it is not among these entries.

        Raises `CheckpointError` if a later entry of somebody else has changed the table.
        """
        newest: _Stand | None = None
        changed = ""  # the last change by somebody else
        for version, operation, metadata in entries:
            stand = stand_in(metadata)
            if stand is None:
                if operation not in _HARMLESS:
                    changed = f"version {version} ({operation})"
                continue
            if changed:
                msg = (
                    f"the state table {self.location} was changed by somebody else, last with {changed}: only a topology's "
                    f"driver may write to it. Begin with a new checkpoint folder"
                )
                raise CheckpointError(msg)
            if stand.get("format", 0) > FORMAT:
                msg = (
                    f"the state table {self.location} was written by a newer stormspark (format {stand['format']}, this one "
                    f"knows {FORMAT}): use that version"
                )
                raise CheckpointError(msg)
            one = _Stand(**stand)
            newest = newest or one
            if not one.opening:
                return replace(one, generation=newest.generation, number=newest.number, token=newest.token)
        return replace(newest, opening=False) if newest is not None and whole else None

    def _unreadable(self, error: BaseException) -> CheckpointError:
        return CheckpointError(
            f"the state table {self.location} can't be read by Spark: {in_words(error)}. Restore what is missing from a "
            f"copy, or begin with a new checkpoint folder"
        )

    # -- writing ----------------------------------------------------------------------------------

    def _writing(self) -> _Stand:
        if isinstance(self._refused, FencedError):
            raise self._refused
        if self._refused is not None:
            msg = f"the state table {self.location} {self._refused}: open it first"
            raise CheckpointError(msg)
        return self._known()

    def _fenced(self, found: _Stand) -> FencedError:
        self._refused = FencedError(
            f"the state table {self.location} belongs to another driver now: a driver of generation {found.generation} has "
            f"written to it, and this driver is of generation {self._generation}. This driver stops; run only one of the two"
        )
        return self._refused

    def _check_order(self, txid: int, last: int) -> None:
        if txid != last + 1:
            msg = (
                f"batch {txid} can't be committed to {self.location}: the last committed batch is {last}, so the next must be "
                f"{last + 1}. If the batch is committed already, it must not run again; otherwise this is the table of another "
                f"topology"
            )
            raise CheckpointError(msg)

    def _append(self, rows: pa.Table | DataFrame, stand: _Stand) -> None:
        """Write one entry of the log (see the module's docstring). If ``rows`` is a DataFrame, it replaces the whole table."""
        assert self._generation is not None
        before, self._token = self._stand, uuid.uuid4().hex
        self._number += 1
        added = rows.num_rows if isinstance(rows, pa.Table) else 0
        stand = replace(
            stand,
            generation=self._generation,
            number=self._number,
            token=self._token,
            rows=stand.rows + added,
            entries=stand.entries + 1,
        )
        raised: BaseException | None = None
        self._refused = _NOT_WRITTEN
        try:
            written = self._write(rows, stand)
        except (PySparkException, Py4JError) as error:
            written, raised = False, error
        if not written:
            found = self._look()
            if found is None or found.token != stand.token:
                is_new = found is not None and found.token != (before or _Stand()).token
                if found is not None and is_new and found.generation >= self._generation:
                    raise self._fenced(found) from raised
                why = "Delta has not written the entry" if raised is None else in_words(raised)
                msg = f"the state table {self.location} can't be written to: {why}"
                raise CheckpointError(msg) from raised
        self._stand, self._refused = stand, None

    def _write(self, rows: pa.Table | DataFrame, stand: _Stand) -> bool:
        """Write the entry. Return whether Delta confirms that; otherwise the entry may be written or not."""
        conf = self._session.conf
        conf.unset(_LAST_COMMIT)
        anew = isinstance(rows, DataFrame)
        frame = rows if isinstance(rows, DataFrame) else self._session.createDataFrame(rows).coalesce(1)
        writer = (
            frame.write.format("delta")
            .mode("overwrite" if anew else "append")
            .option("txnAppId", _APPLICATION)
            .option("txnVersion", stand.generation << _NUMBER_BITS | stand.number)
            .option("userMetadata", json.dumps({_STAND: asdict(stand)}))
        )
        if anew:
            writer = writer.option("dataChange", "false")
        if self._stand is None:
            writer = writer.options(**_TABLE_SETTINGS)
        writer.save(self.location)
        return conf.get(_LAST_COMMIT, None) is not None

    def _horizon(self, stand: _Stand) -> int:
        """Return the oldest batch that must stay readable."""
        horizon = stand.txid - self._retain_txids
        if self._retain_secs:
            old, before = -1, self._clock() - self._retain_secs
            while self._committed and self._committed[0][0] <= before:
                old = self._committed.popleft()[1]
            horizon = min(horizon, max(old, stand.oldest))
        return max(horizon, stand.oldest)


def _newest(rows: DataFrame) -> DataFrame:
    """Return the newest row of each key, without deleted keys."""
    last = functions.max(functions.struct("txid", "value")).alias("last")
    found = rows.groupBy(*ORDER).agg(last).where("last.value is not null")
    return found.select(*ORDER, "last.value", "last.txid")


def _own_session(session: SparkSession) -> SparkSession:
    """Make a session with settings for a small table that is written often."""
    own = session.newSession()
    settings: dict[str, str | int | bool] = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 8,
        "spark.databricks.delta.snapshotPartitions": 2,
        # `open` writes an entry without rows, and so does the commit of a batch in which nothing changed.
        "spark.databricks.delta.skipRecordingEmptyCommits": False,
    }
    for key, value in settings.items():
        own.conf.set(key, value)
    return own


def _literal(text: str) -> str:
    """Return a string as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
