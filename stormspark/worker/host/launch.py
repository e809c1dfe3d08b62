"""The start of a worker process, beside the Spark executor that needs it.

The worker has the same interpreter, module path and working directory as the Spark Python process that starts it. So it finds
the user's modules where Spark has put them (``--py-files``, archives, an unpacked environment). The worker reads its `Launch`
from its standard input and not from its command line, because the key must stay secret. Once all imports have worked, the
process forks. Only the new process lives on, so the worker does not end with the process that started it. If the start fails
before nimbus knows the worker, `start` raises an error, with the worker's message if there is one.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.private_files import LONGEST_FOR_SOCKETS, folder_for_sockets, is_claimed, is_private
from stormspark.tuple_path import PURE
from stormspark.worker.host.addresses import ANY_PORT, Ports
from stormspark.worker.host.connection import SILENCE_SECS
from stormspark.worker.host.key import Key
from stormspark.worker.host.lifeline import is_alive
from stormspark.worker.host.link import Endpoint, remove_if_dead
from stormspark.worker.host.messages import ProcessId

__all__ = [
    "INHERITED_PATH",
    "UP",
    "Launch",
    "LaunchError",
    "LaunchLostError",
    "end_process",
    "own_folder",
    "remove_folders",
    "start",
    "worker_folder",
]

#: The environment variable that keeps the original PYTHONPATH, because `start` replaces PYTHONPATH with the whole module path.
#: A program that a task starts may use another Python, which needs the original PYTHONPATH.
INHERITED_PATH = "STORMSPARK_INHERITED_PYTHONPATH"

#: The bytes that a worker writes to its standard output once nimbus knows it.
UP = b"up"


class LaunchError(Exception):
    """Raised if the process of a worker failed before nimbus knew the worker. The message is the output of the process. Another
    try would fail, too.
    """


class LaunchLostError(Exception):
    """Raised if the process of a worker took too long, or ended without a message, before nimbus knew the worker. Another try
    may succeed.
    """


class Launch(NamedTuple):
    """Everything that a worker process gets at its start. The process fetches the plan from nimbus later."""

    topology: str
    generation: int
    attempt: int
    worker: int
    incarnation: int
    nimbus: Endpoint
    key: Key
    jvm: ProcessId | None
    #: The folder for logs; None stands for the default folder of the user who runs the worker.
    log_folder: str | None
    #: The host by which others reach the worker; None stands for the address from which the worker has reached the driver.
    host: str | None = None
    #: The host at which the worker listens; see `Address`.
    bind: str | None = None
    ports: Ports = ANY_PORT
    silence_secs: float = SILENCE_SECS
    #: Whether the driver runs no compiled modules on purpose, which then goes for its workers on any host.
    sources: bool = False


def start(launch: Launch, timeout_secs: float) -> None:
    """Start a worker process, and return once nimbus knows the worker. The worker is ready only much later.

    Raises `LaunchError` if the process fails with a message, and `LaunchLostError` if the process ends without a message or
    takes too long.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON_WORKER_FACTORY")
    }
    environment.setdefault(INHERITED_PATH, environment.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    if launch.sources:
        environment[PURE] = "1"
    # With -P the working directory is on the worker's module path only if it is on the module path of this process. The
    # arguments after the module are only for people who list processes with `ps`.
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
    # The exit code says nothing, because it belongs to the process that forked. Also, Python reports 0 for every exit code if
    # SIGCHLD is ignored.
    if up.endswith(UP):  # a `sitecustomize` may have printed something
        return
    message = errors.decode(errors="replace").strip()
    if message:
        raise LaunchError(message)
    msg = "its process ended before nimbus knew it, without a message"
    raise LaunchLostError(msg)


def own_folder(prefix: str, parent: str | None = None) -> Path:
    """Make a new folder that only this user can enter, with a path that is short enough for a socket in it.

    Raises `UnsupportedEnvironmentError` if no such folder can be made on this host.
    """
    parent = parent or folder_for_sockets()
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))  # mode 0700
    except OSError as error:
        msg = (
            f"a socket needs a folder on host {socket.gethostname()}, and none can be made in {parent} ({error.strerror}): set "
            f"TMPDIR to a folder on a local disk, with a name of at most {LONGEST_FOR_SOCKETS} characters"
        )
        raise UnsupportedEnvironmentError(msg) from error


def worker_folder(launch: Launch) -> Path:
    """Make a worker's folder: beside nimbus's socket if the socket is on this host. When the driver ends, it removes everything
    beside the socket, even the folder of a worker that was killed.

    Raises the error of `own_folder`.
    """
    shared = os.path.dirname(launch.nimbus.unix)
    return own_folder(f"worker-{launch.worker}-", shared if is_private(shared) else None)


def remove_folders(own: Path, nimbus: Endpoint) -> None:
    """Remove a worker's ``own`` folder. If the driver was killed, remove the driver's folder around it, too.

    A driver that lives may have no nimbus for a while, or another one that does not listen yet, because it lays its topology out
    anew. But it has claimed its folder.
    """
    shutil.rmtree(own, ignore_errors=True)
    drivers = Path(nimbus.unix).parent
    is_within = own.parent == drivers
    if is_within and is_claimed(drivers):
        return
    remove_if_dead(nimbus)
    if is_within and not os.path.exists(nimbus.unix):
        shutil.rmtree(drivers, ignore_errors=True)


def end_process(process: ProcessId) -> None:
    """Kill a process on this host. Do nothing if the process has ended, even if another process has its pid now."""
    if process.started and is_alive(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)
