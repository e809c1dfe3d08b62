"""Serves the REST API of a driver on a Unix socket of its user, and on a port if the topology asks for one.

Starlette and uvicorn speak HTTP. The server has a thread of its own with an event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time
from typing import Any

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.operations.access import TokenRequired, new_token
from stormspark.operations.application import app
from stormspark.operations.client import Client
from stormspark.operations.connections import limited_server
from stormspark.operations.controls import Controls
from stormspark.operations.facts import Watcher
from stormspark.operations.operable import Operable, Served
from stormspark.operations.registry import Registration
from stormspark.operations.status import Status
from stormspark.private_files import user_name
from stormspark.worker.host.addresses import without_brackets

__all__ = ["Server", "serve"]

_log = logging.getLogger(__name__)

_CLOSE_SECS = 2.0
#: What somebody has asked for before the end is answered within this many seconds, or not at all.
_ANSWER_SECS = 1


class Server:
    """Serves a topology until `close`. See `serve`. ``port`` is a socket that is bound to a port, and the token for it."""

    def __init__(
        self,
        registration: Registration,
        served: Served,
        port: tuple[socket.socket, str] | None = None,
    ) -> None:
        self._registration, self._watcher, self._controls = registration, served.watcher, served.controls
        self.served = served
        self._recorder = served.recorder
        self._recorder.begin()
        application = app(served)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(registration.socket)
        os.chmod(registration.socket, 0o600)
        self._servers = {limited_server(application, shutdown_secs=_ANSWER_SECS): listening}
        if port is not None:
            bound, token = port
            guarded = TokenRequired(application, token)
            self._servers[limited_server(guarded, shutdown_secs=_ANSWER_SECS)] = bound
        for one in self._servers.values():
            one.listen()
        self._thread = threading.Thread(target=self._run, name="serves the REST API", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        async def serve_all() -> None:
            await asyncio.gather(*(server.serve(sockets=[one]) for server, one in self._servers.items()))
            for server in self._servers:
                for connection in list(server.server_state.connections):
                    connection.transport.abort()  # nobody reads its answer
            await asyncio.sleep(0)  # aborted connections close in the loop's next step

        try:
            with contextlib.suppress(asyncio.CancelledError):
                asyncio.run(serve_all())
        finally:
            for one in self._servers.values():
                one.close()

    def call(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """Carry out a call for somebody who can't connect, and return the status of HTTP and the answer."""
        return Client(self._registration.entry).send(method, path, body)

    @property
    def was_killed(self) -> bool:
        """Whether somebody has killed the topology by the API."""
        return self._controls.status is Status.KILLED

    def close(self) -> None:
        """Answer what has been asked, then end."""
        self._registration.leave()
        self._watcher.close()
        self._recorder.close()
        self.served.levels.close()
        for server in self._servers:
            server.should_exit = True
        self._thread.join(_CLOSE_SECS)


def serve(running: Operable, *, engine: str, active: bool, checkpoint: str | None) -> Server | None:
    """Let commands on this host find a topology and ask for things, until `Server.close`.

    If the socket can't be made, say so in the log and return None: the topology itself does without it. Raises
    `UnsupportedEnvironmentError` if the port that the topology asks for can't be had.
    """
    began, settings = time.time(), running.plan.settings
    port = None if settings.ui_port is None else _bound(settings.ui_host, settings.ui_port)
    token = None if port is None else new_token()
    try:
        registration = Registration(running.name)
        controls = Controls(
            running, settings.message_timeout_secs, active=active, on_kill=registration.note_kill
        )
        watcher = Watcher(running, lambda: controls.status, user_name(os.geteuid()))
        asked = None if port is None or token is None else (port, token)
        server = Server(registration, Served(running, watcher, controls), asked)
        url = None if port is None else _url(port)
        registration.enter(running.storm_id, engine, began, checkpoint, running.log_folder, url, token)
    except (OSError, UnsupportedEnvironmentError) as problem:
        if port is not None:
            port.close()
        _log.warning(
            "%s: `stormspark list` and `kill` will not find this topology: %s", running.name, problem
        )
        return None
    return server


def _bound(host: str, port: int) -> socket.socket:
    listening = None
    try:
        family, *_, address = socket.getaddrinfo(without_brackets(host), port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except (OSError, OverflowError) as error:
        if listening is not None:
            listening.close()
        msg = (
            f"the REST API can't have the port {port} of {host} ({getattr(error, 'strerror', None) or error}): set "
            f"stormspark.ui.port to another one, or to 0 for any, and stormspark.ui.host to an address of this host"
        )
        raise UnsupportedEnvironmentError(msg) from error
    return listening


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/api/v1"
