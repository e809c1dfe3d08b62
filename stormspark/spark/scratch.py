"""The driver's own temporary folder. It holds sockets, files for workers, and the checkpoint if the user gave none.

The driver claims the folder as long as it uses it, and removes it when the topology ends. If the driver is killed, its workers
remove the folder. If they are all killed together with the driver, as when memory runs out, the folder stays. A later topology of
the same user removes it, if the folder is more than an hour old and the host was not restarted.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

from stormspark.private_files import FolderClaim, is_claimed, is_private
from stormspark.worker.host.launch import own_folder

__all__ = ["scratch_folder"]

_PREFIX = "stormspark-"
#: The name of the file that marks a scratch folder. The file names the host on which the folder was made, and the host's boot id
#: at that time.
_MARK = "host"
_LEAST_AGE_SECS = 3600.0
_ANSWER_SECS = 1.0


def scratch_folder() -> tuple[Path, Callable[[], None]]:
    """Make a new folder, and remove the folders of dead runs. Return the folder, and the function that removes it."""
    folder = own_folder(_PREFIX)
    claim = FolderClaim(folder)

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        claim.close()

    (folder / _MARK).write_text(_this_host(), encoding="utf-8")
    with contextlib.suppress(OSError):
        for other in folder.parent.glob(f"{_PREFIX}*"):
            if other != folder and _is_left_over(other):
                shutil.rmtree(other, ignore_errors=True)
    return folder, remove


def _is_left_over(folder: Path) -> bool:
    """Whether a driver on this host made this folder, and is dead."""
    mark = folder / _MARK
    try:
        # Don't trust a folder that others can write to. Keep a folder that is new, because its driver may not listen on its
        # sockets yet.
        old = is_private(folder) and time.time() - mark.stat().st_mtime > _LEAST_AGE_SECS
        if not old or mark.read_text(encoding="utf-8") != _this_host() or is_claimed(folder):
            return False
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(_ANSWER_SECS)
            sock.connect(str(folder / "nimbus"))
    except (ConnectionRefusedError, FileNotFoundError):
        return mark.exists()
    except (OSError, ValueError):
        return False
    return False


def _this_host() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:  # not Linux
        boot = ""
    return f"{socket.gethostname()} {boot}"
