"""An error of a task for the page: its last line, and the line of the user's code at which it was raised."""

from __future__ import annotations

import re
import sysconfig
from typing import Any

from stormspark.driver.error_log import TaskError
from stormspark.operations.facts import WorkerPlace
from stormspark.user_line import is_ours

__all__ = ["described", "users_line"]

_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
_LONGEST, _LONGEST_TEXT = 400, 20_000
_PYTHONS = sysconfig.get_paths()["stdlib"]


def described(error: TaskError, place: WorkerPlace | None) -> dict[str, Any]:
    """Return an error as JSON. ``place`` is where the task's worker is."""
    lines = error.text.strip().splitlines() or [""]
    return {
        "at": round(error.at, 2),
        "component": error.component,
        "task": error.task,
        "worker": error.worker,
        "host": "" if place is None else place.host,
        "summary": lines[-1].strip()[:_LONGEST],
        "line": users_line(error.text),
        "text": error.text if len(error.text) <= _LONGEST_TEXT else f"{error.text[:_LONGEST_TEXT]}\n...",
    }


def users_line(text: str) -> str | None:
    r"""Return the last line of the user's code in a traceback, such as "count.py:7"; None if there is none.

    >>> users_line('Traceback ...\n  File "/home/me/count.py", line 7, in execute\n    x\nValueError: x')
    '/home/me/count.py:7'
    >>> users_line("ValueError: x") is None
    True
    """
    frames = [
        match
        for match in _FRAME.finditer(text[-_LONGEST_TEXT:])
        if not is_ours(match["file"])
        and not match["file"].startswith((_PYTHONS, "<frozen"))
        and "site-packages" not in match["file"]
    ]
    return f"{frames[-1]['file']}:{frames[-1]['line']}" if frames else None
