"""A store for replies that Spark may request again. Replies are in memory up to a limit, and on disk above the limit.

A reply is a list of Arrow IPC messages. It is kept until a request of a later round arrives, because Spark repeats tasks. Spark
retries a task after a lost connection, starts a speculative twin of a task, or computes a stage anew if the stage's shuffle
files were lost with a Spark executor.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stormspark.extras import pyarrow as pa

__all__ = ["Replies", "RepliesStatistics"]

Key = tuple[int, int, int]

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class RepliesStatistics:
    """How many replies are in memory and on disk, and their bytes."""

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
    """The kept replies, by the key of the request. The class is not thread-safe, so `Desk` holds a lock during every call. But
    the result of `messages` may be read without the lock.

    ``folder`` must exist. Its files are named by number, and `clear` removes them. If a reply is being read from its file while
    `clear` runs, the reader still gets the whole reply, because a removed file only loses its name.

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
        """Keep a reply, on disk if it does not fit into memory.

        Older replies stay in memory, because they are just as likely to be requested again.
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
        """Return the number of messages of a reply."""
        return len(self._memory[key]) if key in self._memory else self._files[key].messages

    def messages(self, key: Key) -> Iterator[pa.Buffer | bytes]:
        """Return the messages of a reply, in order. Raises `KeyError` if the reply is not kept.

        If the reply is in a file, this call opens the file.
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
        """Return how many replies are in memory and on disk now."""
        return RepliesStatistics(
            in_memory=len(self._memory),
            memory_bytes=self._memory_bytes,
            on_disk=len(self._files),
            disk_bytes=sum(file.size for file in self._files.values()),
        )

    def validate(self) -> None:
        """Check every invariant. Raises `AssertionError` if one is broken."""
        assert not self._memory.keys() & self._files.keys(), "a reply is kept twice"
        assert self._memory_bytes == sum(len(m) for messages in self._memory.values() for m in messages)
        assert self._memory_bytes <= self._limit, "more in memory than allowed"
        assert all(file.path.exists() for file in self._files.values()), "a reply's file is gone"


def _read(path: Path) -> Iterator[bytes]:
    file = path.open("rb")  # opened early, because `clear` may remove the file before it is read

    def messages() -> Iterator[bytes]:
        with file:
            while header := file.read(_LENGTH.size):
                yield file.read(*_LENGTH.unpack(header))

    return messages()
