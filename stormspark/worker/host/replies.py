"""Replies that Spark may ask for again, in memory up to a limit and on disk above it.

A reply is a list of Arrow IPC messages. It is kept until its batch is known to be committed, because Spark
repeats tasks: a retry after a lost connection, a speculative twin, a stage computed anew because its shuffle
files went with an executor.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

__all__ = ["Replies", "RepliesStatistics"]

Key = tuple[int, int, int]

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class RepliesStatistics:
    """How many replies are kept where; sizes in bytes."""

    in_memory: int
    memory_bytes: int
    on_disk: int
    disk_bytes: int


@dataclass(frozen=True)
class _File:
    path: Path
    size: int
    messages: int


class Replies:
    """Keeps replies by request key. Not thread-safe by itself: `Desk` calls it under its lock, but for
    reading `messages`.

    ``folder`` must exist; files in it are named by number and removed by `clear`. A reply that is being read
    from its file while that is cleared is read to its end (the file has lost its name, not its bytes).

    >>> replies = Replies(Path("unused"), memory_bytes=100)
    >>> replies.put((0, 0, 0), [b"one", b"two"])
    >>> [bytes(message) for message in replies.messages((0, 0, 0))]
    [b'one', b'two']
    """

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        self._folder, self._limit = folder, memory_bytes
        self._memory: dict[Key, tuple[pa.Buffer | bytes, ...]] = {}
        self._memory_bytes = 0
        self._files: dict[Key, _File] = {}
        self._written = 0

    def put(self, key: Key, messages: Sequence[pa.Buffer | bytes]) -> None:
        """Keep a reply. One that does not fit under the limit goes to disk: the oldest are asked for no less
        often.
        """
        size = sum(len(message) for message in messages)
        if self._memory_bytes + size <= self._limit:
            self._memory[key] = tuple(messages)
            self._memory_bytes += size
            return
        path = self._folder / f"reply-{self._written}"
        self._written += 1
        with path.open("wb") as file:
            for message in messages:
                file.write(_LENGTH.pack(len(message)))
                file.write(message)
        self._files[key] = _File(path, size, len(messages))

    def __contains__(self, key: Key) -> bool:
        return key in self._memory or key in self._files

    def count(self, key: Key) -> int:
        """The number of messages of a reply."""
        return len(self._memory[key]) if key in self._memory else self._files[key].messages

    def messages(self, key: Key) -> Iterator[pa.Buffer | bytes]:
        """The messages of a reply, in order; raises `KeyError` where none is kept. The file is open once this
        returns.
        """
        if key in self._memory:
            return iter(self._memory[key])
        return _read(self._files[key].path)

    def clear(self) -> None:
        """Forget all replies and remove their files."""
        for file in self._files.values():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.path)
        self._files.clear()
        self._memory.clear()
        self._memory_bytes = 0

    def statistics(self) -> RepliesStatistics:
        """A snapshot of what is kept."""
        return RepliesStatistics(
            in_memory=len(self._memory),
            memory_bytes=self._memory_bytes,
            on_disk=len(self._files),
            disk_bytes=sum(file.size for file in self._files.values()),
        )

    def validate(self) -> None:
        """Check every invariant; raises `AssertionError`."""
        assert not self._memory.keys() & self._files.keys(), "a reply is kept twice"
        assert self._memory_bytes == sum(len(m) for messages in self._memory.values() for m in messages)
        assert self._memory_bytes <= self._limit, "more in memory than allowed"
        assert all(file.path.exists() for file in self._files.values()), "a reply's file is gone"


def _read(path: Path) -> Iterator[bytes]:
    file = path.open("rb")  # now, not at the first message: by then the file may have lost its name

    def messages() -> Iterator[bytes]:
        with file:
            while header := file.read(_LENGTH.size):
                yield file.read(*_LENGTH.unpack(header))

    return messages()
