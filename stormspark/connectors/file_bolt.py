"""A bolt that writes tuples to files on local, mounted or remote file systems. Its counterpart in Storm is HdfsBolt (K10)."""

from __future__ import annotations

import copy
import errno
from collections.abc import Callable, Mapping, MutableMapping
from os import PathLike, fsencode
from pathlib import Path
from typing import Any, NamedTuple, Self

from stormspark.api import OutputCollector, TickTupleAwareBolt, TopologyContext, Tuple
from stormspark.api.state import TransactionalSink
from stormspark.connectors.file_bolt_formats import DefaultFileNameFormat, DelimitedRecordFormat
from stormspark.connectors.file_bolt_policies import (
    CountSyncPolicy,
    FileRotationPolicy,
    SyncPolicy,
    TimedRotationPolicy,
)
from stormspark.connectors.file_bolt_storage import LocalFile, OutputFile, RemoteFile, finish_abandoned
from stormspark.errors import InvalidTopologyError

__all__ = ["FileBolt"]


#: If opening a file raises one of these errors, the reason is the file's path. The path depends on the tuple, so only this tuple
#: fails. Any other error means that no file can be opened, because the storage can't be reached or is full.
_OF_PATH = frozenset(
    [errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ]
)


class _Writer(NamedTuple):
    file: OutputFile
    rotation: FileRotationPolicy


