"""A file that takes what processes write to their standard output, bounded in size.

Programs of any language write to it directly, so nothing is lost that a process says while it dies. That rules out a pipe,
whose reader may die with it, and a rename, which would take the open file along. So the file is copied and cut: all who write to
it append, and go on at its new end. What is written between the copy and the cut, some microseconds, is lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

from stormspark.private_files import open_private

__all__ = ["RotatedOutput"]

_LOOK_SECS = 1.0
_BLOCK = 1 << 20


class RotatedOutput:
    """``path`` in a private folder. At ``max_bytes`` its end becomes ``path.1``, and what was that ``path.2``, up to
    ``backup_count``. Several processes may do this to one file.
    """

    def __init__(self, path: Path, max_bytes: int, backup_count: int) -> None:
        self.path, self._max, self._count = path, max_bytes, backup_count

    def open(self) -> int:
        """A descriptor for processes to write to; the caller closes it."""
        return open_private(self.path)

    def watch(self, alive: Callable[[], bool] = lambda: True) -> threading.Thread:
        """Look at the size once a second, in a thread of its own, as long as somebody is ``alive`` who writes."""
        ended = threading.Event()

        def look() -> None:
            while alive():
                with contextlib.suppress(OSError):  # a full disk, or a folder that is gone: next time
                    self.rotate()
                ended.wait(_LOOK_SECS)

        thread = threading.Thread(target=look, name=f"rotates-{self.path.name}", daemon=True)
        thread.start()
        return thread

    def rotate(self) -> bool:
        """Copy and cut the file if it is too large; true if it was."""
        if os.stat(self.path, follow_symlinks=False).st_size <= self._max:
            return False
        descriptor = open_private(self.path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_size <= self._max:
                return False  # another process was faster
            for number in range(self._count, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    if number == self._count:
                        os.unlink(self._backup(number))
                    else:
                        os.rename(self._backup(number), self._backup(number + 1))
            if self._count:
                self._copy(descriptor)
            os.ftruncate(descriptor, 0)
            return True
        finally:
            os.close(descriptor)  # and with it the lock

    def _copy(self, descriptor: int) -> None:
        """The end of the file, so much as a file may have, up to the last byte there is."""
        copy = open_private(self._backup(1), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            position = os.fstat(descriptor).st_size - self._max
            while block := os.pread(descriptor, _BLOCK, position):
                position += len(block)
                while block:
                    block = block[os.write(copy, block) :]
        finally:
            os.close(copy)

    def _backup(self, number: int) -> str:
        return f"{self.path}.{number}"
