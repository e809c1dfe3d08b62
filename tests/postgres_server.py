"""A real PostgreSQL for tests, on a Unix socket in its own folder: no port, no password, no container.

    with PostgresServer() as server:
        sqlalchemy.create_engine(server.url)

It takes ``initdb`` and ``postgres`` from the path; `PostgresServer.missing` says what there is not. PostgreSQL refuses to run as
root. Started by root it runs as the user ``postgres``, or as ``nobody`` where there is no such user.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["PostgresServer"]

_START_SECS = 30
_PROGRAMS = "initdb", "postgres"


class PostgresServer:
    """One server; its data goes with it."""

    def __init__(self) -> None:
        # Sockets need short paths, and its user must be able to come by.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self._process: subprocess.Popen[bytes] | None = None
        self._programs = Path()

    @staticmethod
    def missing() -> str | None:
        """What there is not, or None."""
        if importlib.util.find_spec("psycopg") is None:
            return "psycopg is not installed"
        if _installed() is None:
            return "initdb and postgres are not on the path"
        return None

    @property
    def url(self) -> str:
        """For SQLAlchemy, on this host."""
        return f"postgresql+psycopg://postgres@/postgres?host={self.folder}"

    @property
    def dsn(self) -> str:
        """For psycopg, on this host."""
        return f"host={self.folder} user=postgres dbname=postgres"

    def __enter__(self) -> Self:
        user = _user()
        if user is not None:
            os.chown(self.folder, user, -1)
        programs = _installed()
        assert programs is not None, self.missing()
        self._programs = programs
        options = f"-D {self._data} -A trust -U postgres --no-sync -E UTF8".split()
        command = [str(self._programs / "initdb"), *options]
        subprocess.run(command, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL)
        self.start()
        return self

    def start(self) -> None:
        """Start the server, also after `kill`."""
        log = self.folder / "log"
        options = f"-D {self._data} -k {self.folder} -c listen_addresses= -c shared_buffers=16MB".split()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), *options],
                user=_user(),
                cwd="/",
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        until = time.monotonic() + _START_SECS
        while "ready to accept connections" not in log.read_text():
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill all processes of the server, as a power cut does. What was committed is there after the next `start`."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_START_SECS)
        self._process = None

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # end now, in order
            self._process.wait(_START_SECS)
        shutil.rmtree(self.folder, ignore_errors=True)


def _installed() -> Path | None:
    """The folder of the programs that are on the path."""
    found = [shutil.which(program) for program in _PROGRAMS]
    return None if None in found else Path(str(found[0])).parent


def _user() -> int | None:
    """The user that the server runs as, if root starts it."""
    if os.getuid() != 0:
        return None
    for name in "postgres", "nobody":
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    return None
