"""Folders and files that only the user can read: for logs, stories, dead letters, and where a topology keeps its things.

Several users share a temporary folder, so a folder there may have been made by somebody else under the name that we expect.
A private folder belongs to the user and is no link; what we make has mode 0700. Files in it have mode 0600, belong to the user,
and are opened without following links. So in a folder that the user has named, others of a group may do what its mode lets them:
they can remove or hide files, but not read them, and not have others written to.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import pwd
import stat
import sys
import tempfile
from collections.abc import Iterator
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from stormspark.errors import UnsupportedEnvironmentError

__all__ = [
    "PrivateLogFile",
    "check_private",
    "check_trusted",
    "default_log_folder",
    "is_private",
    "make_log_folder",
    "make_private",
    "open_private",
    "user_name",
]

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def default_log_folder() -> Path:
    """Where logs are if ``stormspark.log.dir`` is not set: one place a user, under this host's temporary folder."""
    return Path(tempfile.gettempdir(), f"stormspark-logs-{user_name()}")


def make_log_folder(named: str | None, topology: str = "") -> Path:
    """The folder for logs on this host: the one that the user has named, else the default one, of a topology where it is for one.

    Raises as `make_private` does. The default one is this user's, whoever names the topology: a worker may run as another user
    than its driver.
    """
    if named:
        return make_private(named)
    default = default_log_folder()
    for folder in (default, default / topology):
        _make(folder, ours=True)
    return default / topology


def make_private(folder: str | Path) -> Path:
    """Make a folder for this user alone, with the folders above it that are missing; one that is there is checked.

    One of the user's own stays as it is; only where it is empty, the right to write is taken from others. Raises
    `UnsupportedEnvironmentError`, in one line, for one that belongs to somebody else, for one with something in it that everybody
    can write to, and for a link.
    """
    return _make(folder, ours=False)


def _make(folder: str | Path, *, ours: bool) -> Path:
    """``ours``: its name is one that nobody else uses, so what is there was made by an earlier version of this program."""
    path = Path(os.path.abspath(folder))
    above = next(one for one in path.parents if os.path.lexists(one))
    _check_above(above / path.name)
    for missing in reversed([one for one in (path, *path.parents) if not os.path.lexists(one)]):
        with contextlib.suppress(FileExistsError):  # made meanwhile, by whomever: that is checked below
            os.mkdir(missing, 0o700)
            ours |= missing == path
    with _opened(path) as descriptor:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if ours:
            mode = 0o700
        elif mode & _OTHERS_WRITE and not os.listdir(descriptor):
            mode &= ~_OTHERS_WRITE
        elif mode & stat.S_IWOTH:
            raise _refused(path, f"can be written to by everybody (mode {mode:04o})")
        if mode != stat.S_IMODE(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, mode)
    return path


def check_private(folder: str | Path) -> Path:
    """The folder, if it is this user's and nobody else can write to it.

    Raises `UnsupportedEnvironmentError` where it is not, and `FileNotFoundError` where it does not exist.
    """
    path = Path(os.path.abspath(folder))
    with _opened(path) as descriptor:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & _OTHERS_WRITE:
            raise _refused(path, f"can be written to by others (mode {mode:04o})")
    return path


def is_private(folder: str | Path) -> bool:
    """Whether `check_private` finds it, and is content."""
    try:
        check_private(folder)
    except (OSError, UnsupportedEnvironmentError):
        return False
    return True


def check_trusted(folder: str | Path) -> None:
    """A local folder whose files will be unpickled: it must be the user's own or root's, and not everybody's to write to.

    A folder that does not exist is fine. A group may share one on purpose, and a link to one is followed. Raises
    `UnsupportedEnvironmentError`, in one line.
    """
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        return
    what = None
    if found.st_uid not in (os.geteuid(), 0):
        what = f"belongs to {user_name(found.st_uid)}"
    elif found.st_mode & stat.S_IWOTH:
        what = f"can be written to by everybody (mode {stat.S_IMODE(found.st_mode):04o})"
    if what is not None:
        msg = (
            f"the checkpoint folder {folder} {what}, and what is read from there runs as {user_name(os.geteuid())}: name "
            f"another one, or, if all who can write to it may do that, set stormspark.checkpoint.shared to true"
        )
        raise UnsupportedEnvironmentError(msg)


