"""Finds out whether the kernel has killed a process because memory ran out: its container's (control group's), or the host's.

The kernel counts such kills for each control group (``oom_kill`` in ``memory.events``, or in ``memory.oom_control`` of version
1), whichever of the limits was reached, and also if the host had no memory left. In version 1 a kill counts only in the group
that the process itself is in; in version 2 also in the groups around it. So the innermost group that has a counter says whether
a process in it was killed for lack of memory, whatever group has the limit.

``/proc/vmstat`` counts the kills on the whole host, those in other containers too. Only where no group counts, a rise of this
number shows that the kernel may have killed the process. All other SIGKILLs are somebody's ``kill -9``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["NOT_KNOWN", "MemoryAtEnd", "MemoryLimit", "limit_of"]

_CONTROL_GROUPS, _PROCESSES = Path("/sys/fs/cgroup"), Path("/proc")
#: Version 1 writes the largest number of pages for "no limit".
_NO_LIMIT = 1 << 60
_HOST = "vmstat"


class MemoryLimit(NamedTuple):
    """The limit of memory for a process in bytes, 0 if there is none, and the files with counters of kills.

    They are that of the process's control group, "" if it has none, and that of the host.
    """

    size: int
    counters: tuple[str, str]


class MemoryAtEnd(NamedTuple):
    """What is known about memory when a process has ended."""

    #: The most memory that the process has used at a time, in KB; 0 if that is not known.
    peak_kb: int = 0
    #: The limit of its control group in bytes; 0 for none.
    limit: int = 0
    #: How many processes the kernel has killed meanwhile for lack of memory, in its control group and on the host; -1 if it does
    #: not count them.
    kills_in_group: int = -1
    kills_on_host: int = -1

    @property
    def is_known(self) -> bool:
        """Whether the kernel counts at all."""
        return max(self.kills_in_group, self.kills_on_host) >= 0

    @property
    def is_certain(self) -> bool:
        """Whether it was a process of the control group that the kernel has killed, and not any process of the host."""
        return self.kills_in_group > 0

    @property
    def why(self) -> str:
        """Why the kernel has killed the process, as a clause; empty if it has not. Without `is_certain` this is only likely.

        >>> MemoryAtEnd(peak_kb=204800, limit=256 << 20, kills_in_group=1, kills_on_host=1).why
        'the memory limit of its container, 256 MB, was reached, and the process itself had used up to 200 MB'
        >>> MemoryAtEnd(peak_kb=204800, kills_in_group=1, kills_on_host=1).why
        'the host had no memory left, and the process itself had used up to 200 MB'
        >>> MemoryAtEnd(peak_kb=204800, kills_in_group=0, kills_on_host=1).why
        ''
        >>> MemoryAtEnd(peak_kb=204800, kills_on_host=1).why
        'the host had no memory left for some process meanwhile, and the process itself had used up to 200 MB'
        """
        if self.is_certain:
            limit = f"the memory limit of its container, {self.limit >> 20:,} MB, was reached"
            what = limit if self.limit else "the host had no memory left"
        elif self.kills_in_group < 0 < self.kills_on_host:
            what = "the host had no memory left for some process meanwhile"
        else:
            return ""
        return (
            f"{what}, and the process itself had used up to {self.peak_kb >> 10:,} MB"
            if self.peak_kb
            else what
        )


NOT_KNOWN = MemoryAtEnd()


def limit_of(pid: int, control_groups: Path = _CONTROL_GROUPS, processes: Path = _PROCESSES) -> MemoryLimit:
    """Return the smallest limit of the control groups that a process is in, and where the kernel counts its kills."""
    smallest, counter = _NO_LIMIT, ""
    for group, name, counts in _groups(pid, control_groups, processes):
        with contextlib.suppress(OSError, ValueError):  # there is no such file, or it says "max"
            smallest = min(smallest, int((group / name).read_text()))
        with contextlib.suppress(OSError):
            if not counter and _counts(group / counts):
                counter = str(group / counts)
    return MemoryLimit(smallest if smallest < _NO_LIMIT else 0, (counter, str(processes / _HOST)))


def _counts(file: Path) -> bool:
    """Whether a control group's file has a counter of kills: Linux before 4.13 has none."""
    return any(line.startswith("oom_kill ") for line in file.read_text().splitlines())


def _groups(pid: int, control_groups: Path, processes: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the process's control groups, innermost first, with the names of the files for the limit and for kills.

    In a container the path may be that of the host, of which the container sees only the end. Then only the root is there.
    """
    try:
        lines = (processes / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            root, names = control_groups / "memory", ("memory.limit_in_bytes", "memory.oom_control")
        elif not controllers:
            root, names = control_groups, ("memory.max", "memory.events")
        else:
            continue
        group = root / path.lstrip("/")
        while group != root:
            yield group, *names
            group = group.parent
        yield root, *names
