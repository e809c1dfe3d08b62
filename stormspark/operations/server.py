"""The REST API of a driver: Storm's calls (J8) about the one topology that it runs, on a Unix socket of its user.

Starlette and uvicorn speak HTTP. The server has a thread of its own with an event loop; what a call asks of the topology runs
there, too, so it must not take long.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time
from http import HTTPStatus
from typing import Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from stormspark.errors import StatusError, UnsupportedEnvironmentError
from stormspark.metrics.windows import ALL_TIME, WINDOWS
from stormspark.operations import storm_cluster
from stormspark.operations.access import TokenRequired, new_token
from stormspark.operations.controls import Controllable, Controls
from stormspark.operations.facts import Watched, Watcher
from stormspark.operations.registry import Registration
from stormspark.operations.status import Action, Status
from stormspark.operations.storm_api import error, operation, summaries, topology_page, workers
from stormspark.private_files import user_name

__all__ = ["Operable", "Server", "app", "serve"]

_log = logging.getLogger(__name__)

_CLOSE_SECS = 2.0


class Operable(Controllable, Watched, Protocol):
    """A running topology of either engine."""

    @property
    def log_folder(self) -> str | None:
        """The folder with the logs of tasks on this host."""


class _Api:
    """The calls. Each takes a request and returns a response."""

    def __init__(self, watcher: Watcher, controls: Controls, topology_id: str) -> None:
        self._watcher, self._controls, self._id = watcher, controls, topology_id

    def routes(self) -> list[Route]:
        """Where each call is."""
        posts = {
            "activate": self.activate,
            "deactivate": self.deactivate,
            "kill/{wait}": self.kill,
        }
        return [
            Route("/api/v1/cluster/summary", self.cluster, methods=["GET"]),
            Route("/api/v1/supervisor/summary", self.supervisors, methods=["GET"]),
            Route("/api/v1/nimbus/summary", self.nimbuses, methods=["GET"]),
            Route("/api/v1/history/summary", self.history, methods=["GET"]),
            Route("/api/v1/topology/summary", self.summary, methods=["GET"]),
            Route("/api/v1/topology/{id}", self.topology, methods=["GET"]),
            Route("/api/v1/topology-workers/{id}", self.workers, methods=["GET"]),
            *(
                Route(f"/api/v1/topology/{{id}}/{path}", call, methods=["POST"])
                for path, call in posts.items()
            ),
        ]

    async def cluster(self, request: Request) -> Response:
        """``GET cluster/summary``."""
        return JSONResponse(storm_cluster.cluster(self._watcher.facts()))

    async def supervisors(self, request: Request) -> Response:
        """``GET supervisor/summary``."""
        return JSONResponse(storm_cluster.supervisors(self._watcher.facts()))

    async def nimbuses(self, request: Request) -> Response:
        """``GET nimbus/summary``."""
        return JSONResponse(storm_cluster.nimbuses(self._watcher.facts(), socket.gethostname()))

    async def history(self, request: Request) -> Response:
        """``GET history/summary``."""
        return JSONResponse(storm_cluster.history(self._watcher.facts()))

    async def summary(self, request: Request) -> Response:
        """``GET topology/summary`` (J9)."""
        return JSONResponse(summaries([self._watcher.facts()]))

    async def topology(self, request: Request) -> Response:
        """``GET topology/:id``, with ``window`` (J10)."""
        self._check(request)
        window = request.query_params.get("window", ALL_TIME)
        if window != ALL_TIME and window not in WINDOWS:
            # As in Storm, where a window that nobody keeps is all time.
            window = ALL_TIME
        return JSONResponse(topology_page(self._watcher.facts(), window))

    async def workers(self, request: Request) -> Response:
        """``GET topology-workers/:id``."""
        self._check(request)
        return JSONResponse(workers(self._watcher.facts()))

    async def activate(self, request: Request) -> Response:
        """``POST topology/:id/activate``."""
        self._check(request)
        self._controls.activate()
        return JSONResponse(operation(self._id, Action.ACTIVATE))

    async def deactivate(self, request: Request) -> Response:
        """``POST topology/:id/deactivate``."""
        self._check(request)
        self._controls.deactivate()
        return JSONResponse(operation(self._id, Action.DEACTIVATE))

    async def kill(self, request: Request) -> Response:
        """``POST topology/:id/kill/:wait``; the wait is a number of seconds, or ``default``."""
        self._check(request)
        self._controls.kill(_seconds(request.path_params["wait"]))
        return JSONResponse(operation(self._id, Action.KILL))

    def _check(self, request: Request) -> None:
        """Raise an HTTP 404 unless the request is about the topology that runs here."""
        asked = request.path_params["id"]
        if asked != self._id:
            raise HTTPException(404, f"no topology {asked!r} runs here, but {self._id!r}")


def _seconds(text: str) -> float | None:
    if text == "default":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise HTTPException(
            400, f"the wait is {text!r}, but it must be a number of seconds that is not negative"
        )
    return seconds


async def _refused(request: Request, raised: Exception) -> Response:
    status, message = HTTPStatus.INTERNAL_SERVER_ERROR, str(raised)
    if isinstance(raised, HTTPException):
        status, message = HTTPStatus(raised.status_code), raised.detail
    return JSONResponse(error(status, message), status_code=status.value)


def app(watcher: Watcher, controls: Controls, topology_id: str) -> Starlette:
    """Return the ASGI application for a topology.

    Storm answers an action that is not allowed with the status 500, and an unknown topology with 404; so does this.
    """
    handlers = {HTTPException: _refused, StatusError: _refused, Exception: _refused}
    return Starlette(routes=_Api(watcher, controls, topology_id).routes(), exception_handlers=handlers)


class Server:
    """Serves a topology until `close`. See `serve`. ``port`` is a socket that is bound to a port, and the token for it."""

    def __init__(
        self,
        registration: Registration,
        watcher: Watcher,
        controls: Controls,
        topology_id: str,
        port: tuple[socket.socket, str] | None = None,
    ) -> None:
        self._registration, self._watcher, self._controls = registration, watcher, controls
        application = app(watcher, controls, topology_id)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(registration.socket)
        os.chmod(registration.socket, 0o600)
        self._servers = {_server(application): listening}
        if port is not None:
            bound, token = port
            self._servers[_server(TokenRequired(application, token))] = bound
        for one in self._servers.values():
            one.listen()
        self._thread = threading.Thread(target=self._run, name="serves the REST API", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        async def serve_all() -> None:
            await asyncio.gather(*(server.serve(sockets=[one]) for server, one in self._servers.items()))

        try:
            with contextlib.suppress(asyncio.CancelledError):
                asyncio.run(serve_all())
        finally:
            for one in self._servers.values():
                one.close()

    @property
    def was_killed(self) -> bool:
        """Whether somebody has killed the topology by the API."""
        return self._controls.status is Status.KILLED

    def close(self) -> None:
        """Answer what has been asked, then end."""
        self._registration.leave()
        self._watcher.close()
        for server in self._servers:
            server.should_exit = True
        self._thread.join(_CLOSE_SECS)


def _server(application: ASGIApp) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            application,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
        )
    )


def serve(running: Operable, *, engine: str, active: bool, checkpoint: str | None) -> Server | None:
    """Let commands on this host find a topology and ask for things, until `Server.close`.

    If the socket can't be made, say so in the log and return None: the topology itself does without it. Raises
    `UnsupportedEnvironmentError` if the port that the topology asks for can't be had.
    """
    began, settings = time.time(), running.plan.settings
    port = None if settings.ui_port is None else _bound(settings.ui_host, settings.ui_port)
    token = None if port is None else new_token()
    controls = Controls(running, settings.message_timeout_secs, active=active)
    try:
        registration = Registration(running.name)
        watcher = Watcher(running, lambda: controls.status, user_name(os.geteuid()))
        asked = None if port is None or token is None else (port, token)
        server = Server(registration, watcher, controls, running.storm_id, asked)
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
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
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
