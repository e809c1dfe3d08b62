"""The files that a `FileBolt` writes, on this host's file systems or on remote ones.

A local file with an *owner*, the bolt's component, is written under a name that readers skip, ``_{owner}.{name}.inprogress``. It
is renamed when it is done. The process that writes such a file holds a lock on it until the file is done or the process ends. So
after a kill, any task can tell which files have no writer. `finish_abandoned` finishes these files, because their tuples may have
been acked. If it knows how records end, it cuts off everything after a file's last complete record.

Each sync of a local file begins where the last successful one ended. If a sync fails, its bytes are removed, or the next sync
overwrites them. A remote file has only one sync.
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
    """A file of records. A method raises OSError if the file system fails."""

    #: Whether a sync finishes the file. That is so if the file system can't sync part of a file.
    ends_with_sync: bool
    path: str

    def __init__(self) -> None:
        self._unsynced: list[bytes] = []
        self.size = 0

    def write(self, record: bytes) -> int:
        """Keep a record until the next sync. Returns the size that the file will have after that sync."""
        self._unsynced.append(record)
        self.size += len(record)
        return self.size

    @abstractmethod
    def sync(self) -> None:
        """Make all records durable. May be called again after an error."""

    @abstractmethod
    def finish(self) -> str | None:
        """Finish the file with the records that are synced. Returns the file's path, or None if it has no records."""


class LocalFile(OutputFile):
    """A file on a disk of this host, or on a file system that this host has mounted.

    If ``owner`` is None, the file has its final name from the beginning, and no lock. Raises FileExistsError if the name is in
    use, and NotADirectoryError if a file has the name of the folder.
    """

    ends_with_sync = False

    def __init__(self, path: Path, owner: str | None) -> None:
        super().__init__()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(*error.args) from error  # a file has the name that a folder should have
        if path.exists():
            raise FileExistsError(str(path))
        self.path = str(path)
        self._written_as = path if owner is None else path.with_name(f"_{owner}.{path.name}.inprogress")
        self._descriptor = _create(self._written_as, locked=owner is not None)
        self._synced = 0
        _sync_folder(path.parent)

    def sync(self) -> None:
        """Write the records, and wait until they are on disk."""
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
        """Rename the file to its final name, or delete it if it has no synced records."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return None
        try:
            os.ftruncate(descriptor, self._synced)
            return _finish(self._written_as, Path(self.path), self._synced)
        finally:
            os.close(descriptor)


class RemoteFile(OutputFile):
    """A file on any file system that pyarrow supports, such as S3. Its only sync writes the whole file."""

    ends_with_sync = True
    #: pyarrow's names of object stores. Such a store shows a file only once the file is complete, and it can't rename files.
    _STORES = ("s3", "gcs", "abfs")

    def __init__(self, filesystem: Any, path: str) -> None:
        super().__init__()
        self._filesystem, self.path = filesystem, path
        self._done = False

    def sync(self) -> None:
        """Write the whole file."""
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
        """Return the path, if the file was synced."""
        return self.path if self._done else None


def finish_abandoned(folder: Path, owner: str, record_end: bytes | None) -> Iterator[str]:
    """Finish the files of ``owner`` below ``folder`` whose writers are gone, and yield their paths.

    ``record_end`` is the delimiter that ends each record. Everything after the last delimiter is an incomplete record, and is cut
    off. If ``record_end`` is None, nothing is cut off.
    """
    for below, _, names in os.walk(folder):
        for name in names:
            if name.startswith(f"_{owner}.") and name.endswith(".inprogress"):
                path = Path(below, name)
                final = path.with_name(name.removeprefix(f"_{owner}.").removesuffix(".inprogress"))
                with contextlib.suppress(FileNotFoundError):  # another task has already finished the file
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
        # A delimiter may begin in this block and end in the next block. So read some bytes of the next block, too.
        block = os.pread(descriptor, end - begin + len(record_end) - 1, begin)
        found = block.rfind(record_end)
        if found >= 0:
            return begin + found + len(record_end)
        end = begin
    return 0


def _create(path: Path, *, locked: bool) -> int:
    """Create a file and lock it. If another task takes the file for abandoned before it is locked, create the file again."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        if not locked or _lock(descriptor, path, wait=True):
            return descriptor
        os.close(descriptor)


def _lock(descriptor: int, path: Path, *, wait: bool) -> bool:
    """Lock a file. Returns false if the file is no longer at ``path``.

    Without ``wait``, returns false also if another process has the lock.
    """
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
