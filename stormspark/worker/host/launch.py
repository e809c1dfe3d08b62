"""The start of a worker process beside the Spark executor that needs it, detached from everything.

The worker has the interpreter, the path and the working directory of the Spark Python process that starts it. So it sees the
user's modules as Spark has shipped them (``--py-files``, archives, an unpacked environment). It reads its orders from its
standard input and not from its command line, because the key must stay secret. It forks once more after its imports have
worked, so that the process that lives on is nobody's child. If the start fails before nimbus knows the worker, the error
comes back here, with a message or without.
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

from stormspark.worker.host.addresses import ANY_PORT, Ports
from stormspark.worker.host.connection import SILENCE_SECS
from stormspark.worker.host.key import Key
from stormspark.worker.host.lifeline import is_alive
from stormspark.worker.host.link import Endpoint
from stormspark.worker.host.messages import ProcessId

__all__ = [
    "INHERITED_PATH",
    "UP",
    "Launch",
    "LaunchError",
    "LaunchLostError",
    "end_process",
    "own_folder",
    "start",
]

#: The variable with the original PYTHONPATH, from before it was replaced by the whole module path. It is for programs that a
#: task starts, which may need another Python.
INHERITED_PATH = "STORMSPARK_INHERITED_PYTHONPATH"

#: The bytes that a worker writes to its standard output once nimbus knows it.
UP = b"up"

#: Socket paths are limited to 107 bytes on Linux and fewer elsewhere.
_LONGEST_FOLDER = 80


class LaunchError(Exception):
    """The interpreter of a worker did not come up. The message is its output; another try would fail in the same way."""


class LaunchLostError(Exception):
    """The process of a worker ended without a message before nimbus knew it, as if it was killed. Another try may succeed."""


class Launch(NamedTuple):
    """Everything that a worker process gets at its start. It fetches the plan from nimbus."""

    topology: str
    generation: int
    attempt: int
    worker: int
    incarnation: int
    nimbus: Endpoint
    key: Key
    jvm: ProcessId | None
    #: None: the default folder of the worker's user.
    log_folder: str | None
    #: The host by which others reach it, and the one where it listens; None: the address by which it has reached the driver.
    host: str | None = None
    bind: str | None = None
    ports: Ports = ANY_PORT
    silence_secs: float = SILENCE_SECS


def start(launch: Launch, timeout_secs: float) -> None:
    """Start a worker process, and return once nimbus knows it, long before it is ready.

    Raises `LaunchError` if the process fails with a message, `LaunchLostError` if it ends without one or takes too long.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON_WORKER_FACTORY")
    }
    environment.setdefault(INHERITED_PATH, environment.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    # -P: the working directory is on the worker's path only if it is on the path of this process. The arguments after the
    # module are for readers of `ps`.
    command = [sys.executable, "-P", "-m", "stormspark.worker", launch.topology, str(launch.worker)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        try:
            up, errors = process.communicate(pickle.dumps(launch), timeout=timeout_secs)
        except subprocess.TimeoutExpired:
            process.kill()
            msg = f"its interpreter did not come up within {timeout_secs:g} s (stormspark.worker.start.timeout.secs)"
            raise LaunchLostError(msg) from None
    # Not the exit code: that belongs to the process that forked, and Python takes every code for 0 if SIGCHLD is ignored.
    if up.endswith(UP):  # a `sitecustomize` may have printed something
        return
    message = errors.decode(errors="replace").strip()
    if message:
        raise LaunchError(message)
    msg = "its process ended before nimbus knew it, without a message"
    raise LaunchLostError(msg)


def own_folder(prefix: str, parent: str | None = None) -> Path:
    """Make a new folder that only this user can enter, with a path that is short enough for a socket in it."""
    if parent is None:
        temporary = tempfile.gettempdir()
        parent = temporary if len(temporary) <= _LONGEST_FOLDER - 30 else "/tmp"
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))  # mode 0700


def end_process(process: ProcessId) -> None:
    """Kill a process on this host, unless it has ended and its pid belongs to another one."""
    if process.started and is_alive(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)
