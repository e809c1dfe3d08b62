"""A stream that may lose its reader, or has none: a terminal that closes, a pipe to ``head`` or ``tee``, or ``>&-``.

That is no reason to end a topology, whose components would not be closed. What is written then is lost.
"""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import Any, TextIO, cast

__all__ = ["if_read"]


def if_read(stream: TextIO | None) -> TextIO:
    """Return a stream for the same descriptor. Once a write fails, all that this process writes to the descriptor is lost.

    Python has None for a standard stream that was closed when it started. All that is written to that one is lost.

    >>> end_read, end_written = os.pipe()
    >>> stream = if_read(open(end_written, "w"))
    >>> os.close(end_read)
    >>> print("nobody reads this", file=stream, flush=True)
    >>> print("nor that", file=stream, flush=True)
    >>> stream.close()
    >>> print("without a stream", file=if_read(None), flush=True)
    """
    return cast("TextIO", _Nowhere() if stream is None else _IfRead(stream))


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        """Lose the text."""
        return len(text)


class _IfRead:
    """Has all that the stream has, but its own ``write`` and ``flush``."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, or lose it."""
        try:
            return self._stream.write(text)
        except OSError:
            self._give_up()
        return len(text)

    def flush(self) -> None:
        """Flush the stream, or lose what it holds."""
        try:
            self._stream.flush()
        except OSError:
            self._give_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self) -> None:
        """Let the descriptor lead nowhere. Otherwise Python's own flush at the end would fail, and change the exit code."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            try:
                os.dup2(nowhere, self._stream.fileno())
            finally:
                os.close(nowhere)
