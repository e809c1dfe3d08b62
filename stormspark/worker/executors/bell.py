"""A bell. Any thread rings it to wake up the worker's thread."""

from __future__ import annotations

import os
import select
import weakref
from collections.abc import Callable

__all__ = ["Bell"]


class Bell:
    """A bell. Its file descriptor, `fileno`, is readable once the bell has been rung.

    >>> bell = Bell()
    >>> bell.wait(0)
    False
    >>> bell.ring(); bell.ring(); bell.wait(1)
    True
    >>> bell.quiet(); bell.wait(0)
    False
    >>> bell.close()
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._rung = False
        self._close = weakref.finalize(self, _close_both, os.close, self._read, self._write)
        self._poll = select.poll()  # not select.select, which takes no descriptor above 1023
        self._poll.register(self._read, select.POLLIN)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._read

    def ring(self) -> None:
        """Ring the bell. Any thread may call this. Only the first call after `quiet` costs a system call."""
        if self._rung:
            return
        self._rung = True
        try:
            os.write(self._write, b"!")
        except OSError:
            pass  # the pipe is full of rings, or closed

    def quiet(self) -> None:
        """Forget all rings. Call this first, and then look for new work, because whoever adds work after this call rings
        again.
        """
        if self._rung:
            try:
                os.read(self._read, 64)
                self._rung = False
            except BlockingIOError:
                pass  # another thread is about to write into the pipe, and the next call of this method reads that

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for a ring. Return whether the bell rang."""
        rung = bool(self._poll.poll(seconds * 1000))
        if rung:
            # Two threads may have rung at once. Then `quiet` has read one ring only, and has to read the pipe again.
            self._rung = True
        return rung

    def close(self) -> None:
        """Close the descriptors, unless they are closed already. Later rings do nothing. Call this only when no other thread is
        inside `ring`.

        If this is never called, the descriptors are closed once nothing refers to the bell.
        """
        self._rung = True
        self._close()


def _close_both(close: Callable[[int], None], read: int, write: int) -> None:
    close(read)
    close(write)
