"""Starts a driver in the background (``--detach``), and starts it again when it dies (``--supervise``).

``stormspark run`` and ``submit`` start their own command line again for this, with a role in the environment: the *driver* runs
the topology, and the *supervisor* starts drivers. Whoever typed the command waits until the topology runs, or has not started.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from stormspark.cli.child import BY_SIGNAL, ChildProgram
from stormspark.errors import StormsparkError
from stormspark.operations.client import Client
from stormspark.operations.registry import STARTED_AS, SUPERVISED_BY, Entry, entries
from stormspark.private_files import default_log_folder, make_private
from stormspark.rotated_output import RotatedOutput
from stormspark.worker.host.lifeline import this_process

__all__ = ["handed_over", "supervised"]

#: The variables with the role of a process, and with the file of its output.
_ROLE, _OUTPUT = "STORMSPARK_ROLE", "STORMSPARK_OUTPUT"
_DRIVER, _SUPERVISOR = "driver", "supervisor"
#: The folder for outputs within that for logs. A component's file can't have this name.
_FOLDER = "_drivers"
_MAX_BYTES, _BACKUP_COUNT = 5_000_000, 3
#: Files of drivers that wrote nothing for this long are deleted, in seconds.
_KEPT_SECS = 30 * 86_400.0
_LOOK_SECS, _SAY_SECS = 0.1, 5.0
#: This many of the last lines of the output say why a topology did not start.
_LINES = 15
#: Between two drivers, the supervisor waits for so many seconds at first, and at most. After a driver that ran for `_FINE_SECS`,
#: it begins again with the first.
_FIRST_WAIT, _LONGEST_WAIT, _FINE_SECS = 1.0, 300.0, 600.0
#: The exit codes of a topology that ended in order, of one that could not be started, and after signals to the driver itself.
_IN_ORDER, _NOT_STARTED = (0, 3), 2
_BY_USER = (BY_SIGNAL + 1, BY_SIGNAL + 2, BY_SIGNAL + 15)


def handed_over(*, detach: bool, supervise: bool) -> int | None:
    """Let another process run this command line, if the options say so, and return the exit code. Return None if this process
    has to run the topology itself.
    """
    role, output = os.environ.pop(_ROLE, ""), os.environ.pop(_OUTPUT, "")
    if not role:  # whoever supervises a program that has started this one supervises that program alone
        for name in (STARTED_AS, SUPERVISED_BY):
            os.environ.pop(name, None)
    if output:
        RotatedOutput(Path(output), _MAX_BYTES, _BACKUP_COUNT).watch()
    if role == _DRIVER:
        return None
    command = [sys.executable, "-m", "stormspark", *sys.argv[1:]]
    if detach and role != _SUPERVISOR:
        return _start(command, _SUPERVISOR if supervise else _DRIVER)
    return supervised(command) if supervise else None


def _start(command: Sequence[str], role: str) -> int:
    """Start the command line in the background, in a role. Return the exit code: 0 if the topology runs or has ended well."""
    started_as = secrets.token_hex(8)
    output = RotatedOutput(_output_file(started_as), _MAX_BYTES, _BACKUP_COUNT)
    environment = {_ROLE: role, _OUTPUT: str(output.path), STARTED_AS: started_as}
    descriptor = output.open()
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    try:
        entry = _waited_for(process, started_as)
    except KeyboardInterrupt:
        text = f"interrupted: process {process.pid} goes on to start the topology; its output is in {output.path}"
        click.echo(text, err=True)
        return BY_SIGNAL + 2
    if entry is None:
        code = process.wait()
        code = code if code >= 0 else BY_SIGNAL - code
        click.echo(_last_lines(output.path), err=True, nl=False)
        ended = "has ended already" if code in _IN_ORDER else "did not start"
        click.echo(
            f"the topology {ended}, with exit code {code}; all of its output is in {output.path}", err=True
        )
        return code
    click.echo(f"{entry.topology} runs: id {entry.id}, process {entry.pid}" + _supervisor(process, role))
    click.echo(f"output: {output.path}")
    if entry.log_folder is not None:
        click.echo(f"logs: {entry.log_folder}")
    if entry.url is not None:
        click.echo(f"it answers at {entry.url}")
    click.echo(f"stormspark list shows it, and stormspark kill {entry.topology} ends it")
    return 0


def _supervisor(process: subprocess.Popen[bytes], role: str) -> str:
    return f", which process {process.pid} starts again when it dies" if role == _SUPERVISOR else ""


def _waited_for(process: subprocess.Popen[bytes], started_as: str) -> Entry | None:
    """Wait until the topology runs, and return its entry. None if the process has ended before."""
    began = said_at = time.monotonic()
    waits_for = "the program starts"
    while process.poll() is None:
        entry = next((one for one in _known() if one.started_as == started_as and one.lives), None)
        if entry is not None:
            with contextlib.suppress(StormsparkError):  # it is about to end, or busy
                waits_for = str(Client(entry).ask("GET", "readiness").get("waitsFor"))
                if not waits_for:
                    return entry
        now = time.monotonic()
        if now - said_at >= _SAY_SECS:
            said_at = now
            click.echo(f"waiting for {now - began:.0f} s: {waits_for}", err=True)
        time.sleep(_LOOK_SECS)
    return None


def _known() -> list[Entry]:
    try:
        return entries()
    except (StormsparkError, OSError):
        return []


def _output_file(name: str) -> Path:
    folder = make_private(make_private(default_log_folder()) / _FOLDER)
    for file in folder.glob("*.out*"):
        with contextlib.suppress(OSError):
            if file.stat().st_mtime < time.time() - _KEPT_SECS:
                file.unlink()
    return folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}.out"


def _last_lines(path: Path) -> str:
    with contextlib.suppress(OSError):
        return "".join(path.read_text(errors="replace").splitlines(keepends=True)[-_LINES:])
    return ""


def supervised(
    command: Sequence[str],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Run the command line as driver, and again when it dies, until it ends in order. Return the last exit code.

    It ends in order by itself, by ``stormspark kill``, and by a signal to the driver or to this process, which is passed on. A
    driver that dies during the wait of a kill counts, too. What can't be started at all, because of a mistake in the topology or
    in the options, is not started again.
    """
    failures, has_run = 0, False
    started_as = os.environ.get(STARTED_AS) or secrets.token_hex(8)
    me = this_process()
    # The driver's alone: what else this process starts is not supervised.
    environment = {_ROLE: _DRIVER, STARTED_AS: started_as, SUPERVISED_BY: f"{me.pid} {me.started}"}
    with ChildProgram() as child:
        while True:
            began = clock()
            code = child.run(command, environment=environment)
            if child.received is not None or code in (*_IN_ORDER, *_BY_USER):
                return code
            if code == _NOT_STARTED and not has_run:
                return code
            if any(one.started_as == started_as and one.killed for one in _known()):
                return code
            has_run = True
            failures = 1 if clock() - began >= _FINE_SECS else failures + 1
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(failures - 1, 20))
            died = (
                f"was killed by signal {code - BY_SIGNAL}"
                if code > BY_SIGNAL
                else f"ended with exit code {code}"
            )
            click.echo(
                f"the driver {died}: it is started again in {wait:g} s (deaths in a row: {failures}; "
                f"`kill {os.getpid()}` ends this)",
                err=True,
            )
            until = clock() + wait
            while (left := until - clock()) > 0:
                sleep(min(left, _LOOK_SECS))
                if child.received is not None:
                    return BY_SIGNAL + child.received
