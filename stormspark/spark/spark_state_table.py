"""The state table, written by Spark: for places that only Spark can write to, with its file systems and credentials.

    workers: changed_rows(...)     in their reports, no file
    driver:  commit(txid, rows)    one append of Delta's, with all of them
    driver:  newest(...)           what workers get of their state when they begin (`StateHandOver`)

It promises what `stormspark.checkpoint.state_table` does: a batch is in it as a whole or not at all, and once; one driver
writes; what a commit raised says nothing, so then the table is asked.

**How one driver is kept alone.** Each entry is written as a version of one application of Delta's, ``stormspark``:
the generation above, a number that goes up with every try below. Delta refuses, in silence, an entry whose version is not above
the last one; and of two that are written at the same time one, since both had looked at that version. So once a later generation
has written anything, nothing of an earlier one gets in, also if it had been on its way. A write that left nothing is told by the
version that Delta says it has written in this session, or else by the newest entry of the log.

**What the table says of itself** is in the ``userMetadata`` of the newest entry: the last batch, and so on (`_Stand`).
Entries of an ``OPTIMIZE`` or ``VACUUM`` may come after it, others may not.

**Compaction** writes the table anew, with one row a key and all rows of the batches that are retained, in one entry and between
two batches. That takes the longer the more state there is; it comes when there are as many changes as it left rows,
so a change pays for about one row more. The files that it replaces stay until somebody's ``VACUUM``, which may run at any time.
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
from stormspark.checkpoint.state_files import ORDER, SCHEMA, ChangedRows, TaskChanges, rows_of
from stormspark.checkpoint.table_of_spark import FORMAT, stand_in
from stormspark.config import DELTA_PACKAGE
from stormspark.errors import (
    CheckpointError,
    FencedError,
    UnsupportedEnvironmentError,
)

__all__ = ["SparkStateTable", "is_for_spark"]

_APPLICATION = _STAND = "stormspark"
_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
#: The bits of a version below the generation.
_NUMBER_BITS = 36
#: Entries of others that leave the rows as they are.
_HARMLESS = {"OPTIMIZE", "VACUUM START", "VACUUM END"}
#: The driver's own rows.
_DRIVER, _NO_TASK, _METADATA, _ANNOUNCED = "", -1, "metadata", "announced"
#: Compaction comes after so many entries if there is enough to gain, and after so many in any case: each has a file.
_COMPACT_AFTER, _COMPACT_AT_LAST = 50, 1000
_ROWS_A_FILE = 1_000_000
_ROWS_AT_ONCE = 8192
_NOT_WRITTEN = "could not be written to"
#: Of an opening, against a driver that still writes.
_TRIES = 10
#: Schemes of URLs that delta-rs and the workers write to by themselves.
_DELTA_RS = {"file", "memory", "s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"}
_TABLE_SETTINGS = {
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}


def is_for_spark(setting: str | None, location: str) -> bool:
    """Whether Spark writes the state table at ``location``, by ``stormspark.state.table`` or by the location's scheme.

    >>> is_for_spark(None, "/checkpoints/count"), is_for_spark(None, "hdfs://name/checkpoints/count")
    (False, True)
    """
    scheme, colon, _ = location.partition(":")
    reached = location.startswith("/") or not colon or scheme.lower() in _DELTA_RS
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
    """What the newest entry says: who wrote it, the last batch, the oldest that can be read, the one that was announced last."""

    format: int = FORMAT
    generation: int = -1
    number: int = -1
    token: str = ""
    txid: int = -1
    oldest: int = -1
    announced: int = -1
    #: The first entry of a driver, which keeps the earlier ones out. One of these may still have come right before it, so all
    #: but who wrote it is what the entry before says.
    opening: bool = False
    #: The rows that the last compaction left, and rows and entries since.
    compacted: int = 0
    rows: int = 0
    entries: int = 0


class SparkStateTable:
    """The state table at ``location``, which is as Spark wants it: a URL of any file system that it knows.

    ``retain_txids`` and ``retain_hours`` say how many batches before the last can be read at least; hours are counted by
    ``clock``, from when this driver saw a batch. Raises `UnsupportedEnvironmentError` where the session has no Delta.
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
                f"this Spark session has no Delta, and the state table {location} can be written by Spark only "
                f"(stormspark.state.table): start Spark with --packages {DELTA_PACKAGE}"
            )
            raise UnsupportedEnvironmentError(msg)
        self.location = location
        self._session = _own_session(session)
        self._tables: Any = self._session._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr]
        self._retain_txids, self._retain_secs, self._clock = retain_txids, retain_hours * 3600, clock
        self._committed: deque[tuple[float, int]] = deque()  # when, for retention by hours
        self._stand: _Stand | None = None
        self._refused: str | FencedError | None = "was not opened to be written to"
        self._generation: int | None = None
        self._number, self._token = -1, ""  # of the last try
        self._compact_after = _COMPACT_AFTER

    # -- what the table says ---------------------------------------------------------------------

    def refresh(self) -> None:
        """Read what is committed, where this is not the driver; raises `CheckpointError`."""
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
        """The newest rows of these tasks, by component; of all tasks where they are None. Raises as `newest_rows`."""
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
        """The newest row of each key as of a batch, without deleted ones, sorted: all that ``where``, in SQL, lets through.

        It is all in memory then. Raises `CheckpointError` where the table does not have that batch, or can't be read.
        """
        stand = self._known()
        txid = stand.txid if as_of is None else as_of
        if as_of is not None and not stand.oldest <= as_of <= stand.txid:
            msg = (
                f"the state table {self.location} can give the batches {stand.oldest} to {stand.txid}, not {as_of}: older ones "
                f"are kept by stormspark.state.retain.txids and stormspark.state.retain.hours"
            )
            raise CheckpointError(msg)
        try:
            rows = self._rows().where(functions.col("kind") == kind).where(f"txid <= {txid}").where(where)
            found = _newest(rows).toArrow()
        except (PySparkException, Py4JError) as error:
            raise self._unreadable(error) from error
        return found.cast(SCHEMA).sort_by([(name, "ascending") for name in ORDER])

    def plan_restore(
        self, component: str | None = None, task: int | None = None, as_of: int | None = None
    ) -> HandedRows:
        """What has the newest rows, in hand; for people who look at a state."""
        wanted = [f"component = {_literal(component)}"] if component is not None else []
        wanted += [f"task = {task}"] if task is not None else []
        return in_hand(self.newest_rows(" and ".join(wanted) or "true", as_of))

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        """What the driver committed with its batches, newest values."""
        found = self.newest_rows(as_of=as_of, kind=_METADATA).to_pylist()
        return {row["key"]: row["value"] for row in found}

    def announced(self) -> tuple[int, dict[bytes, bytes]]:
        """The batch after the last one that is committed, and what was announced of it; -1 and nothing if nothing was."""
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
        """Begin to write as this generation, and make the table if there is none: whoever wrote before can't go on.

        ``first_txid`` is the first batch of a new table. Again, it is how this driver goes on after an error. Raises
        `FencedError` where a driver of the same or of a later generation has opened it, and `CheckpointError` for a table that
        can't be read, or not by this version.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                self._open(generation, first_txid)
            except FencedError:
                raise
            except CheckpointError:
                # A driver before us may have written at the same time; the more often it does, the more often it wins.
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
            # Of our own generation only what this object has written itself may be there.
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
        # From here on nobody of an earlier generation gets in: so now, and not before, the table can be asked what it has.
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
        """Make a batch part of the table: what its workers changed, and what the driver wants to know of it again.

        It is there when this returns. Raises `CheckpointError` where this is not the batch after the last, or rows are
        not of it, or it can't be written; `FencedError` where another driver has taken over.
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
        """Keep what the next attempt at a batch has to know, before the batch is committed; its commit makes it void.

        It is there when this returns. Once a batch. Raises as `commit`.
        """
        stand = self._writing()
        self._check_order(txid, stand.txid)
        if stand.announced == txid:
            msg = f"batch {txid} was announced already to {self.location}: what was announced holds for every attempt at it"
            raise CheckpointError(msg)
        rows = rows_of([TaskChanges(_DRIVER, _NO_TASK, metadata.items(), _ANNOUNCED)], txid)
        self._append(SCHEMA.empty_table() if rows is None else rows, replace(stand, announced=txid))

    def compact(self, budget_secs: float) -> bool:
        """Write the table anew if it is time for that, however long it takes; returns whether there is more to do: never.

        Raises as `commit`. What can be read before, of the batches that are retained, can be read after.
        """
        stand = self._writing()
        enough = stand.entries >= self._compact_after and stand.rows >= stand.compacted
        if not enough and stand.entries < _COMPACT_AT_LAST + self._compact_after:
            return False
        self._compact_after = stand.entries + _COMPACT_AFTER  # if it fails
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
        """Delete nothing: that is for Delta's ``VACUUM``, which takes longer than any batch may wait."""
        return 0

    def close(self) -> None:
        """End writing. `open` begins again."""
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
        """What the log says now; None where there is no table."""
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
        """Of the newest entry of ours, which all that came later has left as it was; None where there are not enough."""
        newest: _Stand | None = None
        changed = ""  # by somebody else
        for version, operation, said in entries:
            stand = stand_in(said)
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
                    f"knows {FORMAT}): use that one"
                )
                raise CheckpointError(msg)
            one = _Stand(**stand)
            newest = newest or one
            if not one.opening:
                return replace(one, generation=newest.generation, number=newest.number, token=newest.token)
        return replace(newest, opening=False) if newest is not None and whole else None

    def _unreadable(self, error: BaseException) -> CheckpointError:
        return CheckpointError(
            f"the state table {self.location} can't be read by Spark: {_first_line(error)}. Bring what is missing back from a "
            f"copy, or begin with a new checkpoint folder"
        )

    # -- writing ----------------------------------------------------------------------------------

    def _writing(self) -> _Stand:
        if isinstance(self._refused, FencedError):
            raise self._refused
        if self._refused is not None:
            msg = f"the state table {self.location} {self._refused}: open it"
            raise CheckpointError(msg)
        return self._known()

    def _fenced(self, found: _Stand) -> FencedError:
        self._refused = FencedError(
            f"the state table {self.location} belongs to another driver now: one of generation {found.generation} has "
            f"written to it, this one's is {self._generation}. This one stops; end one of the two"
        )
        return self._refused

    def _check_order(self, txid: int, last: int) -> None:
        if txid != last + 1:
            msg = (
                f"batch {txid} can't be committed to {self.location}: the last is {last}, so {last + 1} is next. If it is "
                f"committed already it must not run again; else this is another topology's table"
            )
            raise CheckpointError(msg)

    def _append(self, rows: pa.Table | DataFrame, stand: _Stand) -> None:
        """One entry of the log, in place of the table where ``rows`` come out of it; see the module's first lines."""
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
                news = found is not None and found.token != (before or _Stand()).token
                if found is not None and news and found.generation >= self._generation:
                    raise self._fenced(found) from raised
                why = "Delta has left it out" if raised is None else _first_line(raised)
                msg = f"the state table {self.location} can't be written to: {why}"
                raise CheckpointError(msg) from raised
        self._stand, self._refused = stand, None

    def _write(self, rows: pa.Table | DataFrame, stand: _Stand) -> bool:
        """Returns whether Delta says that it has; if it does not, that says nothing."""
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
        """The oldest batch that is to be kept."""
        horizon = stand.txid - self._retain_txids
        if self._retain_secs:
            old, before = -1, self._clock() - self._retain_secs
            while self._committed and self._committed[0][0] <= before:
                old = self._committed.popleft()[1]
            horizon = min(horizon, max(old, stand.oldest))
        return max(horizon, stand.oldest)


def _newest(rows: DataFrame) -> DataFrame:
    """One row a key, of those that are not deleted."""
    last = functions.max(functions.struct("txid", "value")).alias("last")
    found = rows.groupBy(*ORDER).agg(last).where("last.value is not null")
    return found.select(*ORDER, "last.value", "last.txid")


def _own_session(session: SparkSession) -> SparkSession:
    """With settings for a small table, written often."""
    own = session.newSession()
    settings: dict[str, str | int | bool] = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 8,
        "spark.databricks.delta.snapshotPartitions": 2,
        # The opening of a table is an entry without rows, and so is a batch in which nothing changed.
        "spark.databricks.delta.skipRecordingEmptyCommits": False,
    }
    for key, value in settings.items():
        own.conf.set(key, value)
    return own


def _literal(text: str) -> str:
    """A text as Spark's SQL has it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:1000]
