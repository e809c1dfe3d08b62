"""Makes a relative path to Python, such as ``./env/bin/python``, lead to a Python on the driver's host, too.

With ``--archives env.tar.gz#env`` and ``PYSPARK_PYTHON=./env/bin/python``, each executor unpacks the environment in its working
directory, but in client mode the driver has its own Python, and nothing is unpacked there. Yet Spark starts Python by the same
path on the driver's host for what it plans there: for the journal of the durable acker, and for other sources in Python. So the
path gets a program that starts this program's Python.
"""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext

__all__ = ["bring_python"]

_log = logging.getLogger(__name__)

_MARK = "# Made by stormspark while a driver runs (stormspark/spark/drivers_python.py)."


def bring_python(context: SparkContext) -> None:
    """Make the program if it is needed. It is removed when this process ends. If it can't be made, a warning says what to do."""
    path, jvm = context.pythonExec, context._jvm
    if "/" not in path or os.path.isabs(path):
        return
    system: Any = jvm.java.lang.System  # type: ignore[union-attr]
    # Spark starts Python in the JVM's working directory. This process may have changed its own.
    program = Path(system.getProperty("user.dir")) / path
    if program.exists() and not _is_ours(program):
        return
    made = next((folder for folder in [*program.parents][::-1] if not folder.exists()), program)
    try:
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\n{_MARK}\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    except OSError as error:
        _log.warning(
            "Spark starts Python as %s on this host too, for sources in Python, and there is no %s, which could not be made: %s. "
            "Unpack the environment's archive in the working directory, or start this program in a folder that you may write to",
            path,
            program,
            error,
        )
        return
    atexit.register(_remove, made)


def _is_ours(program: Path) -> bool:
    """Whether a driver made this program, and was killed."""
    with program.open("rb") as file:
        return _MARK.encode() in file.read(200)


def _remove(made: Path) -> None:
    if made.is_dir():
        shutil.rmtree(made, ignore_errors=True)
    else:
        made.unlink(missing_ok=True)
