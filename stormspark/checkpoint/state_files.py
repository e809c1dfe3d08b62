"""The files of a state table: their rows, their names, and how they are written and read.

A row is one change: the component and task that made it, its kind, the key, the value (null means that the key was deleted) and
the batch. All rows of a batch go into one commit: a task's state, the position of a spout, the outbox of a sink and the driver's
own rows. Only announcements are committed earlier. The column **kind** distinguishes these changes. Rows of different kinds may
have equal keys, so a task reads its rows of one kind at a time.

Each file is sorted by `ORDER`, then by the batch, newest first. There are two sorts of files:

- *changes*, which a worker wrote for one batch: ``changes/<generation>-<txid>-<random>.parquet``. The generation and the batch in
  the name show, without a clock, whether the file can still be committed. It can't be committed if its generation is an older
  one, or if its batch is committed already. The random part makes the names of different attempts differ.
- *runs*, which compaction merged from the files of the batches ``first`` to ``last``:
  ``runs/<first>-<last>-<generation>-<random>-<number>.parquet``. In the order of their numbers, the files of a run have one
  sorted sequence of rows.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from stormspark.checkpoint.delta_errors import in_one_line
from stormspark.errors import CheckpointError
from stormspark.extras import deltalake_fs, or_missing
from stormspark.extras import deltalake_transaction as delta_log
from stormspark.extras import pyarrow as pa
from stormspark.extras import pyarrow_compute as pc
from stormspark.extras import pyarrow_fs as pafs
from stormspark.extras import pyarrow_parquet as pq
from stormspark.launcher import is_url

__all__ = [
    "DELTA_RS",
    "ORDER",
    "ROWS",
    "SCHEMA",
    "WINDOW",
    "ChangedRows",
    "FileDescription",
    "Folder",
    "RunWriter",
    "TaskChanges",
    "Wanted",
    "advice_for",
    "changed_rows",
    "read_file",
    "rows_of",
    "write_changes",
]

#: Schemes of URLs to which workers can write with delta-rs.
DELTA_RS = {"file", "memory", "s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"}
#: The kind of the tuples that windows hold (C41).
WINDOW = "window"
#: The kind for source rows whose tuples bolts still hold when their batch has ended.
ROWS = "rows"
#: The columns by which a file is sorted. Rows that are equal in these columns are sorted by the batch.
ORDER = ("component", "task", "kind", "key")
SCHEMA = or_missing(
    lambda: pa.schema(
        [
            ("component", pa.string()),
            ("task", pa.int32()),
            ("kind", pa.string()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("txid", pa.int64()),
        ]
    )
)
#: A reader reads one row group at a time, so row groups are bounded in rows and in bytes.
_GROUP_ROWS, _GROUP_BYTES = 8_192, 4 << 20
#: Files are bounded, too, because a restore skips whole files of a run, and because one fsync writes a whole file.
_FILE_ROWS, _FILE_BYTES = 262_144, 16 << 20
_CHANGES = re.compile(r"changes/(\d+)-(\d+)-[0-9a-f]{32}\.parquet")
_RUN = re.compile(r"(runs/(\d+)-(\d+)-(\d+)-[0-9a-f]{32})-\d+\.parquet")


@dataclass(frozen=True)
class TaskChanges:
    """The changes of one task in a batch: pairs of key and value. The value is None if the key was deleted.

    If a key comes more than once, its last pair counts. ``kind`` is ``state``, ``window``, ``rows``, ``spout``, ``outbox``,
    ``inputs``, ``metadata`` or ``announced``.
    """

    component: str
    task: int
    items: Iterable[tuple[bytes, bytes | None]]
    kind: str = "state"


@dataclass(frozen=True)
class FileDescription:
    """A description of a file of the table. The driver commits the file with it. It is plain data that can be pickled.

    ``size`` is in bytes. ``rows`` is the number of rows, and ``deletions`` says how many of them delete a key. ``components``,
    ``tasks``, ``kinds`` and ``txids`` are the smallest and the largest value of each column. A restore skips files by them.
    ``time`` is the table's time at which the newest change in the file was committed, in milliseconds. A commit sets it for files
    of changes, and `RunWriter.close` for the files of a run.
    """

    path: str
    size: int
    rows: int
    deletions: int
    components: tuple[str, str]
    tasks: tuple[int, int]
    kinds: tuple[str, str]
    txids: tuple[int, int]
    time: int = 0

    @property
    def run(self) -> str:
        """The name that all files of a run share. For a file of changes, it is the file's path."""
        found = _RUN.fullmatch(self.path)
        return found[1] if found else self.path

    @property
    def batches(self) -> tuple[int, int]:
        """The first and the last batch whose changes went into the file, even if none of these changes is left."""
        found = _RUN.fullmatch(self.path)
        if found:
            return int(found[2]), int(found[3])
        return self.txids

    @property
    def generation(self) -> int:
        """The generation of the driver for which the file was written."""
        return generation_of(self.path) or 0

    def add_action(self, time: int, data_change: bool) -> delta_log.AddAction:
        """Return the action of Delta's log that adds the file."""
        lows, highs = zip(self.components, self.tasks, self.kinds, self.txids, strict=True)
        names = ("component", "task", "kind", "txid")
        nulls = dict.fromkeys(SCHEMA.names, 0) | {"value": self.deletions}
        stats = {
            "numRecords": self.rows,
            "minValues": dict(zip(names, lows, strict=True)),
            "maxValues": dict(zip(names, highs, strict=True)),
            "nullCount": nulls,
        }
        return delta_log.AddAction(self.path, self.size, {}, time, data_change, json.dumps(stats))

    @classmethod
    def from_log(cls, actions: pa.Table, location: str) -> list[FileDescription]:
        """Make the descriptions of a table's active files from its flattened add actions."""
        found = []
        for row in actions.to_pylist():
            try:
                one = cls(
                    row["path"],
                    row["size_bytes"],
                    row["num_records"],
                    row["null_count.value"],
                    (row["min.component"], row["max.component"]),
                    (row["min.task"], row["max.task"]),
                    (row["min.kind"], row["max.kind"]),
                    (row["min.txid"], row["max.txid"]),
                    row["modification_time"],
                )
                if generation_of(one.path) is None or None in (
                    *one.components,
                    *one.tasks,
                    *one.kinds,
                    *one.txids,
                ):
                    raise KeyError(one.path)
            except KeyError as error:
                msg = (
                    f"the state table {location} has the file {row.get('path')}, which stormspark did not write ({error!r}): "
                    f"only a topology's driver may write to it. Use Delta's RESTORE to the version before"
                )
                raise CheckpointError(msg) from error
            found.append(one)
        return found


