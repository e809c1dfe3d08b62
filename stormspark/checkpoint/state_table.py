"""The state table: an append-only Delta table with a topology's state. Each batch is one commit.

    workers: write_changes(...)    each writes one file to disk; the file is not part of the table yet
    driver:  commit(txid, files)   writes one entry of Delta's log, with all of the batch or nothing
    tasks:   restore(...)          reads the newest value of each key as of a batch

**The invariant.** The table has exactly the changes of the batches up to ``last_txid``, each once. One log entry has both
the files and the number of a batch, so a crash leaves both or neither. The driver commits a batch only on top of the
previous one. The error of a failed commit does not say whether the commit is in the log. So this class reads the log entry that
the commit would have made. If this object wrote the entry, all is well. If somebody else wrote it, this driver is fenced. If
there is no such entry, this object refuses to write until `open` has read the log again.

**Announcements.** Committers are bolts that act on things outside of the topology at the end of a batch, before the batch is
committed. A later attempt at the batch has to give them the same tuples again. The *announcement* has what a later attempt needs
for that. `announce` stores the announcement before committers act. Its rows belong to the batch, and only `announced` reads them.

**One driver.** `open` commits the driver's generation. A driver makes every commit directly on top of its own last commit,
without a retry. So a commit fails if another driver has committed in between. The driver that commits first wins; the other
driver gets a `FencedError` and can never write again. An older generation can't open the table.

**No clock is trusted.** The generation and the batch in a file's name show whether somebody can still commit the file. Retention
by hours and the delay of `vacuum` are measured while a driver is alive, with a clock that only runs forward (``time.monotonic``).
The table stores the measured time as the files' time of modification. So no file is deleted too early if the system clock is set
forward or back.

**The cost** depends on the number of changes, and not on the size of the state. With 1,000 changes, it takes 9-10 ms until a
worker's file and the commit are on disk, whether the state has ten thousand keys or ten million. With 10,000 changes, it takes 18
ms (two cores, `benchmarks/state_table.py`).

Two things could break the invariant: files of another writer, or a ``VACUUM`` by somebody else. This class recognises the files
of another writer by their names, and rejects them. A ``VACUUM`` may delete merged files while a restore still reads them, or
files that workers have just written. In a local folder, a commit checks once that its files are there. If a file disappears
later, the error of the next `open`, or of the restore that needs the file, names it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from stormspark.checkpoint.delta_errors import in_one_line
from stormspark.checkpoint.missing_batch import missing_batch
from stormspark.checkpoint.state_compaction import Merge, Run, neighbours, runs_of, streams
from stormspark.checkpoint.state_files import (
    SCHEMA,
    FileDescription,
    Folder,
    TaskChanges,
    Wanted,
    advice_for,
    batch_of_changes,
    generation_of,
    missing,
    write_changes,
)
from stormspark.checkpoint.state_merge import merged
from stormspark.errors import CheckpointError, FencedError
from stormspark.extras import deltalake, or_missing
from stormspark.extras import deltalake_transaction as delta_log
from stormspark.extras import pyarrow as pa

__all__ = [
    "FileDescription",
    "Restore",
    "StateTable",
    "TaskChanges",
    "WrittenBySparkError",
    "write_changes",
]

_FORMAT = 1
_FORMAT_KEY = "stormspark.state.format"
#: Delta stores one number for each application that writes to a table. stormspark keeps several numbers in this way, under these
#: names of applications.
_TXID, _GENERATION, _OLDEST = "stormspark.txid", "stormspark.generation", "stormspark.oldest"
_ANNOUNCED_TXID = "stormspark.announced"
_COMMIT = "stormspark.commit"
#: The component, the task and the two kinds in the driver's own rows.
_DRIVER, _NO_TASK, _METADATA, _ANNOUNCED = "", -1, "metadata", "announced"
#: The driver checkpoints the log after this many versions. Delta's settings below keep old log entries for at least an hour.
_LOG_EVERY = 100
_SETTINGS = {
    _FORMAT_KEY: str(_FORMAT),
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}
_NO_HOOKS = or_missing(
    lambda: deltalake.PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
)
_DELTA_SCHEMA = or_missing(lambda: deltalake.Schema.from_arrow(SCHEMA))


@dataclass(frozen=True)
class Restore:
    """A planned restore. It describes, as plain data, all that has to be read, so that a worker can carry the restore out."""

    location: str
    files: tuple[FileDescription, ...]
    wanted: Wanted
    as_of: int
    storage_options: Mapping[str, str] | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the newest row of each key, in order, with all columns, without deleted keys."""
        folder = Folder(self.location, self.storage_options)
        return merged(streams(folder, self.files, self.wanted), self.as_of, drop_deleted=True)

    def of_task(self, task: int) -> Restore:
        """Return the part of this restore that is for one task."""
        wanted = replace(self.wanted, task=task)
        files = tuple(file for file in self.files if wanted.in_file(file))
        return replace(self, wanted=wanted, files=files)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the columns ``key`` and ``value``, a few thousand rows at a time, sorted by key."""
        for rows in self.rows():
            yield rows.select(["key", "value"])


@dataclass(frozen=True)
class _Found:
    """The contents of the table's log when it was read last, with the commits that this driver has made since."""

    table: deltalake.DeltaTable
    files: dict[str, FileDescription]
    last_txid: int
    generation: int
    oldest_txid: int
    announced_txid: int


