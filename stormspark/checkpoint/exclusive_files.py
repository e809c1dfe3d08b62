"""Gives a file that was written whole its name, if no other file has the name."""

from __future__ import annotations

import errno
import os
from pathlib import Path

__all__ = ["take_name"]

#: Error codes of a file system that has no hard links.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def take_name(new: Path, path: Path) -> None:
    """Give the file ``new`` the name ``path``. Raises FileExistsError if a file has it. The caller removes ``new`` if it is left.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "new").write_text("whole")
    >>> take_name(folder / "new", folder / "1.arrow")
    >>> (folder / "1.arrow").read_text()
    'whole'
    """
    try:
        os.link(new, path)  # unlike a rename it replaces nothing
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        new.replace(path)
