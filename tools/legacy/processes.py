"""Runs stormspark's command line in a process of its own, with a home folder of its own, for a limited time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

__all__ = ["Done", "message", "stormspark"]

ROOT = Path(__file__).resolve().parents[2]
#: Variables of the caller that strangers' code gets. It gets no others, because they may hold secrets.
_PASSED_ON = ("PATH", "JAVA_HOME", "LANG", "LC_ALL", "TZ", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
#: How long a process that is asked to end may take.
_END_SECS = 20
_ERROR = re.compile(r"^\s*(Error: |.* stopped: )")
#: A further line of a message: where, or what to do.
_NOTE = re.compile(r"  \S")


class Done(NamedTuple):
    """What a command printed. ``code`` is None if it was ended at its limit."""

    code: int | None
    output: str
    errors: str


def stormspark(arguments: Sequence[str], home: Path, limit_secs: float, folder: Path | None = None) -> Done:
    """Run a command of stormspark. After ``limit_secs`` it is ended, with all processes that it has started."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "stormspark.cli", *arguments],
        cwd=folder or home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    code: int | None
    try:
        output, errors = process.communicate(timeout=limit_secs)
        code = process.returncode
    except subprocess.TimeoutExpired:
        code = None
        _signal(process, signal.SIGTERM)
        try:
            output, errors = process.communicate(timeout=_END_SECS)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            output, errors = process.communicate()
    _signal(process, signal.SIGKILL)  # what the command has left running in its session
    return Done(code, output, errors)


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def message(errors: str) -> str:
    r"""Return what a command's error output says: its message with the lines that belong to it, or else the last line.

    >>> message("a warning\nError: no module named six\n  at x.py:3: import six\n  install it\nmore")
    'no module named six; at x.py:3: import six; install it'
    """
    lines = [line.rstrip() for line in errors.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if _ERROR.match(line):
            said = [_ERROR.sub("", line)]
            if line.startswith("Error: "):  # a topology that stopped is followed by its traceback
                said += takewhile(_NOTE.match, lines[number + 1 :])
            return "; ".join(one.strip() for one in said)
    return lines[-1].strip() if lines else ""
