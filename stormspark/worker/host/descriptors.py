"""Room for descriptors: a process that runs out of them can neither be reached nor say so."""

from __future__ import annotations

import os
import resource

from stormspark.errors import UnsupportedEnvironmentError

__all__ = ["make_room"]

#: For what else a process opens: files, pipes, libraries.
_ELSE = 64
#: The soft limit is as high as this where that is allowed: it costs nothing, and most of what connects can't be counted before.
_AMPLE = 65_536


def make_room(connections: int, whose: str) -> None:
    """Let this process have many connections, by raising its soft limit; never lowers it. It has to have so many more at least.

    Raises `UnsupportedEnvironmentError` in one line where the hard limit is too low.
    """
    needed = len(os.listdir("/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"))
    needed += connections + _ELSE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        msg = (
            f"{whose} needs {needed} file descriptors and may have {hard}: raise the hard limit (ulimit -Hn {needed}, "
            f"LimitNOFILE= of a systemd unit, --ulimit nofile={needed} of a container)"
        )
        raise UnsupportedEnvironmentError(msg)
    ample = max(needed, _AMPLE)
    raised = ample if hard == resource.RLIM_INFINITY else min(ample, hard)
    if soft != resource.RLIM_INFINITY and soft < raised:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