def open_private(path: str | Path, flags: int = os.O_WRONLY | os.O_CREAT | os.O_APPEND) -> int:
    """A file of this user's alone (mode 0600), as a descriptor; links are not followed.

    Raises `UnsupportedEnvironmentError`, in one line, for what is a link, no regular file, or somebody else's; where it is only
    read, also for what others can write to.
    """
    try:
        # Not blocking: to open a pipe that nobody reads would take for ever.
        # And cut only when it is known whose it is.
        careful = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, careful, 0o600)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise _refused(path, "is a link or a pipe", "a file") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _refused(path, "is no regular file", "a file")
        if found.st_uid != os.geteuid():
            raise _refused(path, f"belongs to {user_name(found.st_uid)}", "a file")
        if found.st_nlink > 1:
            raise _refused(path, "has another name (it is a hard link)", "a file")
        mode = stat.S_IMODE(found.st_mode)
        if flags & os.O_ACCMODE == os.O_RDONLY and mode & _OTHERS_WRITE:
            raise _refused(path, f"can be written to by others (mode {mode:04o})", "a file")
        if mode & 0o077:
            os.fchmod(descriptor, 0o600)
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    os.set_blocking(descriptor, True)
    return descriptor


class PrivateLogFile(RotatingFileHandler):
    """A log file that is rotated, in a private folder."""

    def _open(self) -> TextIOWrapper:
        return TextIOWrapper(open(open_private(self.baseFilename), "ab"), self.encoding, self.errors)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """A file that can't be written to is told to the process's own stderr: `sys.stderr` may be a log that fails likewise."""
        error = sys.exception()
        if not isinstance(error, OSError | UnsupportedEnvironmentError):
            super().handleError(record)
        elif sys.__stderr__ is not None:
            with contextlib.suppress(Exception):  # as logging does; a user's object may raise when it is told
                print(f"{error}; not written: {record.getMessage()!r:.1000}", file=sys.__stderr__)


def user_name(uid: int | None = None) -> str:
    """The name of a user, by default of the one whose rights this process has; its number where it has no name.

    Not from the environment: what it says may be another user's name, after ``sudo`` for one.
    """
    uid = os.geteuid() if uid is None else uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _check_above(path: Path) -> None:
    """No folder above this one may be one that somebody else has made where anybody can.

    A folder that anybody can write to is accepted, with or without the sticky bit: volumes of containers have none.
    """
    for above in path.parents[:-1]:
        found = os.lstat(above)
        anybody = os.stat(above.parent).st_mode & stat.S_IWOTH
        if anybody and found.st_uid not in (os.geteuid(), 0):
            raise _refused(above, f"belongs to {user_name(found.st_uid)}")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    _check_above(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            what = "is a link" if os.path.islink(path) else "is no folder"
            raise _refused(path, what) from error
        if error.errno == errno.EACCES and os.path.lexists(path):
            raise _refused(path, f"belongs to {user_name(os.lstat(path).st_uid)}") from error
        raise
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid():
            raise _refused(path, f"belongs to {user_name(found.st_uid)}")
        yield descriptor
    finally:
        os.close(descriptor)


def _refused(path: str | Path, what: str, kind: str = "a folder") -> UnsupportedEnvironmentError:
    me = user_name()
    expected = "0700" if kind == "a folder" else "0600"
    return UnsupportedEnvironmentError(
        f"{path} {what}: expected {kind} of {me} that nobody else can use (mode {expected}); remove it, or name another folder "
        f"(stormspark.log.dir, stormspark.dead.letter.dir; TMPDIR for all that has no name)"
    )
