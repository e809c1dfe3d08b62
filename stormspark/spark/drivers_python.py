"""Makes a relative path to Python, such as ``./env/bin/python``, lead to a Python on the driver's host, too.

With ``--archives env.tar.gz#env`` and ``PYSPARK_PYTHON=./env/bin/python``, each executor unpacks the environment in its working
directory, but in client mode the driver has its own Python, and nothing is unpacked there. Yet Spark starts Python by the same
path on the driver's host for what it plans there: for the journal of the durable acker, and for other sources in Python. So the
path gets a program that starts this program's Python. The program names the drivers that need it, because several may run in
one working directory: the last one removes it. Nothing that users have put there is touched.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark import SparkContext

from stormspark.spark.fence import this_machine
from stormspark.worker.host.lifeline import is_alive, this_process
from stormspark.worker.host.messages import ProcessId

__all__ = ["bring_python"]

_log = logging.getLogger(__name__)

_MARK = "# Made by stormspark while a driver runs (stormspark/spark/drivers_python.py):"
_IS_OURS = re.compile(rf"#!/bin/sh\n{re.escape(_MARK)} (.*)\n(exec .*)\n")


class _Driver(NamedTuple):
    """A driver that needs the program, as the program's marked line names it."""

    process: ProcessId
    machine: str

    @property
    def may_live(self) -> bool:
        """Whether the driver still runs. Of a process in another container or on another host, nobody here can say."""
        me = _this_driver()
        if (self.process.host, self.machine) != (me.process.host, me.machine) or not self.process.started:
            return True
        return is_alive(self.process)

    def __str__(self) -> str:
        return f"{self.process.host} {self.process.pid} {self.process.started} {self.machine}"


class _Program(NamedTuple):
    drivers: tuple[_Driver, ...]
    #: The line that starts Python.
    start: str

    @property
    def works(self) -> bool:
        """Whether its Python is there: that of a driver in another container need not be."""
        return os.access(shlex.split(self.start)[1], os.X_OK)


def bring_python(context: SparkContext) -> None:
    """Make the program if it is needed. It is removed when this process ends. If it can't be made, a warning says what to do."""
    path, jvm = context.pythonExec, context._jvm
    if "/" not in path or os.path.isabs(path):
        return
    system: Any = jvm.java.lang.System  # type: ignore[union-attr]
    # Spark starts Python in the JVM's working directory. This process may have changed its own.
    program = Path(system.getProperty("user.dir")) / path
    me, made = _this_driver(), list[Path]()
    mine = _Program((me,), f'exec {shlex.quote(sys.executable)} "$@"')
    try:
        there = _ours(program)
        if there is None and os.path.lexists(program):
            if not os.access(program, os.X_OK) or program.is_dir():
                _warn(path, program, "what is there can't be started as a program")
            return
        if there is not None and me in there.drivers:
            return
        if there is not None and there.works and any(one.may_live for one in there.drivers):
            if there.start != mine.start:
                _log.warning(
                    "Spark starts Python as %s on this host too, for sources in Python, and %s starts the Python of another "
                    "driver in this working directory (%s), and not %s. If that is another version of Python, or has other "
                    "packages, start this program in another working directory",
                    path,
                    program,
                    shlex.split(there.start)[1],
                    sys.executable,
                )
            mine = there._replace(drivers=(*there.drivers, me))
        for folder in [*program.parents][::-1]:
            if not folder.exists():
                folder.mkdir(exist_ok=True)
                made.insert(0, folder)
        _write(program, mine)
    except OSError as error:
        _remove_empty(made)
        _warn(path, program, error)
        return
    atexit.register(_remove, program, made, me)


def _warn(path: str, program: Path, reason: object) -> None:
    _log.warning(
        "Spark starts Python as %s on this host too, for sources in Python, and there is no %s, which could not be made: %s. "
        "Unpack the environment's archive in the working directory, or start this program in a folder that you may write to",
        path,
        program,
        reason,
    )


def _this_driver() -> _Driver:
    return _Driver(this_process(), this_machine())


def _ours(program: Path) -> _Program | None:
    """Return what a driver has made, or None: nothing is there, or it is the user's."""
    if program.is_symlink() or not program.is_file():
        return None
    try:
        with program.open("rb") as file:
            text = file.read(1 << 16).decode(errors="replace")
    except PermissionError:  # what this user may not read, this user has not made
        return None
    found = _IS_OURS.fullmatch(text)
    if found is None:
        return None
    named = (re.fullmatch(r"(\S*) (\d+) (\d+) (.*)", one) for one in found[1].split(", "))
    drivers = (
        _Driver(ProcessId(one[1], int(one[2]), int(one[3])), one[4]) for one in named if one is not None
    )
    return _Program(tuple(drivers), found[2])


def _write(program: Path, content: _Program) -> None:
    """Write the program at once: Spark may start it at any time."""
    descriptor, new = tempfile.mkstemp(dir=program.parent, prefix=".stormspark-")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{_MARK} {', '.join(map(str, content.drivers))}\n{content.start}\n")
        os.chmod(new, 0o755)
        os.replace(new, program)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def _remove(program: Path, made: Iterable[Path], me: _Driver) -> None:
    """Take a driver out of the program, or remove it with the folders that were made for it if nobody else needs it."""
    if this_process() != me.process:
        return  # a fork of the driver ends, and not the driver
    with contextlib.suppress(OSError):
        there = _ours(program)
        if there is not None and me in there.drivers:
            others = tuple(one for one in there.drivers if one != me and one.may_live)
            if others:
                _write(program, there._replace(drivers=others))
            else:
                program.unlink()
    _remove_empty(made)


def _remove_empty(made: Iterable[Path]) -> None:
    """Remove the folders, innermost first. A folder into which somebody has put something stays."""
    for folder in made:
        with contextlib.suppress(OSError):
            folder.rmdir()