@dataclass(frozen=True)
class ChangedRows:
    """The changes of a worker in a batch, if only the driver can write to the table. ``data`` is an Arrow stream of `SCHEMA`."""

    generation: int
    txid: int
    data: bytes

    def table(self) -> pa.Table:
        """Return the rows as a table."""
        return pa.ipc.open_stream(self.data).read_all()


def generation_of(path: str) -> int | None:
    """Return the generation in a file's name; None if stormspark did not write the file.

    >>> generation_of("changes/3-17-" + "0" * 32 + ".parquet"), generation_of("part-0.parquet")
    (3, None)
    """
    if found := _CHANGES.fullmatch(path):
        return int(found[1])
    found = _RUN.fullmatch(path)
    return int(found[4]) if found else None


def batch_of_changes(path: str) -> int | None:
    """Return the batch in the name of a file of changes; None for every other file."""
    found = _CHANGES.fullmatch(path)
    return int(found[2]) if found else None


def advice_for(location: str) -> str:
    """Say what to do about a URL that can't be read."""
    if location.partition(":")[0].lower() not in DELTA_RS:
        return (
            "Spark writes state tables there, and delta-rs may not reach them. Read it with a Spark session that has Delta's "
            "jars (stormspark.state(..., spark=spark)), and leave out the setting stormspark.state.table"
        )
    return (
        "delta-rs needs its address and credentials in the environment, such as AWS_ENDPOINT_URL and AWS_ACCESS_KEY_ID. "
        "If it has them: Restore _delta_log from a copy, or begin with a new checkpoint folder"
    )


