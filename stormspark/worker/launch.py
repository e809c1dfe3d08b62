"""Starting a worker process beside the Spark executor that needs it, detached from everything.

The interpreter, its path and its working directory are those of the Spark Python process that starts it, so
the worker sees the user's modules as Spark has shipped them (``--py-files``, archives, an unpacked
environment). What it must know comes by its standard input, not by its command line: the key is nobody's
business. It forks once more after its imports have worked, so that what fails early comes back as an exit
code with words, and what lives on is nobody's child.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from stormspark.worker.lifeline import is_alive
from stormspark.worker.link import Endpoint
from stormspark.worker.messages import ProcessId

__all__ = ["Launch", "LaunchError", "end_process", "own_folder", "start"]

#: Socket paths are limited to 107 bytes on Linux and fewer elsewhere.
_LONGEST_FOLDER = 80


class LaunchError(Exception):
    """The interpreter of a worker did not come up; the text is what it said."""


class Launch(NamedTuple):
    """All that a worker process is told when it is started; the plan it fetches from nimbus."""

    topology: str
    generation: int
    attempt: int
    worker: int
    incarnation: int
    nimbus: Endpoint
    key: bytes
    jvm: ProcessId | None
    log_folder: str


def start(launch: Launch, timeout_secs: float) -> None:
    """Start a worker process; returns once it is detached, long before it is ready (nimbus hears of that).

    Raises `LaunchError` if its interpreter does not come up.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON_WORKER_FACTORY")
    }
    environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    # -P: the working directory is on the path only if it is on ours. The words after the module are for
    # readers of `ps`.
    command = [sys.executable, "-P", "-m", "stormspark.worker", launch.topology, str(launch.worker)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    try:
        up, said = process.communicate(pickle.dumps(launch), timeout=timeout_secs)
    except subprocess.TimeoutExpired:
        process.kill()
        msg = f"the worker's interpreter did not come up within {timeout_secs} s"
        raise LaunchError(msg) from None
    # Not the exit code: PySpark's daemon ignores SIGCHLD, we inherit that, and then Python takes every code
    # for 0.
    if up != b"up":
        raise LaunchError(said.decode(errors="replace").strip() or f"exit code {process.returncode}")


def own_folder(prefix: str, parent: str | None = None) -> Path:
    """A new folder that only this user can enter, with a path short enough for a socket in it."""
    if parent is None:
        temporary = tempfile.gettempdir()
        parent = temporary if len(temporary) <= _LONGEST_FOLDER - 30 else "/tmp"
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))


def end_process(process: ProcessId) -> None:
    """Kill a process of this host, if it is still the one that is meant."""
    if process.started and is_alive(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)
