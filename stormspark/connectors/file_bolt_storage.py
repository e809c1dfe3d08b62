"""The files that a `FileBolt` writes, on this host's file systems or on others.

A file of this host is written under a name that readers skip, ``_{owner}.{name}.inprogress``, and gets its own name when it is
done. Its writer holds a lock on it as long as it lives. So after a kill anybody can tell which files nobody writes any more:
`finish_abandoned` ends them, because what is in them may be acked. What follows the last whole record there is cut off.

What was written and could not be synced is taken back, or written over by the next attempt: each sync begins where the last
one ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["LocalFile", "OutputFile", "RemoteFile", "finish_abandoned"]

_BLOCK = 64 * 1024


class OutputFile(ABC):
    """One file; all methods that do anything raise OSError."""

    #: Whether a sync ends the file, because its file system can't sync a part of one.
    ends_with_sync: bool
    path: str

    def __init__(self) -> None:
        self._unsynced: list[bytes] = []
        self.size = 0

    def write(self, record: bytes) -> int:
        """Keep a record until the next sync; returns the size that the file will have."""
        self._unsynced.append(record)
        self.size += len(record)
        return self.size

    @abstractmethod
    def sync(self) -> None:
        """Make all that was written safe; may be called again after an error."""

    @abstractmethod
    def finish(self) -> str | None:
        """End the file with what is synced; returns its path, None where there is nothing in it."""


class LocalFile(OutputFile):
    """A file of this host, or of a file system that is mounted here; ``owner`` None: under its own name, without a lock.

    Raises FileExistsError for a name that is in use.
    """

    ends_with_sync = False

    def __init__(self, path: Path, owner: str | None) -> None:
        super().__init__()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(*error.args) from error  # it is not the file whose name is in use
        if path.exists():
            raise FileExistsError(str(path))
        self.path = str(path)
        self._written_as = path if owner is None else path.with_name(f"_{owner}.{path.name}.inprogress")
        self._descriptor = _create(self._written_as, locked=owner is not None)
        self._synced = 0
        _sync_folder(path.parent)

    def sync(self) -> None:
        """Write, and wait for the disk."""
        if not self._unsynced:
            return
        data = memoryview(b"".join(self._unsynced))
        at = self._synced
        try:
            while data:
                written = os.pwrite(self._descriptor, data, at)
                data, at = data[written:], at + written
            os.fsync(self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._synced)
            raise
        self._synced = at
        self._unsynced.clear()

    def finish(self) -> str | None:
        """Give it its own name."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return None
        try:
            os.ftruncate(descriptor, self._synced)
            return _finish(self._written_as, Path(self.path), self._synced)
        finally:
            os.close(descriptor)


class RemoteFile(OutputFile):
    """A file of any file system that pyarrow knows, such as S3: it is written as a whole by its only sync."""

    ends_with_sync = True
    #: Those that show a file when it is whole, and can't rename.
    _STORES = ("s3", "gcs", "abfs")

    def __init__(self, filesystem: Any, path: str) -> None:
        super().__init__()
        self._filesystem, self.path = filesystem, path
        self._done = False

    def sync(self) -> None:
        """Write all of it."""
        if not self._unsynced:
            return
        folder, _, name = self.path.rpartition("/")
        hidden = self.path if self._filesystem.type_name in self._STORES else f"{folder}/_{name}.inprogress"
        self._filesystem.create_dir(folder, recursive=True)
        with self._filesystem.open_output_stream(hidden) as stream:
            for record in self._unsynced:
                stream.write(record)
        if hidden != self.path:
            self._filesystem.move(hidden, self.path)
        self._unsynced.clear()
        self._done = True

    def finish(self) -> str | None:
        """It is, if it was synced."""
        return self.path if self._done else None


def finish_abandoned(folder: Path, owner: str, record_end: bytes | None) -> Iterator[str]:
    """End the files below ``folder`` whose writer of that name is gone; their paths.

    ``record_end`` ends each record; what follows the last one is half a record.
    """
    for below, _, names in os.walk(folder):
        for name in names:
            if name.startswith(f"_{owner}.") and name.endswith(".inprogress"):
                path = Path(below, name)
                final = path.with_name(name.removeprefix(f"_{owner}.").removesuffix(".inprogress"))
                with contextlib.suppress(FileNotFoundError):  # another task was faster
                    if (finished := _finish_one(path, final, record_end)) is not None:
                        yield finished


def _finish_one(path: Path, final: Path, record_end: bytes | None) -> str | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        if not _lock(descriptor, path, wait=False):
            return None
        size = os.fstat(descriptor).st_size
        if record_end:
            size = _end_of_last_record(descriptor, size, record_end)
            os.ftruncate(descriptor, size)
        os.fsync(descriptor)
        return _finish(path, final, size)
    finally:
        os.close(descriptor)


def _end_of_last_record(descriptor: int, size: int, record_end: bytes) -> int:
    end = size
    while end > 0:
        begin = max(0, end - _BLOCK)
        # A block reaches as far into the next one as a delimiter may.
        block = os.pread(descriptor, end - begin + len(record_end) - 1, begin)
        found = block.rfind(record_end)
        if found >= 0:
            return begin + found + len(record_end)
        end = begin
    return 0


def _create(path: Path, *, locked: bool) -> int:
    """A new file. One that somebody took for abandoned before it was locked is made anew."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        if not locked or _lock(descriptor, path, wait=True):
            return descriptor
        os.close(descriptor)


def _lock(descriptor: int, path: Path, *, wait: bool) -> bool:
    """Lock a file against others; false if somebody else has it, or it is no longer at ``path``."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _finish(written_as: Path, final: Path, size: int) -> str | None:
    if not size:
        written_as.unlink()
    elif written_as != final:
        written_as.rename(final)
    _sync_folder(final.parent)
    return str(final) if size else None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