class Folder:
    """The table's folder: a local path, or a URL that delta-rs knows, with its ``storage_options``.

    Raises `CheckpointError` for a URL that delta-rs does not know.
    """

    def __init__(self, location: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.location = location
        self.options = dict(storage_options) if storage_options else None
        self.local = None if is_url(location) else Path(location)
        self._remote = None
        if self.local is None:
            try:
                self._remote = pafs.PyFileSystem(deltalake_fs.DeltaStorageHandler(location, self.options))
            except Exception as error:  # of a place that delta-rs does not know, whatever it raises
                msg = (
                    f"the state table {location} can't be read: {in_one_line(error)}. {advice_for(location)}"
                )
                raise CheckpointError(msg) from error

    def create(self, path: str) -> Any:
        """Create a file to write to. The caller has to `close` it."""
        if self.local is None:
            assert self._remote is not None
            return self._remote.open_output_stream(path)
        target = self.local / path
        try:
            return target.open("xb", buffering=0)
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            _sync_folder(self.local)
            return target.open("xb", buffering=0)

    def close(self, sink: Any) -> int:
        """Close a file that `create` made. It is on disk when this returns. Return its size."""
        if self.local is None:
            size = int(sink.tell())
            sink.close()
            return size
        os.fsync(sink.fileno())
        size = os.fstat(sink.fileno()).st_size
        sink.close()
        _sync_folder(Path(sink.name).parent)
        return size

    def sync_log(self, version: int) -> None:
        """Wait until a version of the log is on disk. delta-rs does not wait for the disk."""
        if self.local is not None:
            entry = self.local / "_delta_log" / f"{version:020}.json"
            with entry.open("rb") as file:
                os.fsync(file.fileno())
            _sync_folder(entry.parent)

    def read(self, path: str) -> Any:
        """Open a file to read from."""
        if self.local is not None:
            return pa.OSFile(str(self.local / path))
        assert self._remote is not None
        return self._remote.open_input_file(path)

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes; None if there is no such file. Raises OSError."""
        if self.local is not None:
            with contextlib.suppress(FileNotFoundError):
                return (self.local / path).stat().st_size
            return None
        assert self._remote is not None
        (found,) = self._remote.get_file_info([path])
        return int(found.size) if found.is_file else None

    def list(self, *sorts: str) -> dict[str, int]:
        """Return the files of these sorts with their sizes. The default is ``changes`` and ``runs``."""
        found: dict[str, int] = {}
        for sort in sorts or ("changes", "runs"):
            if self.local is not None:
                with contextlib.suppress(FileNotFoundError), os.scandir(self.local / sort) as entries:
                    found |= {f"{sort}/{entry.name}": entry.stat().st_size for entry in entries}
            else:
                assert self._remote is not None
                selected = self._remote.get_file_info(pafs.FileSelector(sort, allow_not_found=True))
                found |= {f"{sort}/{info.base_name}": info.size for info in selected if info.is_file}
        return found

    def delete(self, path: str) -> None:
        """Delete a file. It is no error if the file is gone already."""
        with contextlib.suppress(FileNotFoundError):
            if self.local is not None:
                (self.local / path).unlink()
            else:
                assert self._remote is not None
                self._remote.delete_file(path)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _FileWriter:
    """A writer of one file. It gets sorted tables."""

    def __init__(self, folder: Folder, path: str) -> None:
        self.path, self.rows, self.bytes = path, 0, 0
        self._folder, self._sink, self._deletions = folder, folder.create(path), 0
        self._lows: list[Any] = []
        self._highs: list[Any] = []
        # With checksums, a wrong bit on the disk causes an error, and not a wrong value.
        self._writer = pq.ParquetWriter(
            self._sink, SCHEMA, use_dictionary=["component", "task", "kind"], write_page_checksum=True
        )

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self.rows += rows.num_rows
        self.bytes += rows.nbytes
        self._deletions += rows["value"].null_count
        for name in ("component", "task", "kind", "txid"):
            extremes = pc.min_max(rows[name]).as_py()
            self._lows.append((name, extremes["min"]))
            self._highs.append((name, extremes["max"]))

    def close(self) -> FileDescription:
        self._writer.close()
        size = self._folder.close(self._sink)
        ends: dict[str, Any] = {
            name: (min(v for n, v in self._lows if n == name), max(v for n, v in self._highs if n == name))
            for name in ("component", "task", "kind", "txid")
        }
        return FileDescription(
            self.path,
            size,
            self.rows,
            self._deletions,
            ends["component"],
            ends["task"],
            ends["kind"],
            ends["txid"],
        )

    def abandon(self) -> None:
        with contextlib.suppress(Exception):
            self._writer.close()
        with contextlib.suppress(Exception):
            self._sink.close()


def write_changes(
    location: str,
    changes: Iterable[TaskChanges],
    *,
    generation: int,
    txid: int,
    storage_options: Mapping[str, str] | None = None,
) -> FileDescription | None:
    """Write the changes of a worker's tasks in a batch to a file beside the table, for the driver to commit.

    When this returns, the file is on disk, but not yet part of the table. Return None if nothing changed. Raises
    `CheckpointError` if the file can't be written, and ValueError if a task's changes of one kind come in two parts.
    """
    rows = rows_of(changes, txid)
    if rows is None:
        return None
    return write_rows(location, rows, generation=generation, txid=txid, storage_options=storage_options)


def write_rows(
    location: str,
    rows: pa.Table,
    *,
    generation: int,
    txid: int,
    storage_options: Mapping[str, str] | None = None,
) -> FileDescription:
    """Do the same as `write_changes`, for changes that are already rows (`rows_of`)."""
    path = f"changes/{generation}-{txid}-{uuid.uuid4().hex}.parquet"
    try:
        writer = _FileWriter(Folder(location, storage_options), path)
        try:
            for part in _row_groups(rows):
                writer.write(part)
            return writer.close()
        except BaseException:
            writer.abandon()
            raise
    except OSError as error:
        msg = f"the changes of batch {txid} can't be written to {location}: {in_one_line(error)}"
        raise CheckpointError(msg) from error


def changed_rows(changes: Iterable[TaskChanges], *, generation: int, txid: int) -> ChangedRows | None:
    """Return the changes of a worker's tasks in a batch, for the driver to write. Return None if nothing changed.

    >>> found = changed_rows([TaskChanges("count", 3, [(b"storm", b"1")])], generation=0, txid=7)
    >>> found.table().to_pylist()
    [{'component': 'count', 'task': 3, 'kind': 'state', 'key': b'storm', 'value': b'1', 'txid': 7}]
    """
    rows = rows_of(changes, txid)
    if rows is None:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(rows)
    return ChangedRows(generation, txid, sink.getvalue().to_pybytes())


def rows_of(changes: Iterable[TaskChanges], txid: int) -> pa.Table | None:
    """Return the changes as sorted rows of the table; None if there are none. Raises ValueError as `write_changes` does."""
    tables = []
    seen = set()
    for one in sorted(changes, key=attrgetter("component", "task", "kind")):
        group = (one.component, one.task, one.kind)
        if group in seen:
            msg = (
                f"changes of {one.component}[{one.task}] ({one.kind}) came twice in batch {txid}; expected one part per task and "
                f"kind"
            )
            raise ValueError(msg)
        seen.add(group)
        pairs = sorted(dict(one.items).items(), key=itemgetter(0))
        if pairs:
            keys, values = zip(*pairs, strict=True)
            columns = [
                pa.repeat(pa.scalar(v, t), len(pairs)) for v, t in zip(group, SCHEMA.types, strict=False)
            ]
            columns += [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
            columns.append(pa.repeat(pa.scalar(txid, pa.int64()), len(pairs)))
            tables.append(pa.table(columns, schema=SCHEMA))
    return pa.concat_tables(tables) if tables else None


class RunWriter:
    """A writer of the files of one run. It gets sorted tables. ``name`` is the name of its files without their number."""

    def __init__(self, folder: Folder, batches: tuple[int, int], generation: int) -> None:
        self.name = f"runs/{batches[0]}-{batches[1]}-{generation}-{uuid.uuid4().hex}"
        self._folder = folder
        self._writer: _FileWriter | None = None
        self._waiting: list[pa.Table] = []
        self._rows = self._bytes = 0
        self._done: list[FileDescription] = []

    def write(self, rows: pa.Table) -> None:
        """Write the next rows. They stay in memory until there are enough for a row group."""
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        for part in _row_groups(pa.concat_tables(self._waiting)):
            if self._writer is None:
                self._writer = _FileWriter(self._folder, f"{self.name}-{len(self._done):05}.parquet")
            self._writer.write(part)
            if self._writer.rows >= _FILE_ROWS or self._writer.bytes >= _FILE_BYTES:
                self._done.append(self._writer.close())
                self._writer = None
        self._waiting, self._rows, self._bytes = [], 0, 0

    def close(self, time: int) -> list[FileDescription]:
        """End the run. Return its files, if it has any rows.

        ``time`` is the table's time at which its newest batch was committed.
        """
        self._flush()
        if self._writer is not None:
            self._done.append(self._writer.close())
            self._writer = None
        return [replace(file, time=time) for file in self._done]

    def abandon(self) -> None:
        """Stop writing. The files stay until a vacuum deletes them."""
        if self._writer is not None:
            self._writer.abandon()


def _row_groups(rows: pa.Table) -> Iterator[pa.Table]:
    rows = rows.combine_chunks()
    if rows.num_rows <= _GROUP_ROWS and rows.nbytes <= _GROUP_BYTES:
        yield rows
        return
    sizes = pc.add(pc.binary_length(rows["key"]), pc.fill_null(pc.binary_length(rows["value"]), 0))
    ends = np.cumsum(sizes.to_numpy())
    begin = 0
    while begin < rows.num_rows:
        before = ends[begin - 1] if begin else 0
        full = int(np.searchsorted(ends, before + _GROUP_BYTES, side="right"))
        end = min(rows.num_rows, begin + _GROUP_ROWS, max(begin + 1, full))
        yield rows.slice(begin, end - begin)
        begin = end


@dataclass(frozen=True)
class Wanted:
    """The rows that a reader wants, by the values of their columns. None means that any value is wanted."""

    component: str | None = None
    task: int | None = None
    kind: str | None = None
    as_of: int | None = None

    def in_file(self, file: FileDescription) -> bool:
        """Whether a file may have wanted rows."""
        return self._within(file.components, file.tasks, file.kinds, file.txids[0])

    def in_row_group(self, group: Any) -> bool:
        """Whether a row group may have wanted rows, according to Parquet's own statistics."""
        found = [group.column(n).statistics for n in (0, 1, 2, 5)]
        if not all(one is not None and one.has_min_max for one in found):
            return True
        components, tasks, kinds = ((one.min, one.max) for one in found[:3])
        return self._within(components, tasks, kinds, found[3].min)

    def _within(
        self, components: tuple[str, str], tasks: tuple[int, int], kinds: tuple[str, str], oldest: int
    ) -> bool:
        return (
            (self.component is None or components[0] <= self.component <= components[1])
            and (self.task is None or tasks[0] <= self.task <= tasks[1])
            and (self.kind is None or kinds[0] <= self.kind <= kinds[1])
            and (self.as_of is None or oldest <= self.as_of)
        )

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return those of the rows that are wanted."""
        for name, value in (("component", self.component), ("task", self.task), ("kind", self.kind)):
            column = rows[name]
            if value is not None and rows.num_rows and pc.any(pc.not_equal(column, value)).as_py():
                rows = rows.filter(pc.equal(column, value))
        if self.as_of is not None and rows.num_rows and pc.max(rows["txid"]).as_py() > self.as_of:
            rows = rows.filter(pc.less_equal(rows["txid"], self.as_of))
        return rows


def read_file(folder: Folder, file: FileDescription, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a file, one row group at a time. Raises `CheckpointError` if the file is missing or damaged."""
    try:
        with folder.read(file.path) as source:
            parquet = pq.ParquetFile(source, page_checksum_verification=True)
            if parquet.metadata.num_rows != file.rows or not parquet.schema_arrow.equals(SCHEMA):
                msg = f"it has {parquet.metadata.num_rows} rows of {parquet.schema_arrow.names} instead of {file.rows}"
                raise pa.ArrowInvalid(msg)
            for number in range(parquet.num_row_groups):
                if wanted.in_row_group(parquet.metadata.row_group(number)):
                    group = parquet.read_row_group(number, use_threads=False).combine_chunks()
                    for rows in group.to_batches():
                        found = wanted.of(rows)
                        if found.num_rows:
                            yield found
    except FileNotFoundError as error:
        raise CheckpointError(missing(folder.location, [file])) from error
    except (OSError, pa.ArrowException, TypeError) as error:
        msg = (
            f"{file.path} of the state table {folder.location} is damaged: {error}. It has changes of the batches "
            f"{file.batches[0]} to {file.batches[1]}; restore the file from a copy, or begin with a new checkpoint folder"
        )
        raise CheckpointError(msg) from error


def missing(location: str, files: list[FileDescription]) -> str:
    """Return the message about files that the table's log names and the folder does not have."""
    names = ", ".join(file.path for file in files[:3]) + (
        f" and {len(files) - 3} more" if len(files) > 3 else ""
    )
    first, last = min(file.batches[0] for file in files), max(file.batches[1] for file in files)
    return (
        f"the state table {location} lacks {names}, with changes of the batches {first} to {last}: somebody deleted or "
        f"vacuumed files that it needs. Restore the files from a copy, or begin with a new checkpoint folder"
    )
