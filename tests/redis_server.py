"""A real Redis for tests, on a free port of this host.

with RedisServer() as server:
    redis.Redis("127.0.0.1", server.port)
"""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Self

__all__ = ["RedisServer"]

_START_SECS = 30


class RedisServer:
    """One server. It keeps nothing."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")

    @staticmethod
    def missing() -> str | None:
        """What there is not, or None."""
        if importlib.util.find_spec("redis") is None:
            return "redis-py is not installed"
        return None if shutil.which("redis-server") else "redis-server is not on the path"

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [
                "redis-server",
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ],
            cwd=self._folder.name,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + _START_SECS
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                time.sleep(0.02)
        self._process.kill()
        msg = f"Redis did not start within {_START_SECS} s"
        raise RuntimeError(msg)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()
