"""Tuples to files, acked when they are on the disk: Storm's HdfsBolt for local, mounted and remote file systems (K10)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping
from os import PathLike
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


class _Writer(NamedTuple):
    file: OutputFile
    rotation: FileRotationPolicy


class FileBolt(TransactionalSink, TickTupleAwareBolt):
    """Writes each tuple as a record into files of its task below ``path``, and acks it when it is synced (K10).

    ``path`` is a folder, or a URL that pyarrow has a file system for (``s3://bucket/folder``); or give ``filesystem``. A file
    system that can't sync a part of a file gets a file for each sync: let it sync seldom.

    A file that is being written has a name that begins with ``_``, so that readers skip it, until it is done: rotated, at the
    topology's end, or when a later life of any task of the component finds it. With ``in_progress`` false it has its own name
    from the beginning, as HdfsBolt's; after a kill its last record may then be half.

    Whatever can't be written or synced fails all tuples that wait, with the reason; a record that can't be made fails its tuple
    alone.

    Where the topology's batches are transactions (C42) a batch is committed when its records are synced; those of a batch that
    comes again are there twice.

    >>> bolt = (
    ...     FileBolt("/data/out")
    ...     .with_record_format(DelimitedRecordFormat("|"))
    ...     .with_sync_policy(CountSyncPolicy(1000))
    ...     .with_rotation_policy(TimedRotationPolicy(300))
    ... )
    """

    #: Whether batches are transactions: then the batch stands for its tuples, which are acked at once.
    _in_transaction = False

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
        """``file_name(context, rotation, timestamp_ms)`` gives a file's name, which must be another one for each."""
        self._file_name = file_name
        return self

    def with_record_format(self, record: Callable[[Tuple], str | bytes]) -> Self:
        """Who makes a record, with all that ends it, of a tuple.

        Where it says by ``record_end`` what ends every record, half a record is cut off after a kill.
        """
        self._record = record
        return self

    def with_rotation_policy(self, policy: FileRotationPolicy) -> Self:
        """When a file is done; by default every minute."""
        self._rotation = policy
        return self

    def with_sync_policy(self, policy: SyncPolicy) -> Self:
        """When to sync and ack; by default every 1000 tuples. What is not synced waits in memory."""
        self._sync_policy = policy
        return self

    def add_rotation_action(self, action: Callable[[str], Any]) -> Self:
        """Call ``action(path)`` for each file that is done. What it raises is reported."""
        self._actions.append(action)
        return self

    def with_tick_tuple_interval_seconds(self, seconds: float) -> Self:
        """Sync at least so often; 15 by default, 0: by the sync policy alone."""
        self._tick_secs = seconds
        return self

    def with_retry_count(self, count: int) -> Self:
        """How often a sync is tried; 3 by default."""
        self._retries = max(1, count)
        return self

    def with_max_open_files(self, count: int) -> Self:
        """One file more ends the one that was longest without a tuple; 50 by default."""
        if count < 1:
            msg = f"FileBolt needs at least one open file, got {count!r} (K10)"
            raise InvalidTopologyError(msg)
        self._max_open = count
        return self

    def with_partitioner(self, partitioner: Callable[[Tuple], str]) -> Self:
        """Who gives the folder below ``path`` that a tuple's file is in."""
        self._partitioner = partitioner
        return self

    def get_component_configuration(self) -> Mapping[str, Any]:
        """Its ticks."""
        return {"topology.tick.tuple.freq.secs": self._tick_secs} if self._tick_secs else {}

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Make the folder, end the files of earlier lives; raises OSError where it can't write there."""
        self._context, self._collector = context, collector
        self._waiting: list[Tuple] = []
        self._writers: dict[str, _Writer] = {}  # by partition, the one that was used last at the end
        # An instance that raised leaves its files to the next one of its task.
        mine = f"files of FileBolt {context.this_task_id}"
        before: dict[str, _Writer] = context.get_executor_data(mine) or {}
        context.set_executor_data(mine, self._writers)
        self._files = 0  # made so far; their numbers tell files of several partitions apart
        self._folder = self._path.rstrip("/")
        if self._filesystem is None:
            if "://" in self._path and not self._path.startswith("file://"):
                from pyarrow import fs

                self._filesystem, self._folder = fs.FileSystem.from_uri(self._path)
            else:
                self._folder = self._path.removeprefix("file://")
                Path(self._folder).mkdir(parents=True, exist_ok=True)
                if self._in_progress:
                    end = getattr(self._record, "record_end", None)
                    record_end = end.encode() if isinstance(end, str) else end
                    for path in finish_abandoned(Path(self._folder), self._owner, record_end):
                        context.logger.info("%s was left by an earlier life, it is done now", path)
                        self._act(path)
        for partition, writer in before.items():
            self._writers[partition] = writer
            self._end(partition)
        if self._rotation.interval_secs is not None:
            context.set_timer(self._rotation.interval_secs, self._rotate_all)

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Batches are transactions."""
        self._in_transaction = True

    def pre_save(self, checkpoint_id: int) -> None:
        """Sync what the batch has written; raises OSError where that can't be."""
        self._sync()

    def post_save(self, checkpoint_id: int) -> None:
        """Nothing is left to do."""

    def process(self, tup: Tuple) -> None:
        """Write a tuple; sync and rotate when it is time."""
        try:
            record = self._record(tup)
            data = record.encode() if isinstance(record, str) else bytes(record)
            partition = self._partitioner(tup).strip("/")
            if ".." in partition.split("/"):
                msg = f"the partitioner gave {partition!r}, which leads out of {self._folder}"
                raise ValueError(msg)
        except Exception as error:  # the user's code, or a tuple that does not fit it
            self._collector.report_error(error)
            self._collector.fail(tup, f"{type(error).__name__}: {error}")
            return
        try:
            writer = self._writer_for(partition)
        except OSError as error:
            self._collector.report_error(error)
            self._collector.fail(tup, f"{type(error).__name__}: {error}")
            self._sync()  # what is written already
            return
        offset = writer.file.write(data)
        self._waiting.append(tup)
        if self._in_transaction:
            self._collector.ack(tup)
        done = writer.rotation.mark(tup, offset)
        if self._sync_policy.mark(tup, offset):
            self._sync()
        if done:
            self._rotate(partition)

    def on_tick_tuple(self, tick: Tuple) -> None:
        """Sync what waits."""
        self._sync()
        self._collector.ack(tick)

    def cleanup(self) -> None:
        """Sync, and end all files."""
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
        """A new file. A name that is in use, by a life that began in the same moment, is given again with a later time."""
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
                    msg = f"{path} is there already: the file name format must give other names, by task and time"
                    raise FileExistsError(msg) from error
            time_ms, tried = time_ms + 1, name

    def _sync(self) -> bool:
        """Make all that waits safe and ack it; false: it has failed, and new files are begun."""
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
                raise OSError(reason)  # the batch comes again
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
        """End a partition's file, if there still is one after the sync."""
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


def _no_partition(tup: Tuple) -> str:
    return ""
