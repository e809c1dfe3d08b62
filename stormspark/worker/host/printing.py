"""Stand-ins for stdout and stderr, which take what tasks print."""

from __future__ import annotations

import io
from collections.abc import Callable
from threading import get_ident
from typing import Any, TextIO

from stormspark.worker.host.task_threads import RunningCode, as_code, running_code

__all__ = ["CopiedStream", "Lines", "LogStream", "end_of_output"]

#: A printed line that is longer than this is taken in pieces.
_LONGEST_LINE = 64 * 1024


class _Line:
    """A line that has not ended.

    As on a terminal, text after a carriage return replaces the text before it. So only the end of a progress bar stays.
    """

    __slots__ = ("_parts", "_returned", "size")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.size = 0
        self._returned = False  # whether a carriage return came, after which the next text replaces the line

    def add(self, text: str) -> None:
        for number, part in enumerate(text.split("\r")):
            self._returned |= number > 0
            if part:
                if self._returned:
                    self.take()
                self._parts.append(part)
                self.size += len(part)

    def cut(self) -> list[str]:
        """Cut pieces of a fixed length off a line that is too long to be kept, and return them."""
        if self.size <= _LONGEST_LINE:
            return []
        line = self.take()
        whole = len(line) // _LONGEST_LINE * _LONGEST_LINE
        self.add(line[whole:])
        return [line[at : at + _LONGEST_LINE] for at in range(0, whole, _LONGEST_LINE)]

    def take(self) -> str:
        line = "".join(self._parts)
        self._parts, self.size, self._returned = [], 0, False
        return line


class Lines:
    """Makes lines of printed text, and passes each whole line that is not empty to ``take``.

    The code of each task has a line of its own on each thread, because a `print` may take several writes. A thread may work for
    another task next, and the name of a thread that has ended goes to a new one. A line that is too long comes in pieces.
    """

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._unfinished: dict[tuple[int, RunningCode | None], _Line] = {}

    def write(self, text: str) -> None:
        """Take the lines that ``text`` completes."""
        writer = get_ident(), running_code()
        line = self._unfinished.pop(writer, None) or _Line()
        *ended, rest = text.split("\n")
        whole = []
        for part in ended:
            line.add(part)
            whole += line.cut()
            whole.append(line.take())
        line.add(rest)
        whole += line.cut()
        if line.size:
            self._unfinished[writer] = line
        for one in whole:
            if one:
                self._take(one)

    def finish(self) -> None:
        """Take the lines that have not ended, because no more text will come. Each belongs to the task that has printed it."""
        while self._unfinished:
            (_, code), line = self._unfinished.popitem()
            if text := line.take():
                with as_code(code):
                    self._take(text)

    @property
    def size(self) -> int:
        """How many characters are kept."""
        return sum(line.size for line in list(self._unfinished.values()))


class LogStream(io.TextIOBase):
    """A stand-in for stdout or stderr whose lines all go to ``take``. ``stream`` is the real stream."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, take: Callable[[str], None], stream: TextIO) -> None:
        self.lines = Lines(take)
        self.stream = stream
        #: Whether nobody needs the stand-in any longer.
        self.is_over = False

    @property
    def buffer(self) -> _Bytes:
        """The stream for code that writes bytes."""
        return _Bytes(self)

    def write(self, text: str) -> int:
        """Take the lines that ``text`` completes."""
        if self.is_over:
            return self.stream.write(text)
        self.lines.write(text)
        return len(text)

    def writable(self) -> bool:
        """Return true."""
        return True

    def close(self) -> None:
        """Do nothing, because other tasks go on printing."""

    def reconfigure(self, **options: object) -> None:
        """Do nothing: lines are taken when they are complete, and the encoding plays no role."""

    def fileno(self) -> int:
        """Return the descriptor of the real stream, for child processes."""
        return self.stream.fileno()


class _Bytes(io.BufferedIOBase):
    """The ``buffer`` of a `LogStream`."""

    def __init__(self, stream: LogStream) -> None:
        self._stream = stream

    def write(self, data: Any, /) -> int:
        whole = bytes(data)
        self._stream.write(whole.decode(errors="replace"))
        return len(whole)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def fileno(self) -> int:
        return self._stream.fileno()


class CopiedStream:
    """A stand-in for the stdout or stderr of a program that embeds topologies. All text goes to the real ``stream`` at once. In
    addition, ``take`` gets each whole line for which ``wanted`` returns true when it is printed.
    """

    def __init__(self, take: Callable[[str], None], wanted: Callable[[], bool], stream: TextIO) -> None:
        self.lines = Lines(take)
        self.stream = stream
        self._wanted = wanted
        #: Whether nobody needs a copy any longer.
        self.is_over = False

    def write(self, text: str) -> int:
        """Write to the real stream, and keep a copy of what a task prints."""
        written = self.stream.write(text)
        if not self.is_over and self._wanted():
            self.lines.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __iter__(self) -> Any:
        return iter(self.stream)


def end_of_output(*streams: object) -> None:
    """Take printed text that is not a whole line yet. Call this before the process, or the topology, ends."""
    for stream in streams:
        if isinstance(stream, LogStream | CopiedStream):
            stream.lines.finish()