class FileBolt(TransactionalSink, TickTupleAwareBolt):
    """A bolt that writes each tuple as one record to a file. Unless batches are transactions, it acks the tuple once the record
    is synced (K10).

    Each task writes files of its own below ``path``. ``path`` is a folder, or a URL for which pyarrow has a file system, such as
    ``s3://bucket/folder``. Alternatively, pass a pyarrow file system as ``filesystem``. pyarrow's file systems can't sync part of
    a file. So on these, each sync writes a new file, and you should choose a sync policy that syncs rarely. Readers see such a
    file only once it is complete.

    On a disk of the host, or a mounted file system, the name of a file begins with ``_`` while the file is being written, so that
    readers skip it. The bolt renames a file that is done: when the file is rotated, when the topology ends, or when any task of
    the component finds the file after a restart. With ``in_progress`` false, the file has its final name from the beginning, as
    with HdfsBolt. After a kill, the last record of such a file may be incomplete.

    If a sync fails as often as `with_retry_count` allows, all waiting tuples fail with the reason. If the record of a tuple
    can't be made, or the file for it can't be opened, only this tuple fails.

    If the topology's batches are transactions (C42), the bolt acks each tuple at once, and syncs a batch's records before the
    batch is committed. If a sync fails, or no file can be opened, no tuple fails, and the batch runs again. The records of a
    batch that runs again may be written twice.

    >>> bolt = (
    ...     FileBolt("/data/out")
    ...     .with_record_format(DelimitedRecordFormat("|"))
    ...     .with_sync_policy(CountSyncPolicy(1000))
    ...     .with_rotation_policy(TimedRotationPolicy(300))
    ... )
    """

    #: Whether batches are transactions. If so, tuples are acked at once, because the batch as a whole succeeds or fails.
    _in_transaction = False
    #: If batches are transactions, why the storage did not take all records of this batch; "" if it took all of them.
    _lost = ""

    def __init__(
        self, path: str | PathLike[str], *, filesystem: Any = None, in_progress: bool = True
    ) -> None:
        self._path, self._filesystem, self._in_progress = str(path), filesystem, in_progress
        self._file_name: Callable[[TopologyContext, int, int], str] = DefaultFileNameFormat()
        self._record: Callable[[Tuple], str | bytes] = DelimitedRecordFormat()
        self._rotation: FileRotationPolicy = TimedRotationPolicy(60)
        self._sync_policy: SyncPolicy = CountSyncPolicy(1000)
        self._actions: list[Callable[[str], Any]] = []
        self._tick_secs: float = 15
        self._retries = 3
        self._max_open = 50
        self._partitioner: Callable[[Tuple], str] = _no_partition

    def with_file_name_format(self, file_name: Callable[[TopologyContext, int, int], str]) -> Self:
        """Set the function ``file_name(context, rotation, timestamp_ms)``. It returns a file's name, which must be unique."""
        self._file_name = file_name
        return self

    def with_record_format(self, record: Callable[[Tuple], str | bytes]) -> Self:
        """Set the function that turns a tuple into a record, including the delimiter that ends the record.

        If the function has an attribute ``record_end`` with the delimiter, a record that is incomplete after a kill is cut off.
        """
        self._record = record
        return self

    def with_rotation_policy(self, policy: FileRotationPolicy) -> Self:
        """Set the policy that says when a file is done. By default, files are done every minute."""
        self._rotation = policy
        return self

    def with_sync_policy(self, policy: SyncPolicy) -> Self:
        """Set the policy that says when to sync, and so when tuples are acked. The default is every 1000 tuples.

        Records that are not synced wait in memory.
        """
        self._sync_policy = policy
        return self

    def add_rotation_action(self, action: Callable[[str], Any]) -> Self:
        """Call ``action(path)`` for each file that is done. If it raises, the exception is reported."""
        self._actions.append(action)
        return self

    def with_tick_tuple_interval_seconds(self, seconds: float) -> Self:
        """Sync at least once every ``seconds`` seconds, 15 by default. With 0, only the policies say when to sync."""
        self._tick_secs = seconds
        return self

    def with_retry_count(self, count: int) -> Self:
        """Set how many times a sync is tried before its tuples fail. The default is 3."""
        self._retries = max(1, count)
        return self

    def with_max_open_files(self, count: int) -> Self:
        """Set how many files a task keeps open, 50 by default.

        When a task needs one more file, it finishes the file that got no tuple for the longest time.
        """
        if count < 1:
            msg = f"FileBolt needs at least one open file, got {count!r}"
            raise InvalidTopologyError(msg)
        self._max_open = count
        return self

    def with_partitioner(self, partitioner: Callable[[Tuple], str]) -> Self:
        """Set the function that returns a folder below ``path`` for each tuple. The tuple is written to a file in this folder."""
        self._partitioner = partitioner
        return self

    def get_component_configuration(self) -> Mapping[str, Any]:
        """Return the interval of the bolt's tick tuples."""
        return {"topology.tick.tuple.freq.secs": self._tick_secs} if self._tick_secs else {}

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Unless the folder is on a remote file system, make it, and finish the files that earlier runs left in it.

        Raises OSError if the folder can't be made or read. If batches are transactions, only the task's first instance raises
        this error in this method. Later instances raise it in `pre_save`, and the batch runs again, because the storage has
        worked before and may come back.
        """
        self._context, self._collector = context, collector
        self._waiting: list[Tuple] = []
        self._writers: dict[str, _Writer] = {}  # by partition, in the order of their last use
        # If an earlier instance of this task raised an exception, it has left files open. This instance ends these files.
        own_files = f"files of FileBolt {context.this_task_id}"
        before: dict[str, _Writer] | None = context.get_executor_data(own_files)
        context.set_executor_data(own_files, self._writers)
        self._files = 0  # the number of files that this instance has made; it distinguishes the files of different partitions
        self._folder = self._path.rstrip("/")
        if self._filesystem is None:
            if "://" in self._path and not self._path.startswith("file://"):
                from pyarrow import fs

                self._filesystem, self._folder = fs.FileSystem.from_uri(self._path)
            else:
                self._folder = self._path.removeprefix("file://")
                try:
                    self._prepare_folder()
                except OSError as error:
                    if before is None or not self._in_transaction:
                        msg = (
                            f"FileBolt can't use the folder {self._folder}: {error}. It has to be a folder that the worker's "
                            f"user can write to"
                        )
                        raise type(error)(msg) from None
                    self._lost = f"the folder {self._folder} can't be prepared: {error}"
                    collector.report_error(error)
        for partition, writer in (before or {}).items():
            self._writers[partition] = writer
            self._end(partition)
        if self._rotation.interval_secs is not None:
            context.set_timer(self._rotation.interval_secs, self._rotate_all)

    def _prepare_folder(self) -> None:
        Path(self._folder).mkdir(parents=True, exist_ok=True)
        if self._in_progress:
            end = getattr(self._record, "record_end", None)
            record_end = end.encode() if isinstance(end, str) else end
            for path in finish_abandoned(Path(self._folder), self._owner, record_end):
                self._context.logger.info(
                    "%s was left unfinished by an earlier worker, and is finished now", path
                )
                self._act(path)

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Remember that batches are transactions. The engine calls this method only if they are."""
        self._in_transaction = True

    def pre_save(self, checkpoint_id: int) -> None:
        """Sync the batch's records. Raises OSError if a sync fails now, or has failed earlier in the batch."""
        self._sync()
        if self._lost:
            raise OSError(self._lost)

    def post_save(self, checkpoint_id: int) -> None:
        """Do nothing: the records were synced before the commit."""

    def process(self, tup: Tuple) -> None:
        """Write a tuple, then sync and rotate if the policies say so."""
        try:
            record = self._record(tup)
            data = record.encode() if isinstance(record, str) else bytes(record)
            partition = self._partitioner(tup).strip("/")
            if ".." in partition.split("/"):
                msg = f"the partitioner returned {partition!r}, which is outside of {self._folder}"
                raise ValueError(msg)
            if not _can_be_path(partition):
                msg = f"the partitioner returned {partition!r:.300}, which has a character that no path can have"
                raise ValueError(msg)
        except Exception as error:  # the user's code is wrong, or the tuple does not fit it
            self._collector.report_error(error)
            self._collector.fail(tup, f"{type(error).__name__}: {error}")
            return
        if self._lost:
            self._collector.ack(tup)  # the batch runs again, so the rest of the batch need not be written
            return
        try:
            writer = self._writer_for(partition)
        except OSError as error:
            self._collector.report_error(error)
            reason = f"{type(error).__name__}: {error}"
            if self._in_transaction and not _is_of_path(error):
                self._lost = self._lost or f"no file can be opened in {self._folder}: {reason}"
                self._collector.ack(tup)
                return
            self._collector.fail(tup, reason)
            self._sync()  # ack or fail the tuples whose records are already written
            return
        offset = writer.file.write(data)
        self._waiting.append(tup)
        if self._in_transaction:
            self._collector.ack(tup)  # the batch as a whole succeeds or fails
        done = writer.rotation.mark(tup, offset)
        if self._sync_policy.mark(tup, offset):
            self._sync()
        if done:
            self._rotate(partition)

    def on_tick_tuple(self, tick: Tuple) -> None:
        """Sync the waiting records."""
        self._sync()
        self._collector.ack(tick)

    def end_of_input(self) -> None:
        """Sync the waiting records, and finish all files unless batches are transactions."""
        if self._in_transaction:
            self._sync()
        else:
            self._rotate_all()

    def cleanup(self) -> None:
        """Sync, and finish all files."""
        self._rotate_all()

    @property
    def _owner(self) -> str:
        return self._context.this_component_id.replace("/", "_")

    def _writer_for(self, partition: str) -> _Writer:
        writer = self._writers.pop(partition, None)
        if writer is None:
            if len(self._writers) >= self._max_open:
                self._rotate(next(iter(self._writers)))
            writer = _Writer(self._open(partition), copy.copy(self._rotation))
        self._writers[partition] = writer
        return writer

    def _open(self, partition: str) -> OutputFile:
        """Open a new file.

        The file's name may be in use, if another instance of the task started in the same millisecond. Then the bolt tries later
        timestamps.
        """
        time_ms, tried = self._context.now_ms(), None
        while True:
            name = self._file_name(self._context, self._files, time_ms)
            path = "/".join(filter(None, [self._folder, partition, name]))
            if self._filesystem is not None:
                self._files += 1
                return RemoteFile(self._filesystem, path)
            try:
                file = LocalFile(Path(path), self._owner if self._in_progress else None)
                self._files += 1
                return file
            except FileExistsError as error:
                if name == tried:
                    msg = f"{path} exists already: the file name format must return a new name for each task and time"
                    raise FileExistsError(msg) from error
            time_ms, tried = time_ms + 1, name

    def _sync(self) -> bool:
        """Sync the waiting records. Unless batches are transactions, ack their tuples.

        Returns false if the sync failed. The tuples have then failed, and later tuples go to new files. If batches are
        transactions, no tuple fails. Instead `pre_save` raises an error, because none of the batch's tuples is to blame. After
        such a failure, this method does nothing and returns false until the batch runs again.
        """
        if self._lost:
            return False
        if not self._waiting:
            return True
        for attempt in range(1, self._retries + 1):
            try:
                for writer in self._writers.values():
                    writer.file.sync()
                break
            except OSError as error:
                self._collector.report_error(f"sync failed, attempt {attempt} of {self._retries}: {error}")
                reason = f"could not be written to {self._folder}: {error}"
        else:
            waiting, self._waiting = self._waiting, []
            self._sync_policy.reset()
            for partition in list(self._writers):
                self._end(partition)
            if self._in_transaction:
                self._lost = reason
                return False
            for tup in waiting:
                self._collector.fail(tup, reason)
            return False
        waiting, self._waiting = self._waiting, []
        for tup in () if self._in_transaction else waiting:
            self._collector.ack(tup)
        self._sync_policy.reset()
        for partition in [name for name, writer in self._writers.items() if writer.file.ends_with_sync]:
            self._end(partition)
        return True

    def _rotate(self, partition: str) -> None:
        """Sync. Then finish the partition's file, if the sync has not already finished it."""
        self._sync()
        if partition in self._writers:
            self._end(partition)

    def _rotate_all(self) -> None:
        self._sync()
        for partition in list(self._writers):
            self._end(partition)

    def _end(self, partition: str) -> None:
        writer = self._writers.pop(partition)
        try:
            path = writer.file.finish()
        except OSError as error:
            self._collector.report_error(error)
            return
        if path is not None:
            self._act(path)

    def _act(self, path: str) -> None:
        for action in self._actions:
            try:
                action(path)
            except Exception as error:
                self._collector.report_error(error)


def _is_of_path(error: OSError) -> bool:
    return isinstance(error, FileExistsError) or error.errno in _OF_PATH


def _can_be_path(partition: str) -> bool:
    try:
        return b"\0" not in fsencode(partition)
    except UnicodeEncodeError:
        return False


def _no_partition(tup: Tuple) -> str:
    return ""
