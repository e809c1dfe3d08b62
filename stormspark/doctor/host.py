"""Checks of this host: its folders, its disk, its descriptors and its network."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import shutil
import socket
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from stormspark.doctor.result import Result, Status
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.launcher import is_url
from stormspark.private_files import LONGEST_FOR_SOCKETS, drivers_log_folder, folder_for_sockets, user_name

__all__ = [
    "check_checkpoint",
    "check_descriptors",
    "check_disk",
    "check_home",
    "check_host_name",
    "check_logs",
    "check_ports",
    "check_temporary",
    "own_address",
]

#: With less space than this, a topology can't run, and with less than that, not for long.
_LEAST_BYTES, _LOW_BYTES = 64 << 20, 1 << 30
#: A driver has that many connections, files and pipes, most of them of its JVM: with 256, that opens too few of its jars.
_LEAST_DESCRIPTORS, _LOW_DESCRIPTORS = 512, 4096
#: Where temporary files are if nothing else is said. Java knows no other place.
_USUAL_TEMPORARY = "/tmp"


def check_temporary() -> Result:
    """Can a temporary file be written? Everything needs that."""
    try:
        folder = tempfile.gettempdir()
    except OSError as error:
        return Result(
            "temporary folder",
            Status.FAILED,
            f"there is none that can be written to ({error.strerror})",
            "set TMPDIR to a folder on a local disk with space left",
        )
    if (instead := _taken_instead(folder)) is not None:
        return Result(
            "temporary folder",
            Status.WARNING,
            instead,
            "set TMPDIR to a folder on a local disk with space left",
        )
    if (why := _why_not_written(Path(folder))) is not None:
        return Result(
            "temporary folder",
            Status.FAILED,
            f"{folder} can't be written to ({why})",
            "set TMPDIR to a folder on a local disk with space left",
        )
    if (sockets := folder_for_sockets()) == folder:
        return Result("temporary folder", Status.OK, folder)
    if (why := _why_not_written(Path(sockets))) is not None:
        return Result(
            "temporary folder",
            Status.FAILED,
            f"{folder} is too long a name for sockets below it, and {sockets}, where they would go, can't be written to ({why})",
            f"set TMPDIR to a folder with a name of at most {LONGEST_FOR_SOCKETS} characters",
        )
    return Result(
        "temporary folder", Status.OK, f"{folder} (for sockets {sockets}, because that name is long)"
    )


def _taken_instead(folder: str) -> str | None:
    """Say which folder should have been the temporary one, if ``folder`` is not it. Python takes the next one without a word.

    Java takes the same one, because stormspark tells it (`stormspark.spark.jvm`).
    """
    given = os.environ.get("TMPDIR")
    wanted, named = (given, f"TMPDIR={given}") if given else (_USUAL_TEMPORARY, _USUAL_TEMPORARY)
    if os.path.realpath(wanted) == os.path.realpath(folder):
        return None
    why = "it is no folder" if not os.path.isdir(wanted) else _why_not_written(Path(wanted))
    if why is None:
        return None  # TEMP or TMP names the other one
    here = ", which is the working directory," if os.path.realpath(folder) == os.path.realpath(".") else ""
    return f"{named} can't be written to ({why}), so {folder}{here} is taken"


def check_home(environment: Mapping[str, str] | None = None, javas: Path | None = None) -> Result:
    """Has this user a name, which Java asks for, and can the home be written to? Spark keeps the jars there that it fetches.

    Java takes the home of ``/etc/passwd`` (``javas``), whatever HOME says. stormspark notes below HOME which jars were fetched.
    """
    if (user := user_name()) == str(os.geteuid()):
        return Result(
            "home",
            Status.FAILED,
            f"this program runs as user {user}, who has no name on this host, and Spark does not start without one",
            "run as a user of /etc/passwd, or add this one to it, with a home that can be written to, before the program starts",
        )
    given = os.environ if environment is None else environment
    javas = javas or Path(pwd.getpwuid(os.geteuid()).pw_dir)
    home = Path(given.get("HOME") or javas)
    another = "" if home == javas else f" (Java takes the home of /etc/passwd, and not HOME={home})"
    if (why := _why_no_home(javas)) is not None:
        return Result(
            "home",
            Status.WARNING,
            f"{javas} {why}, so Spark can't keep the jars that it fetches{another}",
            "give Spark another folder for jars, -c spark.jars.ivy=DIR, and set XDG_CACHE_HOME to one that can be written to",
        )
    if another and (why := _why_no_home(home)) is not None:
        return Result(
            "home",
            Status.WARNING,
            f"HOME={home} {why}, so nothing notes which jars Spark has fetched, and each start looks for them again",
            "set XDG_CACHE_HOME to a folder that can be written to",
        )
    return Result("home", Status.OK, str(javas))


def _why_no_home(folder: Path) -> str | None:
    there, why = _what_is_at(folder)
    if why is None and (there is None or not stat.S_ISDIR(there)):
        return "is no folder"
    why = why or _why_not_written(folder)
    return None if why is None else f"can't be written to ({why})"


def check_logs(named: str | None = None) -> Result:
    """Can logs be written? ``named`` is ``stormspark.log.dir``."""
    try:
        folder = drivers_log_folder(named, "doctor")
    except UnsupportedEnvironmentError as error:
        text, _, advice = str(error).rpartition(": ")
        return Result("logs", Status.FAILED, text or str(error), advice if text else "")
    with contextlib.suppress(OSError):
        if not named:
            folder.rmdir()
            folder = folder.parent
    return Result("logs", Status.OK, str(folder))


def check_disk(folders: Mapping[str, Path] | None = None) -> Result:
    """Is there space left where topologies write?"""
    wanted = folders if folders is not None else _written_to()
    shown, worst = [], Status.OK
    for what, folder in wanted.items():
        try:
            free = shutil.disk_usage(folder).free
            files = os.statvfs(folder)
        except OSError:
            continue  # another check tells it
        no_files = files.f_files > 0 and files.f_favail == 0
        status = (
            Status.FAILED
            if free < _LEAST_BYTES or no_files
            else Status.WARNING
            if free < _LOW_BYTES
            else Status.OK
        )
        if status is Status.FAILED or (status is Status.WARNING and worst is Status.OK):
            worst = status
        space = f"{free >> 20:,} MB free" if free < 10 << 30 else f"{free >> 30:,} GB free"
        shown.append(f"{what} {folder}: {'no more files (inodes)' if no_files else space}")
    advice = (
        ""
        if worst is Status.OK
        else "free some space, or name other folders: TMPDIR, -c stormspark.log.dir=DIR"
    )
    return Result("disk", worst, "; ".join(shown), advice)


def check_descriptors(limits: tuple[int, int] | None = None) -> Result:
    """How many files may a process open? stormspark raises the soft limit itself, up to the hard one.

    >>> print(check_descriptors((64, 128)).found)
    a process may have 128 file descriptors, which is too few for a driver with a worker
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE) if limits is None else limits
    advice = "raise the hard limit (ulimit -Hn 65536, LimitNOFILE= of a systemd unit, --ulimit nofile=65536 of a container)"
    if hard == resource.RLIM_INFINITY or hard >= _LOW_DESCRIPTORS:
        shown = "unlimited" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        return Result("descriptors", Status.OK, f"{soft:,}, and up to {shown} if needed")
    text = f"a process may have {hard} file descriptors, which is "
    if hard < _LEAST_DESCRIPTORS:
        return Result("descriptors", Status.FAILED, f"{text}too few for a driver with a worker", advice)
    return Result("descriptors", Status.WARNING, f"{text}too few for a driver with many workers", advice)


