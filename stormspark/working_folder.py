"""The working directory of a process that runs components.

Storm starts a component of streamparse in the folder of the topology's ``resources``, so ``open("words.txt")`` reads a file of
the project. Here the setting ``stormspark.working.dir`` names that folder. A process goes there once, before it imports the
project's modules. Paths that the user has given for stormspark itself, such as the folder for logs, still start where the process
started (`from_start`).
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

__all__ = ["SHIPPED_PROJECT", "about_relative_path", "from_start", "go_to", "working_in"]

#: The folder in the working directory of an executor, and of a driver on the cluster, into which Spark unpacks the project that
#: ``stormspark submit`` ships.
SHIPPED_PROJECT = "stormspark-project"


class _Process:
    """This process. ``start`` is the working directory in which it has started, once it has gone elsewhere."""

    start: str | None = None


def go_to(folder: str) -> str | None:
    """Make ``folder`` the working directory of this process. Return why that is impossible; None if it was possible.

    If there is no such folder on this host, as on a worker of a cluster, the folder of the same name in the present working
    directory takes its place (``spark-submit --archives src.zip#src``), or the one in the project that ``stormspark submit`` has
    shipped.
    """
    here = os.getcwd()
    shipped = os.path.join(here, Path(folder).name)
    found = next((one for one in (folder, shipped, *_in_project(folder, here)) if os.path.isdir(one)), None)
    if found is None:
        return f"this host has neither {folder} nor {shipped}, so the working directory is {here} (stormspark.working.dir)"
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]
    _Process.start = _Process.start or here
    os.chdir(found)
    return None


def _in_project(folder: str, here: str) -> Iterator[str]:
    """Yield where a folder of another host may be in the project that was shipped, the most likely place first."""
    parts = Path(folder).parts[1:]
    if parts[-1:] == (SHIPPED_PROJECT,):
        yield os.path.join(here, SHIPPED_PROJECT)
    for number in range(len(parts)):
        yield os.path.join(here, SHIPPED_PROJECT, *parts[number:])


def from_start(path: str) -> str:
    """Return a path that starts at the working directory in which this process has started."""
    return path if _Process.start is None else os.path.join(_Process.start, path)


def about_relative_path(error: BaseException) -> str:
    """Return what to do about a file that was not found, if its path is relative; otherwise an empty string.

    A program that ``subprocess`` has not found is no such file.

    >>> about_relative_path(FileNotFoundError(2, "No such file or directory", "/words.txt"))
    ''
    """
    if not isinstance(error, FileNotFoundError) or not isinstance(error.filename, str | os.PathLike):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    if os.path.isabs(error.filename) or (frames and Path(frames[-1].filename).name == "subprocess.py"):
        return ""
    return f"relative paths start in {os.getcwd()}; call it in the project's folder, or set stormspark.working.dir"


@contextlib.contextmanager
def working_in(folder: str | Path | None) -> Iterator[None]:
    """Make ``folder`` the working directory of this process while the block lasts. Do nothing for None.

    Raises `FileNotFoundError` if there is no such folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     before = os.getcwd()
    ...     with working_in(folder):
    ...         os.getcwd() == os.path.realpath(folder), from_start("logs") == os.path.join(before, "logs")
    (True, True)
    >>> os.getcwd() == before, from_start("logs")
    (True, 'logs')
    """
    if folder is None:
        yield
        return
    before, started = os.getcwd(), _Process.start
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]
    os.chdir(folder)
    _Process.start = started or before
    try:
        yield
    finally:
        _Process.start = started
        os.chdir(before)
