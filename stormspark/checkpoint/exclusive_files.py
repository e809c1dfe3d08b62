"""Writes files whole or not at all, and gives a file a name only if no other file has it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from pathlib import Path

__all__ = ["take_name", "write_whole"]

#: Error codes of a file system that has no hard links.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def write_whole(path: Path, data: bytes, *, replace: bool, shared: bool = False) -> None:
    """Write a file, whole or not at all, and make its folder. The contents are on disk when this returns. A process that is
    killed meanwhile leaves a file whose name begins with a dot and ends with ``.new``.

    Without ``replace``, raises FileExistsError if there is a file already. If it is ``shared``, whoever may read the folder may
    read the file, whatever the umask is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}-{uuid.uuid4().hex}.new")
    try:
        with new.open("wb") as file:
            file.write(data)
            if shared:
                rights = stat.S_IMODE(os.fstat(file.fileno()).st_mode) | path.parent.stat().st_mode & 0o444
                os.fchmod(file.fileno(), rights)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            new.replace(path)
        else:
            take_name(new, path)
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


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
