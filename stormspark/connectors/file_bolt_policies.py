"""Policies that say when a `FileBolt` syncs and when it begins a new file, and an action for finished files (K10)."""

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
    """A policy that decides when a `FileBolt` or a `DeltaBolt` makes its tuples durable, so that they can be acked.

    For a `FileBolt`, ``offset`` is the size of the tuple's file. For a `DeltaBolt`, it is the number of tuples that wait. If
    batches are transactions, tuples are acked earlier, and a `DeltaBolt` does not use the policy.
    """

    @abstractmethod
    def mark(self, tup: Tuple, offset: int) -> bool:
        """Count one more tuple that waits for a sync. Return whether to sync now."""

    @abstractmethod
    def reset(self) -> None:
        """Start anew, because no tuple waits for a sync any more."""


class CountSyncPolicy(SyncPolicy):
    """A sync policy that syncs after ``count`` tuples.

    >>> from stormspark.testing import make_tuple
    >>> policy, tup = CountSyncPolicy(2), make_tuple((1,))
    >>> policy.mark(tup, 10), policy.mark(tup, 20)
    (False, True)
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            msg = f"CountSyncPolicy syncs after at least one tuple, got {count!r}"
            raise InvalidTopologyError(msg)
        self.count = count
        self._marked = 0

    def mark(self, tup: Tuple, offset: int) -> bool:
        """Count the tuple. Return whether the count is reached."""
        self._marked += 1
        return self._marked >= self.count

    def reset(self) -> None:
        """Start counting from 0 again."""
        self._marked = 0


class FileRotationPolicy(ABC):
    """A policy that decides when a file is done, so that a new one begins. Every file has its own copy of the policy.

    If ``interval_secs`` is set, each task ends all its files at that interval.
    """

    interval_secs: float | None = None

    @abstractmethod
    def mark(self, tup: Tuple, offset: int) -> bool:
        """Count a tuple that was written. The size of its file is now ``offset``. Return whether the file is done."""


class NoRotationPolicy(FileRotationPolicy):
    """A rotation policy that never ends a file.

    Readers skip a file until it has its final name. With this policy a local file gets its final name only when the task ends,
    unless the bolt was made with ``in_progress=False``.
    """

    def mark(self, tup: Tuple, offset: int) -> bool:
        """Return false, because the file is never done."""
        return False


class FileSizeRotationPolicy(FileRotationPolicy):
    """A rotation policy that ends a file at a certain size. The unit is KB, MB, GB or TB; 1 KB is 1024 bytes.

    >>> FileSizeRotationPolicy(5, "MB").max_bytes
    5242880
    """

    def __init__(self, count: float, unit: str = "MB") -> None:
        if unit not in _UNITS or not count > 0:
            msg = (
                f"FileSizeRotationPolicy takes a size and one of {', '.join(_UNITS)}, got {count!r} {unit!r}"
            )
            raise InvalidTopologyError(msg)
        self.max_bytes = int(count * _UNITS[unit])

    def mark(self, tup: Tuple, offset: int) -> bool:
        """Return whether the file is large enough."""
        return offset >= self.max_bytes


class TimedRotationPolicy(FileRotationPolicy):
    """A rotation policy that ends all files of a task every ``seconds``."""

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            msg = f"TimedRotationPolicy takes a number of seconds, got {seconds!r}"
            raise InvalidTopologyError(msg)
        self.interval_secs = seconds

    def mark(self, tup: Tuple, offset: int) -> bool:
        """Return false, because only time ends a file."""
        return False


@dataclass(frozen=True)
class MoveFileAction:
    """A rotation action that moves the file to another folder, under the same name."""

    destination: str

    def __call__(self, path: str) -> None:
        """Move the file. Raises FileExistsError if the folder already has a file of that name."""
        target = Path(self.destination) / Path(path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            raise FileExistsError(str(target))
        shutil.move(path, target)
