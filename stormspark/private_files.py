"""Private folders and files, which only the user can read: for logs, stories, dead letters and `topology.json`.

Several users share a temporary folder, so somebody else may have made a folder there under the name that stormspark expects. A
private folder belongs to the user and is no link. If stormspark makes it, it has mode 0700. Files in it have mode 0600, belong to
the user, and are opened without following links. If the user has named a folder, the members of its group may be allowed to
remove or hide files in it. But they can't read these files, and can't make stormspark write to other files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import pwd
import stat
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.working_folder import from_start

__all__ = [
    "LONGEST_FOR_SOCKETS",
    "SHORT_FOLDER",
    "FolderClaim",
    "HeldFolder",
    "PrivateLogFile",
    "check_private",
    "check_trusted",
    "claim_logs",
    "default_log_folder",
    "drivers_log_folder",
    "folder_for_sockets",
    "is_claimed",
    "is_private",
    "make_log_folder",
    "make_private",
    "open_private",
    "user_name",
]

_log = logging.getLogger(__name__)

#: The longest name of a temporary folder below which sockets can be, in bytes. Linux limits the path of a socket to 107 bytes.
LONGEST_FOR_SOCKETS = 50
#: Where sockets are if the name of the temporary folder is longer.
SHORT_FOLDER = "/tmp"

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def default_log_folder() -> Path:
    """Return the folder for logs if ``stormspark.log.dir`` is not set: one per user, under this host's temporary folder."""
    return Path(tempfile.gettempdir(), f"stormspark-logs-{user_name()}")


def folder_for_sockets() -> str:
    """Return the folder in which processes make folders for their sockets: the temporary folder, unless its name is too long.

    Python takes the folder in which a process runs if it can write to no other one. On YARN its name is long.
    """
    temporary = tempfile.gettempdir()
    return temporary if len(os.fsencode(temporary)) <= LONGEST_FOR_SOCKETS else SHORT_FOLDER


def make_log_folder(named: str | None, topology: str = "") -> Path:
    """Make the folder for logs on this host: the one that the user has named, or else the default one.

    Inside the default folder, ``topology`` gets a folder of its own. The default folder has the name of this process's user,
    because a worker may run as another user than its driver. Raises the errors of `make_private`.
    """
    if named:
        return make_private(from_start(named))
    default = default_log_folder()
    for folder in (default, default / topology):
        _make(folder, ours=True)
    return default / topology


def drivers_log_folder(named: str | None, topology: str) -> Path:
    """Make the folder for a driver's logs as `make_log_folder` does. Raises `UnsupportedEnvironmentError` if that fails."""
    with _usable_logs():
        folder = make_log_folder(named, topology)
        if named:
            _try_to_append(folder)
        return folder


def _try_to_append(folder: Path) -> None:
    """Raise OSError if files in the folder can't be appended to, as in volumes of Databricks: logs grow while a topology runs."""
    file = folder / f".tried-{os.getpid()}"
    try:
        for _ in range(2):
            with open(open_private(file), "ab") as opened:
                opened.write(b"?")
    finally:
        file.unlink(missing_ok=True)


@contextlib.contextmanager
def _usable_logs() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"the folder for logs can't be used: {error}. Name one on a disk with space left: -c stormspark.log.dir=DIR"
        raise UnsupportedEnvironmentError(msg) from error


def make_private(folder: str | Path) -> Path:
    """Make a folder for this user alone, with all missing folders above it. If it exists already, check it.

    An existing folder of the user stays as it is. But if the folder is empty, the function removes others' right to write to it.
    Raises `UnsupportedEnvironmentError`, with a message of one line, for a folder of somebody else, for a link, and for a folder
    that is not empty and that everybody can write to.
    """
    return _make(folder, ours=False)


def _make(folder: str | Path, *, ours: bool) -> Path:
    """Make or check a private folder. ``ours`` means that only stormspark uses the folder, so its mode may be corrected."""
    path = Path(os.path.abspath(folder))
    above = next(one for one in path.parents if os.path.lexists(one))
    _check_above(above / path.name)
    for missing in reversed([one for one in (path, *path.parents) if not os.path.lexists(one)]):
        with contextlib.suppress(FileExistsError):  # somebody has made it meanwhile, which is checked below
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
    """Return the folder if it belongs to this user and nobody else can write to it.

    Raises `UnsupportedEnvironmentError` for any other folder, and `FileNotFoundError` if there is no such folder.
    """
    path = Path(os.path.abspath(folder))
    with _opened(path) as descriptor:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & _OTHERS_WRITE:
            raise _refused(path, f"can be written to by others (mode {mode:04o})")
    return path


def is_private(folder: str | Path) -> bool:
    """Return whether the folder exists and passes `check_private`."""
    try:
        check_private(folder)
    except (OSError, UnsupportedEnvironmentError):
        return False
    return True


