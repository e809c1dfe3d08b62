"""The durable acker's journal: files with changes of records, one numbered file per commit, in the topology's checkpoint.

    1.arrow, 2.arrow, 3.arrow ...    each is an Arrow stream of changes; a file is complete, or does not exist

The journal has one writer, the topology's driver, and one reader, the acker query. The query needs nothing but these files
(`spark/acker_stream.py`). The driver deletes a file once the query has taken the file's changes into its state. The newest file
stays, because it holds the acker's time.

**The invariant.** Files get consecutive numbers, and each number is used once. So one number says how far the query has read. A
commit that raised an error may have been written all the same; `settle` finds out whether it was. A driver that finds a file of a
later driver stops writing (`FencedError`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from stormspark.checkpoint.exclusive_files import write_whole
from stormspark.errors import CheckpointError, FencedError
from stormspark.extras import or_missing
from stormspark.extras import pyarrow as pa

__all__ = ["AckerJournal", "JournalFiles", "LocalJournalFiles"]

_FORMAT = 1
_SUFFIX = ".arrow"
_METADATA = b"stormspark"
_OPTIONS = or_missing(lambda: pa.ipc.IpcWriteOptions(compression="lz4"))
#: An Arrow message has at most this many rows. The reader passes each message on as a whole.
_ROWS_AT_ONCE = 8192


class JournalFiles(Protocol):
    """The storage of the journal's files. Each method may raise OSError."""

    @property
    def folder(self) -> Path:
        """The folder in which a process on the driver's host can read the files as ``<number>.arrow``."""

    def numbers(self) -> list[int]:
        """Return the numbers of the existing files, sorted."""

    def read(self, number: int) -> bytes:
        """Return the contents of a file. Raises FileNotFoundError."""

    def add(self, number: int, data: bytes) -> None:
        """Write a file, whole or not at all. Raises FileExistsError if there is one already."""

    def delete(self, numbers: Iterable[int]) -> None:
        """Delete these files. Files that are gone already are no error."""


class LocalJournalFiles:
    """Journal files in a local folder, which is made with the first file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for left in folder.glob("*.new"):  # a driver that died while it wrote has left this file
            left.unlink(missing_ok=True)

    def numbers(self) -> list[int]:
        """See `JournalFiles`."""
        if not self.folder.exists():
            return []
        names = (path.name.removesuffix(_SUFFIX) for path in self.folder.glob(f"*{_SUFFIX}"))
        return sorted(int(name) for name in names if name.isdecimal())

    def read(self, number: int) -> bytes:
        """See `JournalFiles`."""
        return self._path(number).read_bytes()

    def add(self, number: int, data: bytes) -> None:
        """See `JournalFiles`. The file is on disk when this returns."""
        write_whole(self._path(number), data, replace=False)

    def delete(self, numbers: Iterable[int]) -> None:
        """See `JournalFiles`."""
        for number in numbers:
            self._path(number).unlink(missing_ok=True)

    def __str__(self) -> str:
        return str(self.folder)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}{_SUFFIX}"


class _Head(NamedTuple):
    """The header of a file. The metadata of the file's schema has these fields as one string, in this order."""

    format: int
    generation: int
    writer: str
    #: The acker's time of the commit, in microseconds.
    at: int
    #: The watermark's delay, in seconds.
    delay: float

    @classmethod
    def read(cls, data: bytes) -> _Head:
        with pa.ipc.open_stream(data) as stream:
            fields = (stream.schema.metadata or {})[_METADATA].decode().split()
        return cls(int(fields[0]), int(fields[1]), fields[2], int(fields[3]), float(fields[4]))


