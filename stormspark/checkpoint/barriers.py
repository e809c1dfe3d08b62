"""Barriers: named steps of the commit protocol at which a test can kill a process or make it wait.

A test sets ``STORMSPARK_BARRIERS`` to a folder and puts an empty file there, named after a barrier. The first process that
reaches the barrier renames the file to ``BARRIER.PID.here`` and kills itself with SIGKILL. If the file is not empty, the process
waits instead, until the renamed file is gone. Without the variable, a barrier costs one comparison.
"""

from __future__ import annotations

import os
import signal
import time

__all__ = ["BARRIERS", "BATCH_BARRIERS", "LETTERS_BARRIER", "reached"]

#: The barriers of every batch, in the order in which a batch reaches them. Workers reach the last two only if they roll back.
BARRIERS = (
    "driver.batch_begins",
    "worker.before_prepare",
    "worker.prepared",
    "worker.written",
    "driver.before_commit",
    "driver.committed",
    "driver.batch_ends",
    "worker.before_commit",
    "worker.committed",
    "worker.before_rollback",
    "worker.rolled_back",
)

#: More barriers, which a batch reaches only if bolts are told of its end.
BATCH_BARRIERS = ("worker.before_finish", "worker.finished", "driver.before_announcement", "driver.announced")

#: One more barrier, which a batch reaches only if it gives up rows of a source.
LETTERS_BARRIER = "driver.letters_written"

_FOLDER = os.environ.get("STORMSPARK_BARRIERS")


def reached(barrier: str) -> None:
    """Pass a barrier. If a test has put a file for this barrier, the process dies now, or waits."""
    if _FOLDER is None:
        return
    here = os.path.join(_FOLDER, f"{barrier}.{os.getpid()}.here")
    try:
        os.rename(os.path.join(_FOLDER, barrier), here)
    except FileNotFoundError:
        return
    if not os.path.getsize(here):
        os.kill(os.getpid(), signal.SIGKILL)
    while os.path.exists(here):
        time.sleep(0.01)
