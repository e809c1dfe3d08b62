"""The limit on file descriptors. A process without a free descriptor can't be reached, and can't report why."""

from __future__ import annotations

import os
import resource

from stormspark.errors import UnsupportedEnvironmentError

__all__ = ["make_room"]

#: How many descriptors a process needs for files, pipes and libraries, in addition to the descriptors of connections.
_OTHER_FILES = 64
#: The soft limit is raised to this number if the hard limit allows it. A high limit costs nothing, and nobody knows in advance
#: how many connections user code opens.
_AMPLE = 65_536


def make_room(connections: int, process: str) -> None:
    """Raise this process's soft limit, so that it can open at least ``connections`` more connections. Never lower the limit.

    Raises `UnsupportedEnvironmentError`, with a message of one line that names ``process``, if the hard limit is too low.
    """
    needed = len(os.listdir("/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"))
    needed += connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        msg = (
            f"{process} needs {needed} file descriptors and may have {hard}: raise the hard limit (ulimit -Hn {needed}, "
            f"LimitNOFILE= of a systemd unit, --ulimit nofile={needed} of a container)"
        )
        raise UnsupportedEnvironmentError(msg)
    ample = max(needed, _AMPLE)
    raised = ample if hard == resource.RLIM_INFINITY else min(ample, hard)
    if soft != resource.RLIM_INFINITY and soft < raised:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
