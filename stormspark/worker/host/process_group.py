"""The session and the process group of a worker process. The processes that user code starts belong to them, too, and end with
the worker.
"""

from __future__ import annotations

import contextlib
import os
import signal

__all__ = ["end_children"]


def end_children() -> None:
    """Kill processes that user code has started and not ended. They are in the process group that `become_watched` made."""
    group, me = os.getpgid(0), os.getpid()
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):  # the process has ended meanwhile, or belongs to another user
            if pid != me and os.getpgid(pid) == group:
                os.kill(pid, signal.SIGKILL)