def check_ports() -> Result:
    """Can a process of this host listen, and another one connect to it?"""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=10).close()
    except OSError as error:
        return Result(
            "ports",
            Status.FAILED,
            f"a process can't listen on 127.0.0.1 and be reached there ({error})",
            "bring the loopback interface up (ip link set lo up), and let it through the firewall",
        )
    return Result("ports", Status.OK, "a process can listen on 127.0.0.1, and be reached there")


def own_address() -> str | None:
    """Return the address of this host's name. Some containers' names have none, and then Spark does not start by itself."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except (OSError, UnicodeError):  # a part of a name has at most 63 characters, and Linux allows one of 64
        return None


def check_host_name() -> Result:
    """Does this host know its own name? Spark asks for it when it starts."""
    name, address = socket.gethostname(), own_address()
    if address is None:
        if (address := os.environ.get("SPARK_LOCAL_IP", "")) != "":
            return Result("host name", Status.OK, f"{name} (SPARK_LOCAL_IP={address})")
        return Result(
            "host name",
            Status.WARNING,
            f"this host's name {name} has no address, and without one Spark only starts with a local master",
            "add it to /etc/hosts, or set SPARK_LOCAL_IP to an address of this host that the executors reach",
        )
    if address.startswith("127."):
        return Result(
            "host name",
            Status.NOTE,
            f"this host's name {name} has the address {address}, by which no other host reaches it",
            "for executors on other hosts: -c spark.driver.host=ADDRESS",
        )
    return Result("host name", Status.OK, f"{name} ({address})")


def check_checkpoint(folder: str | None) -> Result | None:
    """Can the checkpoint folder be written to? None if there is none, or if it is a URL, which Spark knows."""
    if folder is None or is_url(folder):
        return None
    path = Path(os.path.abspath(folder))
    for above in (path, *path.parents):
        there, why = _what_is_at(above)
        if there is None and why is None:
            continue  # a topology makes it
        if there is not None and not stat.S_ISDIR(there):
            return Result("checkpoint", Status.FAILED, f"{above} is a file", "name a folder")
        why = why or _why_not_written(above)
        if why is not None:
            return Result(
                "checkpoint",
                Status.FAILED,
                f"{above} can't be written to ({why})",
                "name a folder that this user may write to, on all hosts if there are several",
            )
        break
    return Result("checkpoint", Status.OK, str(path))


def _what_is_at(path: Path) -> tuple[int | None, str | None]:
    """Return the mode of what is there, None if there is nothing; and why nobody can look, such as in a folder of somebody else.

    Of `Path.exists` and `Path.is_dir` it depends on the Python whether they raise an error then.
    """
    try:
        return os.stat(path).st_mode, None
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as error:
        return None, error.strerror


def _written_to() -> dict[str, Path]:
    folders = {"home": Path(os.path.expanduser("~"))}
    with contextlib.suppress(OSError):
        folders = {"temporary folder": Path(tempfile.gettempdir()), **folders}
    return folders


def _why_not_written(folder: Path) -> str | None:
    """Write a file, and return why that fails. What `os.access` says of root is not true of a read-only or a full disk."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=".stormspark-doctor-", dir=folder)
    except OSError as error:
        return error.strerror
    try:
        os.write(descriptor, b"?" * 4096)
        os.fsync(descriptor)
    except OSError as error:
        return error.strerror
    finally:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(name)
    return None