class AckerJournal:
    """The driver's side of the journal: it appends commits, and deletes those that the acker query no longer needs.

    ``schema`` is the schema of the changes, with ``created`` in microseconds. ``delay`` is the watermark's delay, in seconds. The
    first commit fixes the delay, because the delay decides which records are old. Making the object raises `CheckpointError` if
    the newest file can't be read, or if a newer stormspark wrote it.
    """

    def __init__(self, files: JournalFiles, schema: pa.Schema, delay: float, generation: int) -> None:
        self.files, self.delay = files, delay
        #: The acker's time at the last commit before this object was made, in microseconds; None if there was no commit.
        self.last_time: int | None = None
        self._schema, self._generation = schema, generation
        self._writer = ""  # identifies the last call of `append`; each call has an id of its own
        try:
            self._numbers = files.numbers()
            if self._numbers:
                head = _Head.read(files.read(self._numbers[-1]))
        except (OSError, pa.ArrowException, LookupError, ValueError) as error:
            msg = f"the durable acker's journal {files} can't be read: {error}"
            raise CheckpointError(msg) from error
        if not self._numbers:
            return
        if head.format > _FORMAT:
            msg = (
                f"the durable acker's journal {files} was written by a newer stormspark (format {head.format}): "
                f"use that version"
            )
            raise CheckpointError(msg)
        self.last_time, self.delay = head.at, head.delay

    @property
    def last(self) -> int:
        """The number of the last commit; 0 before the first."""
        return self._numbers[-1] if self._numbers else 0

    @property
    def first(self) -> int:
        """The number of the oldest commit whose file exists; 1 if there is none."""
        return self._numbers[0] if self._numbers else 1

    def append(self, changes: pa.Table, at: int) -> None:
        """Write changes in one commit. One more row, with the time ``at``, moves the acker query's watermark.

        If this raises OSError, the commit may be written or not; `settle` finds that out. Raises `FencedError` if a later driver
        has written, or if a write of this driver that had failed turns up. Raises `CheckpointError` if there is a file with the
        commit's number that can't be read.
        """
        tick = pa.table({"root": [0], "created": pa.array([at], pa.timestamp("us", "UTC")), "value": [0]})
        rows = pa.concat_tables([changes, tick], promote_options="default").select(self._schema.names)
        self._writer = uuid.uuid4().hex
        head = " ".join(map(str, _Head(_FORMAT, self._generation, self._writer, at, self.delay)))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(
            sink, self._schema.with_metadata({_METADATA: head}), options=_OPTIONS
        ) as stream:
            stream.write_table(rows.cast(self._schema), max_chunksize=_ROWS_AT_ONCE)
        data = sink.getvalue().to_pybytes()
        while True:
            number = self.last + 1
            try:
                self.files.add(number, data)
            except FileExistsError:
                mine = self._look_at(number)
                self._numbers.append(number)
                if mine:
                    return
            else:
                self._numbers.append(number)
                return

    def settle(self) -> bool:
        """Find out whether a call of `append` that raised an error has written its file all the same.

        Raises OSError. Raises `CheckpointError` if the file exists and can't be read.
        """
        number = self.last + 1
        try:
            mine = self._head(number).writer == self._writer
        except FileNotFoundError:
            return False
        if mine:
            self._numbers.append(number)
        return mine

    def _look_at(self, number: int) -> bool:
        """Find out which call of `append` has written the file of this number. Return whether it was the current call.

        The current call may meet its own file, if the file system has repeated the write, as NFS does when an answer is lost. The
        file may also come from an earlier driver whose write was still under way. Raises `FencedError` if a later driver has
        written the file, or if an earlier call of `append` by this driver has.
        """
        head = self._head(number)
        if head.writer == self._writer:
            return True
        if head.generation == self._generation:
            msg = (
                f"the durable acker's journal {self.files} received its file {number} late: the write had failed, the file "
                f"was missing, and its changes were reported again. This driver stops, because it would count them twice: start "
                f"the topology again, and it continues from here"
            )
            raise FencedError(msg)
        if head.generation > self._generation:
            msg = (
                f"the durable acker's journal {self.files} belongs to another driver now: a driver of generation "
                f"{head.generation} has written to it, and this driver is of generation {self._generation}. This driver stops; "
                f"run only one of the two"
            )
            raise FencedError(msg)
        return False

    def _head(self, number: int) -> _Head:
        data = self.files.read(number)
        try:
            return _Head.read(data)
        except (pa.ArrowException, LookupError, ValueError) as error:
            msg = f"file {number} of the durable acker's journal {self.files} can't be read: {error}"
            raise CheckpointError(msg) from error

    def forget(self, up_to: int) -> int:
        """Delete the commits up to ``up_to``, but never the newest commit. Return how many were deleted. Raises OSError."""
        old = [number for number in self._numbers[:-1] if number <= up_to]
        if old:
            self.files.delete(old)
            self._numbers = self._numbers[len(old) :]
        return len(old)
