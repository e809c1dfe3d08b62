"""A real PostgreSQL for tests, on a Unix socket in its own folder: no port, no password, no container.

    with PostgresServer() as server:
        sqlalchemy.create_engine(server.url)

It needs ``initdb`` and ``postgres`` on the path, and psycopg: `PostgresServer.missing` says what there is not.
Started by root it runs as the user ``postgres``, since it refuses to be root's.
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


class PostgresServer:
    """One server; its data goes with it."""

    def __init__(self) -> None:
        # Sockets need short paths, and its user must be able to come by.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def missing() -> str | None:
        """What there is not, or None."""
        for program in "initdb", "postgres":
            if shutil.which(program) is None:
                return f"{program} is not on the path"
        if importlib.util.find_spec("psycopg") is None:
            return "psycopg is not installed"
        try:
            _user()
        except KeyError:
            return "there is no user postgres for it to run as"
        return None

    @property
    def url(self) -> str:
        """For SQLAlchemy, on this host."""
        return f"postgresql+psycopg://postgres@/postgres?host={self.folder}"

    def __enter__(self) -> Self:
        user = _user()
        if user is not None:
            os.chown(self.folder, user, -1)
        data = self.folder / "data"
        common = {"user": user, "cwd": "/", "stdout": subprocess.DEVNULL}
        subprocess.run(
            ["initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"], check=True, **common
        )  # type: ignore[call-overload]  # fmt: skip
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=", "-c", "shared_buffers=16MB"],
                **common | {"stdout": log, "stderr": log},
            )  # type: ignore[call-overload]  # fmt: skip
        until = time.monotonic() + _START_SECS
        while "ready to accept connections" not in (self.folder / "log").read_text():
            assert time.monotonic() < until, (self.folder / "log").read_text()
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # end now, in order
            self._process.wait(_START_SECS)
        shutil.rmtree(self.folder, ignore_errors=True)


def _user() -> int | None:
    return pwd.getpwnam("postgres").pw_uid if os.getuid() == 0 else None
