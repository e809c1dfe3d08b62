"""Turns the event log of a running topology on and off, and shows it (J20)."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from stormspark.cli.logs import log_folder
from stormspark.cli.operate import ask
from stormspark.cli.reach import Reach
from stormspark.errors import TopologyNotAliveError
from stormspark.ui.printable import printable

__all__ = ["debug", "event_files", "show_events"]

_LOOK_SECS = 0.2


def debug(reach: Reach, component: str | None, percentage: float | None, *, as_json: bool) -> int:
    """Let a percentage of what a component emits, or the whole topology, go to the event log; None turns it off.

    Returns the exit code. Raises the errors of `ask`.
    """
    of_component = "" if component is None else f"component/{quote(component, safe='')}/"
    if not percentage:
        done = "{} logs no events" + (f" of {component}" if component else "")
        return ask(reach, f"{of_component}debug/disable/0", done, as_json=as_json)
    return ask(
        reach,
        f"{of_component}debug/enable/{percentage:g}",
        f"{{}} logs {percentage:g} % of what {'components emit' if component is None else f'{component} emits'}; "
        f"`stormspark events {reach.name or 'NAME'} -f` shows it",
        as_json=as_json,
    )


def event_files(name: str) -> list[Path]:
    """Return the event logs of a topology on this host. Raises `TopologyNotAliveError` if there is none."""
    folder = log_folder(name)
    if files := sorted(folder.glob("worker-*/events.log")):
        return files
    msg = (
        f"no worker of {name!r} has logged events on this host, in {folder}: turn it on with `stormspark debug {name} --on 10`; "
        f"a worker on another host has its events there"
    )
    raise TopologyNotAliveError(msg)


def show_events(name: str, component: str | None, lines: int, *, follow: bool) -> int:
    """Print the last events of each worker, and with ``follow`` go on with those that come. Returns the exit code.

    Raises `TopologyNotAliveError` if there are no event logs, unless they are followed: then they may come yet.
    """
    followed: dict[Path, _Followed] = {}
    try:
        files = event_files(name)
    except TopologyNotAliveError:
        if not follow:
            raise
        files = []
    for file in files:
        followed[file] = one = _Followed(file)
        sys.stdout.writelines(deque(one.shown(component), lines))
    sys.stdout.flush()
    folder = log_folder(name)
    while follow:
        for file in folder.glob("worker-*/events.log"):
            one = followed.setdefault(file, _Followed(file))
            sys.stdout.writelines(one.shown(component))
        sys.stdout.flush()
        time.sleep(_LOOK_SECS)
    return 0


def _is_of(line: str, component: str | None) -> bool:
    return component is None or line.partition(",")[2].startswith(f"{component},")


class _Followed:
    """A file that is read as it grows. If it is rotated, its next one is read."""

    def __init__(self, path: Path) -> None:
        self._path, self._inode, self._at = path, -1, 0

    def shown(self, component: str | None) -> Iterator[str]:
        """Iterate over the new lines about a component, or all if None, as a terminal may print them."""
        return (printable(line) for line in self.lines() if _is_of(line, component))

    def lines(self) -> Iterator[str]:
        """Iterate over the whole lines that have come since the last call."""
        try:
            with self._path.open("rb") as file:
                status = self._path.stat()
                if status.st_ino != self._inode or status.st_size < self._at:
                    self._inode, self._at = status.st_ino, 0
                file.seek(self._at)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._at += len(line)
                    yield line.decode(errors="replace")
        except FileNotFoundError:
            return
