"""Room for descriptors: a process that runs out of them can neither be reached nor say so."""

from __future__ import annotations

import os
import resource

from stormspark.errors import UnsupportedEnvironmentError

__all__ = ["make_room"]

#: For what else a process opens: files, pipes, libraries.
_ELSE = 64


def make_room(connections: int, whose: str) -> None:
    """Let this process have so many more connections, by raising its soft limit if it has to be; never lowers it.

    Raises `UnsupportedEnvironmentError` in one line where the hard limit is too low.
    """
    needed = len(os.listdir("/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"))
    needed += connections + _ELSE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        msg = (
            f"{whose} needs {needed} file descriptors and may have {hard}: raise the hard limit (ulimit -Hn {needed}, "
            f"LimitNOFILE= of a systemd unit, --ulimit nofile={needed} of a container)"
        )
        raise UnsupportedEnvironmentError(msg)
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
