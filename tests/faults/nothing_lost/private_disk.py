"""A small disk that can be filled: a folder of a mount namespace of its own, so that nothing of it can be left behind.

with PrivateDisk(folder, 64) as disk:
    subprocess.run([*disk.enter, "df", str(folder)])   # a process that sees it
    disk.fill()                                        # and has no space there any more
"""

from __future__ import annotations

import contextlib
import errno
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["PrivateDisk", "PrivateDiskError"]


class PrivateDiskError(Exception):
    """This machine lets nobody mount; the text is what it said."""


class PrivateDisk:
    """``megabytes`` of memory as a file system at ``folder``; what is outside of the namespace sees an empty folder there."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self._folder, self._megabytes = folder, megabytes
        self._holder: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        script = 'mount -t tmpfs -o "size=$2m,mode=0700" none "$1" && echo mounted && exec cat'  # ends with our end of the pipe
        self._holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(self._folder),
             str(self._megabytes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._holder.stdout is not None and self._holder.stderr is not None
        if self._holder.stdout.readline() != "mounted\n":
            msg = f"a private mount is not allowed here: {self._holder.stderr.read().strip()}"
            self._close()
            raise PrivateDiskError(msg)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        assert self._holder is not None
        self._holder.communicate()

    @property
    def enter(self) -> tuple[str, ...]:
        """What to put before a command, so that it sees the disk; it stays the same process."""
        assert self._holder is not None
        return (
            "nsenter",
            "--target",
            str(self._holder.pid),
            "--user",
            "--mount",
            "--preserve-credentials",
            "--wd=.",
        )

    @property
    def seen_from_outside(self) -> Path:
        """The folder, for processes that are not in the namespace."""
        assert self._holder is not None
        return Path(f"/proc/{self._holder.pid}/root{self._folder}")

    def fill(self) -> None:
        """Leave not a byte."""
        with (self.seen_from_outside / "filler").open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        """Take away what `fill` has put there."""
        with contextlib.suppress(FileNotFoundError):
            (self.seen_from_outside / "filler").unlink()
