"""The topologies that a user runs on this host: a file and a Unix socket for each driver, in a folder of the user.

The folder has the same name whatever ``TMPDIR`` is, because commands come from other shells. Its socket shows whether a driver
lives; its file says what ran there, also after a ``kill -9``. A driver that ends in order removes both. What is to be found of a
topology after its end is in its log folder (`stormspark.spark.whereabouts`).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path

from stormspark.errors import TopologyNotAliveError, UnsupportedEnvironmentError
from stormspark.likely_names import nearest
from stormspark.private_files import SHORT_FOLDER, HeldFolder, check_private, make_private, open_private
from stormspark.worker.host.lifeline import is_alive, this_process
from stormspark.worker.host.messages import ProcessId

__all__ = ["STARTED_AS", "SUPERVISED_BY", "Entry", "Registration", "entries", "entry_of", "registry_folder"]

#: The variable with a random name for a driver, by which its starter finds it.
STARTED_AS = "STORMSPARK_STARTED_AS"
#: The variable with the process that starts a driver again when it dies: its pid, and when it began (`ProcessId.started`).
SUPERVISED_BY = "STORMSPARK_SUPERVISED_BY"
#: A driver that was killed is listed for a week after the next one was started, in seconds.
_KEPT_SECS = 7 * 86_400.0


@dataclass(frozen=True)
class Entry:
    """A driver: its topology, that topology's Storm id, the process, and when the topology began, in seconds since 1970.

    ``url`` and ``token`` are those of the REST API on a port, if the topology has one.
    """

    topology: str
    id: str
    engine: str
    host: str
    pid: int
    started: int
    began: float
    checkpoint: str | None
    log_folder: str | None
    socket: str
    url: str | None = None
    token: str | None = None
    #: What `STARTED_AS` was for the driver, by which whoever started it in the background finds it.
    started_as: str | None = None
    #: Whether a command has killed the topology, so that nobody starts it again if its driver dies before it has ended.
    killed: bool = False
    #: What `SUPERVISED_BY` was for the driver.
    supervised_by: str | None = None
    #: When a later driver has found this one dead.
    found_dead: float | None = None

    @property
    def lives(self) -> bool:
        """Whether the driver's process runs."""
        return is_alive(ProcessId(self.host, self.pid, self.started))

    @property
    def file(self) -> Path:
        """The file that says all this."""
        return Path(self.socket).with_suffix(".json")

    def end_supervisor(self) -> int | None:
        """Let nobody start the driver again. Return the pid of the supervisor that would have; None if none lives."""
        pid, _, started = (self.supervised_by or "").partition(" ")
        if not (pid.isdecimal() and started.isdecimal()):
            return None
        if not is_alive(ProcessId(self.host, int(pid), int(started))):
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGTERM)
        return int(pid)

    def forget(self) -> None:
        """Remove the file and the socket."""
        for path in (self.file, Path(self.socket)):
            path.unlink(missing_ok=True)


def registry_folder() -> Path:
    """Return the folder for the drivers of this user. It may not exist."""
    place = SHORT_FOLDER if os.access(SHORT_FOLDER, os.W_OK | os.X_OK) else tempfile.gettempdir()
    return Path(place, f"stormspark-{os.geteuid()}")


class Registration:
    """The place of one driver in the registry. Making it makes the folder, and removes what dead drivers have left: those of the
    same topology, and those that were found dead a week ago. `enter` writes the file.

    Raises `UnsupportedEnvironmentError` if the folder belongs to somebody else, and OSError if it can't be made.
    """

    def __init__(self, topology: str) -> None:
        self._topology = topology
        folder = make_private(registry_folder())
        self._held = HeldFolder(folder)
        for one in [one for one in entries() if not one.lives]:
            if one.topology == topology or (one.found_dead or inf) < time.time() - _KEPT_SECS:
                one.forget()
            elif one.found_dead is None:
                with contextlib.suppress(OSError):  # the disk may be full
                    self._write(replace(one, found_dead=time.time()))
        #: The path of the socket, which is short whatever the topology is called.
        self.socket = str(folder / f"{os.getpid()}-{secrets.token_hex(4)}.sock")
        self._entry: Entry | None = None

    def enter(
        self,
        id: str,
        engine: str,
        began: float,
        checkpoint: str | None,
        log_folder: str | None,
        url: str | None = None,
        token: str | None = None,
    ) -> None:
        """Let commands find this driver."""
        me = this_process()
        entry = self._entry = Entry(
            self._topology,
            id,
            engine,
            me.host,
            me.pid,
            me.started,
            began,
            checkpoint,
            log_folder,
            self.socket,
            url,
            token,
            os.environ.get(STARTED_AS),
            supervised_by=os.environ.get(SUPERVISED_BY),
        )
        self._write(entry)

    def note_kill(self) -> None:
        """Note that a command has killed the topology."""
        if self._entry is not None:
            with contextlib.suppress(OSError):  # the disk may be full; the kill itself does not need the note
                self._write(replace(self._entry, killed=True))

    @staticmethod
    def _write(entry: Entry) -> None:
        new = entry.file.with_suffix(".new")
        with open(open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            json.dump(asdict(entry), file)
        new.replace(entry.file)

    @property
    def entry(self) -> Entry:
        """What is known of this driver, once it has entered."""
        assert self._entry is not None
        return self._entry

    def leave(self) -> None:
        """Remove the driver from the registry."""
        entry, self._entry = self._entry, None
        if entry is not None:
            entry.forget()
        Path(self.socket).unlink(missing_ok=True)
        self._held.close()


def entries() -> list[Entry]:
    """Return all drivers of this user on this host, also dead ones, in the order in which their topologies began.

    Raises `UnsupportedEnvironmentError` if the folder belongs to somebody else.
    """
    folder = registry_folder()
    try:
        check_private(folder)
    except FileNotFoundError:
        return []
    found = []
    for file in folder.glob("*.json"):
        # One may go meanwhile, or come from a version with other fields.
        with contextlib.suppress(OSError, ValueError, TypeError, UnsupportedEnvironmentError):
            found.append(_read(file))
    return sorted(found, key=lambda one: one.began)


def _read(file: Path) -> Entry:
    with open(open_private(file, os.O_RDONLY), encoding="utf-8") as opened:
        return Entry(**json.load(opened))


def entry_of(name: str) -> Entry:
    """Return the driver of a topology, by the topology's name or id. The driver may be dead.

    Raises `TopologyNotAliveError` if there is none, or if several drivers run topologies of that name.
    """
    known = entries()
    found = [one for one in known if name in (one.topology, one.id)]
    alive = [one for one in found if one.lives]
    if len(alive) > 1:
        ids = ", ".join(one.id for one in alive)
        msg = f"{len(alive)} topologies of the name {name!r} run on this host: say which one by its id, one of {ids}"
        raise TopologyNotAliveError(msg)
    if not found:
        running = [one.topology for one in known if one.lives]
        others = f"; there {'is' if len(running) == 1 else 'are'} {', '.join(running)}" if running else ""
        msg = f"this user runs no topology {name!r} on this host{nearest(name, running) or others}"
        raise TopologyNotAliveError(msg)
    return (alive or found)[-1]