class WrittenBySparkError(CheckpointError):
    """Raised for a table that Spark writes (``stormspark.state.table``). Such a table has the same rows, but other files."""


class StateTable:
    """The state table at ``location``, which is a path or a URL that delta-rs knows.

    The driver writes to the table after `open`. Everybody can read the table, as of the last `refresh`. At least ``retain_txids``
    batches before the last one can be restored, and all batches of the last ``retain_hours`` hours. A file that is no longer
    needed stays for ``vacuum_after_secs``, because readers may just be using it. ``clock`` gives seconds and never goes back.

    >>> import tempfile
    >>> table = StateTable(tempfile.mkdtemp())
    >>> table.open(generation=0)
    >>> changes = [TaskChanges("count", 3, [(b"storm", b"1"), (b"heron", b"7")])]
    >>> file = write_changes(table.location, changes, generation=0, txid=0)
    >>> table.commit(0, [file])
    >>> file = write_changes(table.location, [TaskChanges("count", 3, [(b"storm", b"2")])], generation=0, txid=1)
    >>> table.commit(1, [file])
    >>> [row for batch in table.restore("count", 3) for row in batch.to_pylist()]
    [{'key': b'heron', 'value': b'7'}, {'key': b'storm', 'value': b'2'}]
    >>> [row for batch in table.restore("count", 3, as_of=0) for row in batch.to_pylist()]
    [{'key': b'heron', 'value': b'7'}, {'key': b'storm', 'value': b'1'}]
    """

    def __init__(
        self,
        location: str | Path,
        *,
        retain_txids: int = 10,
        retain_hours: float = 0.0,
        vacuum_after_secs: float = 600.0,
        storage_options: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.location = str(location)
        self._folder = Folder(self.location, storage_options)
        self._retain_txids, self._retain_hours = retain_txids, retain_hours
        self._vacuum_after, self._clock = vacuum_after_secs, clock
        self._found: _Found | None = None
        self._refused: str | FencedError | None = "was not opened to be written to"
        self._generation: int | None = None
        self._merges: list[Merge] = []
        self._unneeded: dict[str, float] = {}  # files that are not needed, and since when
        self._listed: float | None = None
        self._time_at_open, self._opened = 0, 0.0
        self._log_checkpoint = 0
        # The table's files when this object last looked for files to merge.
        self._seen: dict[str, FileDescription] | None = None

    # -- what is in the table --------------------------------------------------------------------

    def refresh(self) -> None:
        """Read from the log what is committed. The driver that writes need not call this.

        Raises `CheckpointError` if the table is damaged, or was not written by this or an older version of stormspark.
        """
        self._found = self._read()

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return (self._found or self._read()) is not None

    @property
    def last_txid(self) -> int:
        """The batch that was committed last; -1 before the first."""
        return self._known().last_txid

    @property
    def oldest_txid(self) -> int:
        """The oldest batch that can still be restored."""
        return self._known().oldest_txid

    def plan_restore(
        self,
        component: str | None = None,
        task: int | None = None,
        as_of: int | None = None,
        kind: str | None = "state",
    ) -> Restore:
        """Plan a restore, which a worker can carry out.

        None as ``component``, ``task`` or ``kind`` stands for all of them, and None as ``as_of`` for the last batch. Raises
        `CheckpointError` if the table does not have that batch any more, or does not have it yet.
        """
        found = self._known()
        txid = found.last_txid if as_of is None else as_of
        if as_of is not None and not found.oldest_txid <= as_of <= found.last_txid:
            raise CheckpointError(missing_batch(self.location, found.oldest_txid, found.last_txid, as_of))
        wanted = Wanted(component, task, kind, txid)
        files = tuple(file for file in found.files.values() if wanted.in_file(file))
        return Restore(self.location, files, wanted, txid, self._folder.options)

    def restore(
        self, component: str, task: int, as_of: int | None = None, kind: str = "state"
    ) -> Iterator[pa.RecordBatch]:
        """Yield the newest value of each key of a task as of a batch: columns ``key`` and ``value``, sorted by key.

        The restore holds a few thousand rows of each file at a time, which bounds its memory. Raises `CheckpointError` like
        `plan_restore`, and if a file is missing or damaged.
        """
        return self.plan_restore(component, task, as_of, kind).batches()

    def as_arrow(
        self, component: str | None = None, as_of: int | None = None, kind: str | None = "state"
    ) -> pa.RecordBatchReader:
        """Return a stream of the state of one component or of all, as rows of the table, for people to look at."""
        rows = self.plan_restore(component, None, as_of, kind).rows()
        return pa.RecordBatchReader.from_batches(SCHEMA, rows)

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        """Return the newest values of the metadata that the driver committed with its batches."""
        found = self.restore(_DRIVER, _NO_TASK, as_of, _METADATA)
        return {row["key"]: row["value"] for rows in found for row in rows.to_pylist()}

    # -- the driver -------------------------------------------------------------------------------

    def open(self, generation: int, first_txid: int = 0) -> None:
        """Begin to write as this generation, and make the table if there is none. No earlier writer can write any more.

        ``first_txid`` is the first batch of a new table. After an error, the driver calls this again with the same generation
        to continue. Raises `FencedError` if another driver of the same or of a later generation has opened the table. Raises
        `CheckpointError` like `refresh`, and if files are missing.
        """
        if isinstance(self._refused, FencedError):
            raise self._refused
        self._abandon_merges()
        self._refused = "could not be opened"
        found = self._read() or self._create()
        if found.generation > generation or (found.generation == generation != self._generation):
            why = f"a driver of generation {found.generation} has opened it, and this driver is of generation {generation}"
            raise self._fenced(why)
        self._check_files(found)
        self._found, self._refused = found, None
        self._opened = self._clock()
        newest = max((file.time for file in found.files.values()), default=None)
        # The wall clock gives only a new table's first time, so that people see real times in the log. Nothing depends on this
        # time.
        self._time_at_open = round(time.time() * 1000) if newest is None else newest
        self._unneeded, self._listed = {}, None
        self._log_checkpoint = found.table.version()
        transactions = {_GENERATION: generation}
        if found.last_txid < 0 < first_txid:
            transactions[_TXID] = first_txid - 1
            transactions[_OLDEST] = first_txid - 1
        self._append([], transactions)
        self._generation = generation
        self._update(generation=generation)
        if _TXID in transactions:
            self._update(last_txid=first_txid - 1, oldest_txid=first_txid - 1)

    def commit(
        self,
        txid: int,
        files: Sequence[FileDescription | None],
        metadata: Mapping[bytes, bytes | None] | None = None,
    ) -> None:
        """Make a batch part of the table: the files of its workers, and the driver's own metadata.

        The commit is on disk when this returns. ``metadata`` has the driver's own keys (see `metadata`); a value of None
        deletes a key. Raises `CheckpointError` if this is not the batch after the last one, if a file belongs to another
        batch, or if the commit can't be written. Raises `FencedError` if another driver has taken over.
        """
        found = self._writing()
        generation = self._generation
        assert generation is not None
        self._check_order(txid, found.last_txid)
        # 1. Write the driver's own rows to a file, as a worker does.
        described = [file for file in files if file is not None]
        if metadata:
            own = write_changes(
                self.location,
                [TaskChanges(_DRIVER, _NO_TASK, metadata.items(), _METADATA)],
                generation=generation,
                txid=txid,
                storage_options=self._folder.options,
            )
            described += [own] if own is not None else []
        # 2. Reject files of an attempt that was given up.
        for file in described:
            if file.txids != (txid, txid) or file.generation != generation:
                msg = (
                    f"{file.path} can't be committed as batch {txid} of generation {generation} to {self.location}: it was "
                    f"written for batch {file.txids[0]} of generation {file.generation}"
                )
                raise CheckpointError(msg)
        if len({file.path for file in described}) < len(described):
            msg = f"a file came twice for batch {txid} of {self.location}: {sorted(file.path for file in described)}"
            raise CheckpointError(msg)
        self._check_written(described, txid)
        # 3. Append the log entry, which decides whether the batch has happened.
        now = self._time()
        new = [replace(file, time=now) for file in described]
        self._append([file.add_action(now, data_change=True) for file in new], {_TXID: txid})
        # 4. Update this object's copy of the log, without reading the table again.
        self._update(files=found.files | {file.path: file for file in new}, last_txid=txid)

    def announce(self, txid: int, metadata: Mapping[bytes, bytes]) -> None:
        """Store ``metadata`` for the next attempt at a batch, until the batch is committed. Call this at most once per batch.

        When this returns, the announcement is on disk, and no other driver had taken over before it was. This raises the same
        errors as `commit`, and `CheckpointError` if the batch is announced already.
        """
        found = self._writing()
        generation = self._generation
        assert generation is not None
        self._check_order(txid, found.last_txid)
        if found.announced_txid == txid:
            msg = f"batch {txid} is announced already in {self.location}, and its announcement is the same for every attempt"
            raise CheckpointError(msg)
        file = write_changes(
            self.location,
            [TaskChanges(_DRIVER, _NO_TASK, metadata.items(), _ANNOUNCED)],
            generation=generation,
            txid=txid,
            storage_options=self._folder.options,
        )
        now = self._time()
        new = [replace(file, time=now)] if file is not None else []
        self._append([one.add_action(now, data_change=True) for one in new], {_ANNOUNCED_TXID: txid})
        self._update(files=found.files | {one.path: one for one in new}, announced_txid=txid)

    def announced(self) -> tuple[int, dict[bytes, bytes]]:
        """Return the number of the batch after the last committed one, and its announcement; -1 and {} if it has none."""
        found = self._known()
        txid = found.announced_txid
        if txid <= found.last_txid:
            return -1, {}
        wanted = Wanted(_DRIVER, _NO_TASK, _ANNOUNCED, txid)
        files = tuple(file for file in found.files.values() if wanted.in_file(file))
        rows = Restore(self.location, files, wanted, txid, self._folder.options).rows()
        # A restore also returns keys that only earlier batches have announced.
        now = [row for batch in rows for row in batch.to_pylist() if row["txid"] == txid]
        return txid, {row["key"]: row["value"] for row in now}

    def compact(self, budget_secs: float) -> bool:
        """Continue merging files for about ``budget_secs``. Return whether there is more to do.

        A step takes some milliseconds. Each completed merge is a commit of its own, which takes as long as a batch's commit.
        Sometimes a step writes a checkpoint of the log instead. Restores as of the retained batches give the same rows before
        and after.
        """
        end = self._clock() + budget_secs
        while self._one_step():
            if self._clock() >= end:
                return True
        return False

    def vacuum(self, budget_secs: float) -> int:
        """Delete files that nobody needs any more, for about ``budget_secs``. Return how many were deleted.

        These are the files of attempts that can't be committed any more, and files that were merged. Each one stays for
        ``vacuum_after_secs`` after this driver first saw that nobody needs it.
        """
        found = self._writing()
        began = self._clock()
        if self._listed is None or began - self._listed >= self._vacuum_after / 10:
            self._listed = began
            unneeded = {path for path in self._folder.list() if self._is_unneeded(path, found)}
            self._unneeded = {path: self._unneeded.get(path, began) for path in unneeded}
        deleted = 0
        for path, since in list(self._unneeded.items()):
            if began - since >= self._vacuum_after:
                try:
                    self._folder.delete(path)
                except OSError as error:
                    msg = f"{path} of the state table {self.location} can't be deleted: {error}"
                    raise CheckpointError(msg) from error
                del self._unneeded[path]
                deleted += 1
                if self._clock() - began >= budget_secs:
                    break
        return deleted

    def close(self) -> None:
        """Stop writing, and give up a merge that is under way. `open` begins again."""
        self._abandon_merges()
        if not isinstance(self._refused, FencedError):
            self._refused = "was closed"

    # -- reading ----------------------------------------------------------------------------------

    def _known(self) -> _Found:
        if self._found is None:
            self._found = self._read()
        if self._found is None:
            msg = f"there is no state table at {self.location}"
            raise CheckpointError(msg)
        return self._found

    def _read(self, *, again: bool = False) -> _Found | None:
        try:
            table = deltalake.DeltaTable(self.location, storage_options=self._folder.options)
            settings, schema = table.metadata().configuration, table.schema()
            last, generation, oldest, announced = (
                -1 if (version := table.transaction_version(app)) is None else version
                for app in (_TXID, _GENERATION, _OLDEST, _ANNOUNCED_TXID)
            )
            actions = pa.table(table.get_add_actions(flatten=True))
        except deltalake.exceptions.TableNotFoundError:
            # If the log has no entries, there is no table yet. An entry that is still being written has another name.
            if self._folder.local is None or not any((self._folder.local / "_delta_log").glob("*.json")):
                return None
            if not again:  # another process may have made the table in the meantime
                return self._read(again=True)
            why = "its log has no beginning"
            raise self._damaged(why) from None
        except Exception as error:
            raise self._damaged(in_one_line(error)) from error
        written_as = settings.get(_FORMAT_KEY) or ""
        if not written_as.isdecimal() and any(
            '"stormspark"' in e.get("userMetadata", "") for e in table.history(10)
        ):
            msg = (
                f"the state table {self.location} was written by Spark (stormspark.state.table): keep the setting "
                f"spark, or give another checkpoint folder"
            )
            raise WrittenBySparkError(msg)
        if not written_as.isdecimal():
            msg = f"{self.location} is a Delta table, but not the state table of a topology: give another checkpoint folder"
            raise CheckpointError(msg)
        if int(written_as) > _FORMAT:
            msg = (
                f"the state table {self.location} was written by a newer stormspark (format {written_as}, this one knows "
                f"{_FORMAT}): use that version"
            )
            raise CheckpointError(msg)
        if schema != _DELTA_SCHEMA:
            msg = (
                f"the state table {self.location} does not have stormspark's columns, but {schema.to_json()}: somebody "
                f"changed it. Use Delta's RESTORE to the version before"
            )
            raise CheckpointError(msg)
        files = FileDescription.from_log(actions, self.location)
        return _Found(
            table,
            {file.path: file for file in files},
            last,
            generation,
            max(oldest, 0 if last >= 0 else -1),
            announced,
        )

    def _check_written(self, files: Sequence[FileDescription], txid: int) -> None:
        """Check that the driver sees the files that workers reported.

        On a worker's host, the path of a local folder may lead to another folder. A URL is the same place for all hosts, and a
        check would have to go over the network. So files at a URL are not checked.
        """
        if self._folder.local is None:
            return
        for file in files:
            try:
                size = (self._folder.local / file.path).stat().st_size
            except OSError as error:
                found = f"is missing ({error})"
            else:
                found = f"has {size} bytes instead of {file.size}"
                if size == file.size:
                    continue
            msg = (
                f"{file.path} of the state table {self.location}, which a worker has written for batch {txid}, {found} where the "
                f"driver looks, so the batch is not committed: let all hosts share the folder, and delete nothing in it"
            )
            raise CheckpointError(msg)

    def _damaged(self, why: str) -> CheckpointError:
        advice = "Restore _delta_log from a copy, or begin with a new checkpoint folder"
        if self._folder.local is None:
            advice = advice_for(self.location)
        return CheckpointError(f"the log of the state table {self.location} can't be read: {why}. {advice}")

    def _check_files(self, found: _Found) -> None:
        there = self._folder.list()
        lost = [file for file in found.files.values() if file.path not in there]
        if lost:
            raise CheckpointError(missing(self.location, lost))
        cut = [file for file in found.files.values() if there[file.path] != file.size]
        if cut:
            msg = (
                f"{cut[0].path} of the state table {self.location} has {there[cut[0].path]} bytes instead of {cut[0].size}: it "
                f"was cut or changed. Restore the file from a copy, or begin with a new checkpoint folder"
            )
            raise CheckpointError(msg)

    # -- writing ----------------------------------------------------------------------------------

    def _create(self) -> _Found:
        try:
            if self._folder.local is not None:
                self._folder.local.mkdir(parents=True, exist_ok=True)
            deltalake.DeltaTable.create(
                self.location,
                _DELTA_SCHEMA,
                mode="ignore",
                configuration=_SETTINGS,
                storage_options=self._folder.options,
                raise_if_key_not_exists=False,
            )
            self._folder.sync_log(0)
        except Exception as error:
            msg = f"a state table can't be made at {self.location}: {in_one_line(error)}"
            raise CheckpointError(msg) from error
        found = self._read()
        assert found is not None
        return found

    def _writing(self) -> _Found:
        if isinstance(self._refused, FencedError):
            raise self._refused
        if self._refused is not None:
            msg = f"the state table {self.location} {self._refused}: open it first"
            raise CheckpointError(msg)
        return self._known()

    def _fenced(self, why: str) -> FencedError:
        self._abandon_merges()
        self._refused = FencedError(
            f"the state table {self.location} belongs to another driver now: {why}. This driver stops; run only one of the two"
        )
        return self._refused

    def _check_order(self, txid: int, last: int) -> None:
        if txid <= last:
            msg = (
                f"batch {txid} is committed already to {self.location} (the last committed batch is {last}): it must not run "
                f"again"
            )
            raise CheckpointError(msg)
        if txid != last + 1:
            msg = (
                f"batch {txid} can't be committed to {self.location}: the last committed batch is {last}, so the next must be "
                f"{last + 1}. The batches between are lost, or this is the table of another topology: begin with a new "
                f"checkpoint folder"
            )
            raise CheckpointError(msg)

    def _append(
        self, actions: list[delta_log.AddAction | delta_log.RemoveAction], transactions: Mapping[str, int]
    ) -> None:
        """Append one entry to the log, directly after the last entry that this object knows (see the module's invariant)."""
        table = self._writing().table
        expected, token = table.version() + 1, uuid.uuid4().hex
        try:
            table.create_write_transaction(
                actions,
                "append",
                _DELTA_SCHEMA,
                commit_properties=deltalake.CommitProperties(
                    custom_metadata={_COMMIT: token}
                    | {app: str(version) for app, version in transactions.items()},
                    app_transactions=[
                        deltalake.Transaction(app, version) for app, version in transactions.items()
                    ],
                    max_commit_retries=0,
                ),
                post_commithook_properties=_NO_HOOKS,
            )
            self._folder.sync_log(expected)
            table.update_incremental()
            if table.version() == expected:
                return
            why = f"version {table.version()} came right after version {expected} of this driver"
        except Exception as error:
            self._refused = f"could not be written to ({in_one_line(error)})"
            written_by = self._token_of(expected)
            if written_by is None:
                why = in_one_line(error)
                msg = f"the state table {self.location} can't be written to, and version {expected} does not exist: {why}"
                raise CheckpointError(msg) from error
            if written_by == token:
                self._reload(expected)
                self._refused = None
                return
            why = f"this driver did not write version {expected} of it"
        raise self._fenced(why)

    def _token_of(self, version: int) -> str | None:
        """Return the token in the log entry of a version; "" if the entry has none, and None if there is no such version."""
        try:
            table = deltalake.DeltaTable(self.location, storage_options=self._folder.options)
            if table.version() < version:
                return None
            entries = {entry["version"]: entry for entry in table.history(table.version() - version + 1)}
            return str(entries.get(version, {}).get(_COMMIT, ""))
        except Exception as error:
            msg = (
                f"the state table {self.location} can't be read after an error in a commit, so it is unknown whether the commit "
                f"was written: {in_one_line(error)}"
            )
            raise CheckpointError(msg) from error

    def _reload(self, version: int) -> None:
        """Read the log again after a commit that raised an error but is in the log."""
        try:
            table = deltalake.DeltaTable(self.location, storage_options=self._folder.options)
            self._folder.sync_log(version)
        except Exception as error:
            why = in_one_line(error)
            msg = f"version {version} of the state table {self.location} was written, but can't be read or kept: {why}"
            raise CheckpointError(msg) from error
        if table.version() != version:
            why = f"version {table.version()} came right after version {version} of this driver"
            raise self._fenced(why)
        self._found = replace(self._known(), table=table)

    def _update(
        self,
        files: dict[str, FileDescription] | None = None,
        last_txid: int | None = None,
        oldest_txid: int | None = None,
        generation: int | None = None,
        announced_txid: int | None = None,
    ) -> None:
        found = self._known()
        self._found = _Found(
            found.table,
            found.files if files is None else files,
            found.last_txid if last_txid is None else last_txid,
            found.generation if generation is None else generation,
            found.oldest_txid if oldest_txid is None else oldest_txid,
            found.announced_txid if announced_txid is None else announced_txid,
        )
        if found.oldest_txid < 0 <= self._found.last_txid:
            self._found = replace(self._found, oldest_txid=self._found.last_txid)

    # -- compaction and vacuum --------------------------------------------------------------------

    def _time(self) -> int:
        """Return the table's own time in milliseconds. It advances while a driver is alive, and never goes back."""
        return self._time_at_open + round((self._clock() - self._opened) * 1000)

    def _horizon(self, found: _Found) -> int:
        """Return the oldest batch that must stay restorable."""
        horizon = found.last_txid - self._retain_txids
        if self._retain_hours:
            old = self._time() - round(self._retain_hours * 3_600_000)
            batches = [file.batches[1] for file in found.files.values() if file.time <= old]
            horizon = min(horizon, max(batches, default=-1))
        return max(horizon, found.oldest_txid)

    def _one_step(self) -> bool:
        """Do one small step of compaction. Return whether there was anything to do."""
        found = self._writing()
        if found.table.version() - self._log_checkpoint >= _LOG_EVERY:
            self._checkpoint_log(found.table)
            return True
        if self._seen is not found.files:
            self._begin_merge(found)
        if not self._merges:
            return False
        merge = min(self._merges, key=attrgetter("rows"))
        try:
            files = merge.step()
        except BaseException as error:
            self._abandon_merges()
            next_version = found.table.version() + 1
            if isinstance(error, (OSError, CheckpointError)) and self._token_of(next_version) is not None:
                # The driver that has taken over may have merged and deleted the files that this merge reads.
                why = f"this driver did not write version {next_version} of it"
                raise self._fenced(why) from error
            if isinstance(error, OSError):
                msg = f"the state table {self.location} can't be compacted: {in_one_line(error)}"
                raise CheckpointError(msg) from error
            raise
        if files is not None:
            self._merges.remove(merge)
            self._put_in_place(found, merge, files)
        return True

    def _begin_merge(self, found: _Found) -> None:
        """Begin a merge that is worth while, but only if it is smaller than all merges under way.

        So few merges are under way at once.
        """
        self._seen = found.files
        busy = {file.path for merge in self._merges for file in merge.inputs}
        # The file with the announcement of an uncommitted batch is not merged before the other files of its batch, because runs
        # must never overlap.
        files = [file for file in found.files.values() if file.batches[1] <= found.last_txid]
        runs: list[Run | None] = [None if run.files[0].path in busy else run for run in runs_of(files)]
        chosen = neighbours(runs)
        if chosen is None:
            return
        begin, end = chosen
        assert self._generation is not None
        inputs = [run for run in runs[begin:end] if run is not None]
        if all(sum(run.rows for run in inputs) < merge.rows for merge in self._merges):
            self._merges.append(
                Merge(self._folder, inputs, self._horizon(found), begin == 0, self._generation)
            )

    def _put_in_place(self, found: _Found, merge: Merge, files: list[FileDescription]) -> None:
        gone = {file.path for file in merge.inputs}
        # The time of deletion is the wall clock's, because the VACUUM of other programs uses it. `vacuum` does not.
        now = round(time.time() * 1000)
        oldest = max(found.oldest_txid, merge.horizon)
        self._append(
            [file.add_action(file.time, data_change=False) for file in files]
            + [delta_log.RemoveAction(file.path, False, now, file.size, {}) for file in merge.inputs],
            {_OLDEST: oldest},
        )
        kept = {path: file for path, file in found.files.items() if path not in gone}
        self._update(files=kept | {file.path: file for file in files}, oldest_txid=oldest)

    def _abandon_merges(self) -> None:
        for merge in self._merges:
            merge.abandon()
        self._merges, self._seen = [], None

    def _checkpoint_log(self, table: deltalake.DeltaTable) -> None:
        self._log_checkpoint = table.version()
        try:
            table.create_checkpoint()
            table.cleanup_metadata()
        except Exception as error:
            msg = f"the log of the state table {self.location} can't be tidied: {in_one_line(error)}"
            raise CheckpointError(msg) from error

    def _is_unneeded(self, path: str, found: _Found) -> bool:
        """Whether a file is not in the table and can't be committed any more. The file's name shows whether it can."""
        generation, batch = generation_of(path), batch_of_changes(path)
        if generation is None or path in found.files or generation > found.generation:
            return False
        if generation < found.generation:
            return True
        if batch is not None:
            return batch <= found.last_txid
        return not any(path.startswith(merge.name) for merge in self._merges)
