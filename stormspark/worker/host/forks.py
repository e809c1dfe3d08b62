"""The clean-up in processes that user code forks. Such a process must not keep its worker's connections and executors' threads.

User code may fork, for example with the ``fork`` method of `multiprocessing`. The new process gets a copy of each descriptor.
If the worker is killed, its connections would stay open as long as the new process lives, and nobody would notice that the
worker is gone. The new process also gets a copy of the thread that has forked. If user code forgets to end the new process,
this copy would go on with the worker's tuples.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Protocol
from weakref import WeakSet

__all__ = ["end_in_children", "keep_from_children"]


class _Thread(Protocol):
    """The interface of an executor's thread that this module uses."""

    def end_copy(self) -> None:
        """Let the thread end when its call of user code has returned. This is called in the forked process."""


_sockets: WeakSet[socket.socket] = WeakSet()
_threads: WeakSet[_Thread] = WeakSet()


def keep_from_children(sock: socket.socket) -> None:
    """Close a socket in each process that this process forks from now on. In this process the socket stays open."""
    _sockets.add(sock)


def end_in_children(thread: _Thread) -> None:
    """Let the copy of a thread end in each process that the thread forks. The forked process then ends, because it has no other
    thread.
    """
    _threads.add(thread)


def _after_fork() -> None:
    for sock in list(_sockets):
        # Don't call `close` of the socket or of its owner, because a thread that was not copied may hold a lock.
        with contextlib.suppress(OSError):
            os.close(sock.detach())
    for thread in list(_threads):
        thread.end_copy()


os.register_at_fork(after_in_child=_after_fork)
