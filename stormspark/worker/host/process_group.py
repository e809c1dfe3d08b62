"""The session and the process group of a worker process. The processes that user code starts belong to them, too, and end with
the worker.
"""

from __future__ import annotations

import contextlib
import os
import signal

__all__ = ["detach", "end_children"]


def detach() -> None:
    """Fork, and enter a new session without a terminal, so that this process does not depend on the process that started it."""
    if os.fork():
        os._exit(0)
    os.setsid()


def end_children() -> None:
    """Kill processes that user code has started and not ended. They are in the process group that `detach` made."""
    group, me = os.getpgid(0), os.getpid()
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):  # the process has ended meanwhile, or belongs to another user
            if pid != me and os.getpgid(pid) == group:
                os.kill(pid, signal.SIGKILL)
