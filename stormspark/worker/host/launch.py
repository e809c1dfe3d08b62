"""Starting a worker process beside the Spark executor that needs it, detached from everything.

The interpreter, its path and its working directory are those of the Spark Python process that starts it, so
the worker sees the user's modules as Spark has shipped them (``--py-files``, archives, an unpacked
environment). What it must know comes by its standard input, not by its command line: the key is nobody's
business. It forks once more after its imports have worked, so that what lives on is nobody's child; what fails
before nimbus knows of it comes back here, with words or without.
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

#: Holds what PYTHONPATH was before it became all of our module path: for programs that a task starts, which may be for another
#: Python.
INHERITED_PATH = "STORMSPARK_INHERITED_PYTHONPATH"

#: What a worker writes to its standard output once nimbus knows it.
UP = b"up"

#: Socket paths are limited to 107 bytes on Linux and fewer elsewhere.
_LONGEST_FOLDER = 80


class LaunchError(Exception):
    """The interpreter of a worker did not come up; the text is what it said. It would say so again."""


class LaunchLostError(Exception):
    """A worker's process went without a word before nimbus knew it, as one does that is killed: it may be tried again."""


class Launch(NamedTuple):
    """All that a worker process is told when it is started; the plan it fetches from nimbus."""

    topology: str
    generation: int
    attempt: int
    worker: int
    incarnation: int
    nimbus: Endpoint
    key: Key
    jvm: ProcessId | None
    #: None: the default one of the worker's user.
    log_folder: str | None
    #: Where others reach it, and where it listens; None: at the address from which it sees the driver.
    host: str | None = None
    bind: str | None = None
    ports: Ports = ANY_PORT
    silence_secs: float = SILENCE_SECS


def start(launch: Launch, timeout_secs: float) -> None:
    """Start a worker process; returns once nimbus knows it, long before it is ready.

    Raises `LaunchError` if it says why it can't come up, `LaunchLostError` if it goes without a word or takes too long.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON_WORKER_FACTORY")
    }
    environment.setdefault(INHERITED_PATH, environment.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    # -P: the working directory is on the path only if it is on ours. The words after the module are for
    # readers of `ps`.
    command = [sys.executable, "-P", "-m", "stormspark.worker", launch.topology, str(launch.worker)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        try:
            up, said = process.communicate(pickle.dumps(launch), timeout=timeout_secs)
        except subprocess.TimeoutExpired:
            process.kill()
            msg = f"its interpreter did not come up within {timeout_secs:g} s (stormspark.worker.start.timeout.secs)"
            raise LaunchLostError(msg) from None
    # Not the exit code: it is that of the process that forked, and where SIGCHLD is ignored Python takes
    # every code for 0.
    if up.endswith(UP):  # a `sitecustomize` may have printed something
        return
    words = said.decode(errors="replace").strip()
    if words:
        raise LaunchError(words)
    msg = "its process was gone before it said hello"
    raise LaunchLostError(msg)


def own_folder(prefix: str, parent: str | None = None) -> Path:
    """A new folder that only this user can enter, with a path short enough for a socket in it."""
    if parent is None:
        temporary = tempfile.gettempdir()
        parent = temporary if len(temporary) <= _LONGEST_FOLDER - 30 else "/tmp"
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))  # mode 0700


def end_process(process: ProcessId) -> None:
    """Kill a process of this host, if it is still the one that is meant."""
    if process.started and is_alive(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)