def check_trusted(folder: str | Path) -> None:
    """Check a local folder whose files will be unpickled: it must belong to the user or root, and not be writable by everybody.

    A folder that does not exist is fine. A group may share a folder on purpose, and links are followed. Raises
    `UnsupportedEnvironmentError`, with a message of one line.
    """
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        return
    danger = None
    if found.st_uid not in (os.geteuid(), 0):
        danger = f"belongs to {user_name(found.st_uid)}"
    elif found.st_mode & stat.S_IWOTH:
        danger = f"can be written to by everybody (mode {stat.S_IMODE(found.st_mode):04o})"
    if danger is not None:
        msg = (
            f"the checkpoint folder {folder} {danger}, but code that is read from there runs as {user_name(os.geteuid())}: name "
            f"another folder, or set stormspark.checkpoint.shared to true if everybody who can write to it may run such code"
        )
        raise UnsupportedEnvironmentError(msg)


def open_private(path: str | Path, flags: int = os.O_WRONLY | os.O_CREAT | os.O_APPEND) -> int:
    """Open a file that only this user can use (mode 0600), without following links. Return its descriptor.

    Raises `UnsupportedEnvironmentError`, with a message of one line, for a link, for anything but a regular file, for a file with
    another hard link, and for a file of somebody else. If ``flags`` open the file for reading only, a file that others can write
    to raises the same error.
    """
    try:
        # Don't block: opening a pipe that nobody reads would take for ever.
        # Truncate the file only once its owner is known.
        careful = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, careful, 0o600)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise _refused(path, "is a link or a pipe", "a file") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _refused(path, "is not a regular file", "a file")
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
    """A rotated log file in a private folder."""

    def _open(self) -> TextIOWrapper:
        return TextIOWrapper(open(open_private(self.baseFilename), "ab"), self.encoding, self.errors)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Report a failed write to the process's own stderr, because `sys.stderr` may be a log that can't be written, too."""
        error = sys.exception()
        if not isinstance(error, OSError | UnsupportedEnvironmentError):
            super().handleError(record)
        elif sys.__stderr__ is not None:
            with contextlib.suppress(Exception):  # as logging does; formatting a user's object may raise
                print(f"{error}; not written: {record.getMessage()!r:.1000}", file=sys.__stderr__)


class HeldFolder:
    """Keeps cleaners of temporary folders from a folder and what is in it, until `close`, or until the process ends.

    systemd-tmpfiles removes from ``/tmp`` what nobody has used for some days, on many systems ten, also a log that a process has
    open. It leaves out a folder that has a lock. Any number of processes may hold a folder. Where it can't be locked, nothing
    happens.
    """

    def __init__(self, folder: str | Path) -> None:
        self._close: Callable[[], object] = object
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._close = weakref.finalize(self, os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def close(self) -> None:
        """Hold the folder no longer."""
        self._close()


class FolderClaim:
    """Notes that this process writes into a folder, until `close`, or until the process ends, and holds the folder.

    ``other`` is the pid of another process that has noted the same on this host; 0 if it is unknown, and None if there is none.
    Raises the errors of `open_private`.
    """

    def __init__(self, folder: str | Path) -> None:
        self.other: int | None = None
        descriptor = open_private(Path(folder, ".in-use"), os.O_RDWR | os.O_CREAT)
        self._held = HeldFolder(folder)
        self._close = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):  # otherwise the file system has no locks
                text = os.pread(descriptor, 20, 0).decode(errors="replace")
                self.other = int(text) if text.isdecimal() else 0
            self._close()
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        """Note that this process no longer writes into the folder."""
        self._close()
        self._held.close()


def is_claimed(folder: str | Path) -> bool:
    """Return whether a process that lives has claimed the folder; false if the file system has no locks."""
    with contextlib.suppress(OSError, UnsupportedEnvironmentError):
        claim = FolderClaim(folder)
        claim.close()
        return claim.other is not None
    return False


def claim_logs(folder: str | Path, topology: str) -> FolderClaim:
    """Claim the folder for the logs of a topology. Log a warning if another process, or another topology, writes there.

    Raises `UnsupportedEnvironmentError` if nothing can be written there.
    """
    with _usable_logs():
        claim = FolderClaim(folder)
    if claim.other is not None:
        _log.warning(
            "%s writes its logs to %s, to which %s writes, too: lines get mixed, and some may be lost when a file is full; give "
            "each topology a folder of its own (-c stormspark.log.dir=DIR)",
            topology,
            folder,
            "another topology of this process"
            if claim.other == os.getpid()
            else f"process {claim.other or 'unknown'}",
        )
    return claim


def user_name(uid: int | None = None) -> str:
    """Return the name of a user, or the user's number if it has no name. The default is the user whose rights this process has.

    The name does not come from the environment, which may name another user, for example after ``sudo``.
    """
    uid = os.geteuid() if uid is None else uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _check_above(path: Path) -> None:
    """Reject a path that leads through somebody else's folder, if anybody could have made this folder there.

    A folder that anybody can write to is accepted, with or without the sticky bit, because container volumes don't have that bit.
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
            problem = "is a link" if os.path.islink(path) else "is not a folder"
            raise _refused(path, problem) from error
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


def _refused(path: str | Path, problem: str, kind: str = "a folder") -> UnsupportedEnvironmentError:
    me = user_name()
    expected = "0700" if kind == "a folder" else "0600"
    return UnsupportedEnvironmentError(
        f"{path} {problem}: expected {kind} of {me} that nobody else can use (mode {expected}); remove it, or name another "
        f"folder (stormspark.log.dir, stormspark.dead.letter.dir; TMPDIR for the default folders)"
    )
