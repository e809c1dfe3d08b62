"""Lets processes of one host exchange records through append-only files in a private folder.

Components are pickled, and their tasks may live in other processes. So a test and its tasks can't exchange objects in memory.
Every writer has its own file, and appends only whole records. A reader remembers how far it has read, and first checks whether a
file has grown. So polling costs next to nothing, and the processes need no lock between them.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pickle
import shutil
import socket
import struct
import tempfile
import threading
import uuid
import weakref
from typing import Any

import cloudpickle

from stormspark.errors import UnsupportedEnvironmentError

__all__ = ["Spool"]

_LENGTH = struct.Struct("<Q")


class Spool:
    """A folder of records. The pickled object has only the folder's path, so a copy in another process uses the same folder.

    The folder is created when it is first needed. Only this user can enter the folder. The folder is removed when the process
    that created it ends.

    >>> spool = Spool()
    >>> copy = pickle.loads(pickle.dumps(spool))
    >>> copy.append(("acked", 7))
    >>> spool.read(), spool.read()  # each object reads a record once
    ([('acked', 7)], [])
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._file: int | None = None
        self._read_up_to: dict[str, int] = {}

    def __reduce__(self) -> tuple[type[Spool], tuple[str]]:
        return Spool, (self.folder,)

    @property
    def folder(self) -> str:
        """The path of the folder, on this host."""
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.mkdtemp(dir=_folder_of_process())
            return self._folder

    @property
    def is_reachable(self) -> bool:
        """Whether this process can read and write the folder."""
        return os.access(self.folder, os.R_OK | os.W_OK | os.X_OK)

    def check(self, user: str) -> None:
        """Raise `UnsupportedEnvironmentError` if the folder can't be reached. ``user`` names the object that needs the folder."""
        if not self.is_reachable:
            msg = (
                f"{user}: the folder {self.folder} can't be reached on host {socket.gethostname()!r}. The test and all workers "
                f"must run on one host, as one user, and the process that runs the test must still live"
            )
            raise UnsupportedEnvironmentError(msg)

    def append(self, record: Any) -> None:
        """Add a record. Any thread may call this. Raises the errors of pickle, and `UnsupportedEnvironmentError`."""
        payload = cloudpickle.dumps(record)
        folder = self.folder
        with self._lock:
            if self._file is None:
                self._file = self._new_file(folder)
            rest = memoryview(_LENGTH.pack(len(payload)) + payload)
            while rest:
                rest = rest[os.write(self._file, rest) :]

    def _new_file(self, folder: str) -> int:
        path = os.path.join(folder, f"{os.getpid()}-{uuid.uuid4().hex}")
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            msg = f"can't write to the folder {folder} on host {socket.gethostname()!r}: {error}"
            raise UnsupportedEnvironmentError(msg) from error
        weakref.finalize(self, os.close, file)
        return file

    def read(self) -> list[Any]:
        """Return the records that this object has not read yet.

        First come all records of one writer, in order, then all records of the next writer, and so on.
        """
        records: list[Any] = []
        # If the test's process has ended, the folder is gone, and no more records will come.
        with contextlib.suppress(FileNotFoundError):
            for entry in sorted(os.scandir(self.folder), key=lambda entry: entry.name):
                begin = self._read_up_to.get(entry.name, 0)
                if os.stat(entry.path).st_size > begin:
                    with open(entry.path, "rb") as file:
                        file.seek(begin)
                        self._read_up_to[entry.name] = begin + _split(file.read(), records)
        return records


def _split(data: bytes, records: list[Any]) -> int:
    """Add the complete records at the beginning of ``data`` to ``records``. Return how many bytes of ``data`` they take."""
    position = 0
    while position + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        end = position + _LENGTH.size + length
        if end > len(data):  # the record is still being written
            break
        records.append(pickle.loads(memoryview(data)[position + _LENGTH.size : end]))
        position = end
    return position


@functools.cache
def _folder_of_process() -> str:
    folder = tempfile.mkdtemp(prefix="stormspark-testing-")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked child must not remove the folder
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
