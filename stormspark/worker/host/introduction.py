"""The introduction of a new worker process to nimbus. The process says hello, and gets everything that it needs to open its
tasks.

Meanwhile the process that started the worker process waits. It reads "up" once nimbus knows the worker.
"""

from __future__ import annotations

import contextlib
import os
import socket
from multiprocessing import AuthenticationError
from pathlib import Path
from typing import NamedTuple

from stormspark.checkpoint.shared_folder import show_that_it_is_seen
from stormspark.private_files import open_private
from stormspark.worker.host.addresses import Address
from stormspark.worker.host.connection import Connection, local_host
from stormspark.worker.host.launch import UP, Launch
from stormspark.worker.host.lifeline import this_process
from stormspark.worker.host.link import dial
from stormspark.worker.host.messages import (
    Adopt,
    Hello,
    Refused,
    Sees,
    StartFailed,
    StateRows,
    Welcome,
)
from stormspark.worker.state.batch_state import StateAccess

__all__ = ["LAST_WORDS_SECS", "Introduction", "NotIntroducedError", "introduce", "unusable_logs"]

#: A process that fails to start waits at most this long for nimbus to read the reason.
LAST_WORDS_SECS = 5.0


class NotIntroducedError(Exception):
    """Raised if the process has to end, because nimbus is gone, refuses the process, or can't use it. ``code`` is the exit
    code.
    """

    def __init__(self, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.code = code


class Introduction(NamedTuple):
    """The result of the introduction: the link to nimbus, and everything that came over the link."""

    link: Connection
    welcome: Welcome
    #: The address by which other hosts reach this process; None if all processes are on one host.
    address: Address | None
    #: Rows for tasks that are not open yet.
    adoptions: list[Adopt]
    state: StateAccess | None
    #: The report that says whether this host sees the driver's folder; None if nimbus does not ask for this report.
    sees: Sees | None


def introduce(launch: Launch, output: Path, folder: Path) -> Introduction:
    """Introduce this process to nimbus. Raises `NotIntroducedError` if the process has to end.

    Once nimbus knows this process, the file ``output`` receives everything that is written to the descriptors of stdout and
    stderr. State that the driver sends goes to a file in ``folder``.
    """
    try:
        link = dial(launch.nimbus, launch.key, launch.silence_secs)
        link.send(Hello(launch.worker, launch.incarnation, this_process(), launch.jvm))
        answer = link.recv()
    except (OSError, EOFError, AuthenticationError) as error:
        raise _gone(error) from error
    if isinstance(answer, Refused):
        raise NotIntroducedError(answer.reason)
    assert isinstance(answer, Welcome), answer
    try:
        _report_up(output)
    except OSError as error:
        text = unusable_logs(error)
        with contextlib.suppress(OSError):
            link.send(StartFailed(launch.worker, launch.incarnation, text, outside=True))
            # Wait until nimbus has read the message, because on TCP the message would otherwise be lost with the connection.
            link.poll(LAST_WORDS_SECS)
        raise NotIntroducedError(text, code=1) from error
    address = None
    if launch.nimbus.tcp is not None:
        # If the link is a socket file, `local_host` returns None. Then this worker is on the driver's host, and has its address.
        host = launch.host or local_host(link) or launch.nimbus.tcp[0]
        address = Address(host, launch.bind, launch.ports)
    state = answer.state
    try:
        adoptions = [link.recv() for _ in range(answer.adoptions)]
        if state is not None and state.by_driver:
            state = state._replace(handed=str(_take_state(link, folder)))
    except (OSError, EOFError) as error:
        raise _gone(error) from error
    sees = _sees(answer.shared) if answer.shared else None
    return Introduction(link, answer, address, adoptions, state, sees)


def unusable_logs(error: Exception) -> str:
    """Return a message that says that the folder for logs can't be used on this host, and why."""
    return f"the folder for logs can't be used on host {socket.gethostname()}: {error}"


def _gone(error: Exception) -> NotIntroducedError:
    return NotIntroducedError(f"the driver is gone: {error}")


def _report_up(output: Path) -> None:
    """Report "up" to the process that started this process, because nimbus knows this worker now. Then close the pipes between
    the two.

    From now on ``output`` receives everything that is written directly to the descriptors of stdout and stderr. Logs and prints
    have other files.
    """
    os.write(1, UP)
    null = os.open(os.devnull, os.O_RDONLY)
    log = open_private(output)
    for opened, standard in ((null, 0), (log, 1), (log, 2)):
        os.dup2(opened, standard)
    os.close(null)
    os.close(log)


def _take_state(link: Connection, folder: Path) -> Path:
    """Receive the state that the driver sends, into a file, because it may be larger than memory. Return the file's path."""
    path = folder / "state"
    with path.open("wb") as file:
        rows: StateRows = link.recv()
        while rows.data:
            file.write(rows.data)
            rows = link.recv()
    return path


def _sees(place: str) -> Sees:
    """Prove that this host sees the driver's folder, and return the report; see `Welcome.shared`."""
    try:
        return Sees(show_that_it_is_seen(place))
    except OSError as error:
        return Sees("", str(error))
