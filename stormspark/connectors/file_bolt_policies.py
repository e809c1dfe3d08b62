"""When a `FileBolt` syncs, when it begins another file, and what it does with the one that is done (K10)."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from stormspark.api import Tuple
from stormspark.errors import InvalidTopologyError

__all__ = [
    "CountSyncPolicy",
    "FileRotationPolicy",
    "FileSizeRotationPolicy",
    "MoveFileAction",
    "NoRotationPolicy",
    "SyncPolicy",
    "TimedRotationPolicy",
]

_UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


class SyncPolicy(ABC):
    """Says when what was written has to be made safe, so that its tuples can be acked."""

    @abstractmethod
    def mark(self, tup: Tuple, offset: int) -> bool:
        """A tuple was written, its file's size is ``offset`` now; whether to sync."""

    @abstractmethod
    def reset(self) -> None:
        """All is synced."""


class CountSyncPolicy(SyncPolicy):
    """Sync after so many tuples.

    >>> from stormspark.testing import make_tuple
    >>> policy, tup = CountSyncPolicy(2), make_tuple((1,))
    >>> policy.mark(tup, 10), policy.mark(tup, 20)
    (False, True)
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            msg = f"CountSyncPolicy syncs after at least one tuple, got {count!r} (K10)"
            raise InvalidTopologyError(msg)
        self.count = count
        self._marked = 0

    def mark(self, tup: Tuple, offset: int) -> bool:
        """Count one."""
        self._marked += 1
        return self._marked >= self.count

    def reset(self) -> None:
        """Begin to count anew."""
        self._marked = 0


class FileRotationPolicy(ABC):
    """Says when a file is done; every file has a copy of its own. ``interval_secs`` ends all files that often; None: never."""

    interval_secs: float | None = None

    @abstractmethod
    def mark(self, tup: Tuple, offset: int) -> bool:
        """A tuple was written, its file's size is ``offset`` now; whether the file is done."""


class NoRotationPolicy(FileRotationPolicy):
    """One file as long as the task lives. Others see it at its end only, unless `FileBolt` writes under final names."""

    def mark(self, tup: Tuple, offset: int) -> bool:
        """Never."""
        return False


class FileSizeRotationPolicy(FileRotationPolicy):
    """A file is done at a size; the unit is KB, MB, GB or TB, of 1024 each.

    >>> FileSizeRotationPolicy(5, "MB").max_bytes
    5242880
    """

    def __init__(self, count: float, unit: str = "MB") -> None:
        if unit not in _UNITS or not count > 0:
            msg = f"FileSizeRotationPolicy takes a size and one of {', '.join(_UNITS)}, got {count!r} {unit!r} (K10)"
            raise InvalidTopologyError(msg)
        self.max_bytes = int(count * _UNITS[unit])

    def mark(self, tup: Tuple, offset: int) -> bool:
        """Whether it is large enough."""
        return offset >= self.max_bytes


class TimedRotationPolicy(FileRotationPolicy):
    """All files are done every so many seconds."""

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            msg = f"TimedRotationPolicy takes a number of seconds, got {seconds!r} (K10)"
            raise InvalidTopologyError(msg)
        self.interval_secs = seconds

    def mark(self, tup: Tuple, offset: int) -> bool:
        """Tuples do not matter."""
        return False


@dataclass(frozen=True)
class MoveFileAction:
    """A rotation action: move the file to another folder, under the same name."""

    destination: str

    def __call__(self, path: str) -> None:
        """Move it; raises FileExistsError where there is one of that name."""
        target = Path(self.destination) / Path(path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            raise FileExistsError(str(target))
        shutil.move(path, target)
