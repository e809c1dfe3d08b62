"""A file for the standard output of processes, bounded in size.

Programs of any language write to the file directly, so the last output of a dying process is not lost. A pipe could lose that
output, because the pipe's reader may die with the process. Renaming a full file would not help, because the processes would go on
writing to the renamed file. So a full file is copied and truncated. All writers append, so they continue at the new end of the
file. Output in the microseconds between the copy and the truncation is lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

from stormspark.private_files import HeldFolder, open_private

__all__ = ["RotatedOutput"]

_LOOK_SECS = 1.0
_BLOCK = 1 << 20


class RotatedOutput:
    """The output file ``path``, in a private folder.

    When the file exceeds ``max_bytes``, its last ``max_bytes`` go to ``path.1``. The former ``path.1`` becomes ``path.2``, and so
    on, up to ``backup_count``. If ``backup_count`` is 0, there is no copy. Several processes may rotate the same file.
    """

    def __init__(self, path: Path, max_bytes: int, backup_count: int) -> None:
        self.path, self._max, self._count = path, max_bytes, backup_count

    def open(self) -> int:
        """Open a descriptor for processes to write to. The caller closes it."""
        return open_private(self.path)

    def watch(self, alive: Callable[[], bool] = lambda: True) -> threading.Thread:
        """Start a thread that rotates a file that is too large, once per second, and holds its folder meanwhile. It ends when
        ``alive`` returns false.
        """
        ended, held = threading.Event(), HeldFolder(self.path.parent)

        def look() -> None:
            while alive():
                with contextlib.suppress(OSError):  # a full disk or a missing folder: try again
                    self.rotate()
                ended.wait(_LOOK_SECS)
            held.close()

        thread = threading.Thread(target=look, name=f"rotates-{self.path.name}", daemon=True)
        thread.start()
        return thread

    def rotate(self) -> bool:
        """Copy and truncate the file if it is too large. Return whether it was too large."""
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
            os.close(descriptor)  # this releases the lock, too

    def _copy(self, descriptor: int) -> None:
        """Copy the last ``max_bytes`` of the file, including bytes that are written meanwhile."""
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
