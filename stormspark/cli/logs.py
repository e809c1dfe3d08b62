"""Finds the log files of a topology on this host, for `stormspark logs` and `stormspark tail`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark.cli.output import wide_enough
from stormspark.errors import TopologyNotAliveError, UnsupportedEnvironmentError
from stormspark.operations.registry import entries, entry_of
from stormspark.private_files import check_private, default_log_folder
from stormspark.worker.host.task_logs import file_name

__all__ = ["log_files", "log_folder", "print_logs", "tail"]

#: No component has more tasks whose files are looked for by number.
_MOST_TASKS = 10_000


def log_folder(name: str) -> Path:
    """Return the folder with the logs of a topology that runs, or that has ended and had the default folder.

    Raises `TopologyNotAliveError` if there is none or if several topologies have that name, and `UnsupportedEnvironmentError` if
    it may belong to somebody else.
    """
    try:
        found = entry_of(name).log_folder
    except TopologyNotAliveError:
        ended = default_log_folder() / name
        several_run = any(one.topology == name for one in entries())
        if several_run or os.sep in name or not ended.is_dir():
            raise
        found = str(ended)
    if found is None:
        msg = f"the topology {name!r} has no log files: its tasks log to the program that runs it"
        raise TopologyNotAliveError(msg)
    try:
        return check_private(found)
    except FileNotFoundError:
        msg = f"the folder {found} with the logs of {name!r} is gone: its driver was killed, and somebody has removed it"
        raise TopologyNotAliveError(msg) from None


def log_files(folder: Path, task: str | None) -> list[Path]:
    """Return the log files of a task (``count[0]``), of all tasks of a component (``count``), or all in the folder.

    Raises `TopologyNotAliveError` if there is none on this host.
    """
    if task is None:
        found = sorted(folder.glob("*.log"))
    elif task.endswith("]"):
        found = [folder / file_name(task)]
    else:
        found = [folder / file_name(f"{task}[{index}]") for index in range(_MOST_TASKS)]
    if found := [file for file in found if file.is_file()]:
        return found
    there = ", ".join(sorted(file.name for file in folder.glob("*.log"))[:20]) or "no log files"
    msg = (
        f"there is no log of {task or 'this topology'} in {folder} on this host: name a component, or a task such as count[0]; "
        f"there are {there}. A worker on another host has its logs there"
    )
    raise TopologyNotAliveError(msg)


def print_logs(name: str, *, as_json: bool) -> int:
    """Print where the logs of a topology are, with their sizes. Returns the exit code."""
    folder = log_folder(name)
    sizes = {file.name: file.stat().st_size for file in log_files(folder, None)}
    if as_json:
        sys.stdout.write(json.dumps({"folder": str(folder), "files": sizes}) + "\n")
        return 0
    console = wide_enough(Console(highlight=False), 160)
    console.print(Text(str(folder)), soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    table.add_column("file")
    table.add_column("bytes", justify="right")
    for file, size in sizes.items():
        table.add_row(Text(file), f"{size:,}")
    console.print(table)
    return 0


def tail(name: str, task: str | None, lines: int, *, follow: bool) -> NoReturn:
    """Become the system's ``tail``, which shows the last lines of the logs. With ``follow``, it goes on when files rotate."""
    files = log_files(log_folder(name), task)
    program = shutil.which("tail")
    if program is None:
        msg = f"there is no program `tail` on the PATH: read {files[0].parent}"
        raise UnsupportedEnvironmentError(msg)
    sys.stdout.flush()
    os.execv(program, ["tail", "-n", str(lines), *["-F"] * follow, *map(str, files)])
