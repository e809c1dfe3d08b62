"""One page for all drivers of this user on this host: ``stormspark ui``. It passes calls on to the drivers' Unix sockets.

Everybody on this host can reach its port, and so can every site that the user's browser shows. So all calls need a token in a
header. The page gets it in exchange for the token of the link that `Links` makes, which is good for one time, and the browser
keeps it for this port alone. The link has its token behind a ``#``, which browsers send to nobody.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stormspark.errors import TopologyNotAliveError
from stormspark.operations.access import given_token
from stormspark.operations.page.calls import HERE, json_answer
from stormspark.operations.page.finished import Finished
from stormspark.operations.page.static_files import StaticFiles
from stormspark.operations.registry import Entry, entries, entry_of
from stormspark.operations.storm_api import error

__all__ = ["Links", "one_page"]

#: How long a driver may take for a line of the list, and for a call of the page, in seconds.
_LINE_SECS, _CALL_SECS = 2.0, 15.0
_MOST_BYTES = 1_000_000


class Links:
    """The tokens: one for calls, and one for the next link. ``used`` is called when a link was used."""

    def __init__(self, used: Callable[[], None] = lambda: None) -> None:
        self._session, self._used = secrets.token_urlsafe(24), used
        self._once = secrets.token_urlsafe(24)

    @property
    def once(self) -> str:
        """The token of the next link."""
        return self._once

    def exchange(self, once: str | None) -> str | None:
        """Return the token for calls in exchange for a link's; None if this is not the next link's."""
        if once is None or not hmac.compare_digest(once.encode(), self._once.encode()):
            return None
        self._once = secrets.token_urlsafe(24)
        self._used()
        return self._session

    def allows(self, token: str | None) -> bool:
        """Return whether a call with this token may come in."""
        return token is not None and hmac.compare_digest(token.encode(), self._session.encode())


def one_page(links: Links, finished: Mapping[str, Finished] | None = None) -> Starlette:
    """Return the application. ``finished`` are topologies that have ended, by the last part of their addresses."""
    hub = _Hub(links, finished or {})
    files = StaticFiles()
    handlers = {HTTPException: _refused, TopologyNotAliveError: _gone}
    return Starlette(
        routes=[
            Route("/", files.list_page, methods=["GET"]),
            Route("/session", hub.session, methods=["POST"]),
            *files.routes(),
            Route(f"{HERE}/topologies", hub.topologies, methods=["GET"]),
            Route("/t/{name}/", files.page, methods=["GET"]),
            *files.routes("/t/{name}"),
            Route("/t/{name}/api/v1/{path:path}", hub.call, methods=["GET", "POST"]),
        ],
        exception_handlers=handlers,
    )


async def _refused(request: Request, raised: Exception) -> Response:
    assert isinstance(raised, HTTPException)
    return json_answer(error(HTTPStatus(raised.status_code), raised.detail), raised.status_code)


async def _gone(request: Request, raised: Exception) -> Response:
    return json_answer(error(HTTPStatus.BAD_GATEWAY, str(raised)), 502)


class _Hub:
    """The calls of the page, and of its list."""

    def __init__(self, links: Links, finished: Mapping[str, Finished]) -> None:
        self._links, self._finished = links, finished

    async def session(self, request: Request) -> Response:
        """Exchange the token of a link for one for calls."""
        token = self._links.exchange(given_token(request.headers.get("authorization", "")))
        if token is None:
            raise HTTPException(401, "this link was used before; `stormspark ui` prints the next one")
        return json_answer({"token": token})

    def _check(self, request: Request) -> None:
        if not self._links.allows(given_token(request.headers.get("authorization", ""))):
            raise HTTPException(401, "open the link that `stormspark ui` prints")

    async def topologies(self, request: Request) -> Response:
        """The list: what runs, what has lost its driver, and what has ended."""
        self._check(request)
        known = await run_in_threadpool(entries)
        names = [one.topology for one in known]
        lines = await asyncio.gather(*(self._line(one, names.count(one.topology) == 1) for one in known))
        ended = [
            {
                "name": one.name,
                "id": one.snapshot["id"],
                "status": "ENDED",
                "at": f"t/{quote(key, safe='')}/",
                "level": one.snapshot["verdict"]["level"],
                "title": one.snapshot["verdict"]["title"],
            }
            for key, one in self._finished.items()
        ]
        return json_answer({"topologies": [*reversed(lines), *ended]})

    async def _line(self, entry: Entry, is_only: bool) -> dict[str, Any]:
        line: dict[str, Any] = {
            "name": entry.topology,
            "id": entry.id,
            "engine": entry.engine,
            "began": entry.began,
            "at": f"t/{quote(entry.topology if is_only else entry.id, safe='')}/",
        }
        if not entry.lives:
            more = f"; its checkpoint is {entry.checkpoint}" if entry.checkpoint else ""
            title = f"has lost its driver, process {entry.pid}, as after kill -9{more}"
            return {**line, "status": "DEAD", "level": "bad", "title": title}
        try:
            async with _driver(entry, _LINE_SECS) as client:
                answer = await client.get(f"http://driver{HERE}/topology/{quote(entry.id, safe='')}")
            now = answer.raise_for_status().json()
            said = now["verdict"]
        except (httpx.HTTPError, ValueError, KeyError) as problem:
            return {**line, "status": "no answer", "level": "bad", "title": f"does not answer: {problem}"}
        return {
            **line,
            "status": now["status"],
            "level": said["level"],
            "title": said["title"],
            "reasons": [one["text"] for one in said["reasons"]],
            "executed_per_s": now["progress"]["executed_per_s"],
            "acked_per_s": now["progress"]["acked_per_s"],
            "uptime": now["uptime"],
        }

    async def call(self, request: Request) -> Response:
        """Pass a call on to the driver of a topology, or answer it from a file."""
        self._check(request)
        name, path = request.path_params["name"], request.path_params["path"]
        if name in self._finished:
            return self._of_finished(self._finished[name], name, request, path)
        entry = await run_in_threadpool(entry_of, name)
        if not entry.lives:
            msg = f"the driver of {entry.topology}, process {entry.pid}, has ended"
            raise TopologyNotAliveError(msg)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                raise HTTPException(413, f"a call has at most {_MOST_BYTES:,} bytes")
        # The path as it came: what is escaped in it stays so.
        raw = request.scope["raw_path"].decode("ascii").partition("/api/v1/")[2]
        query = request.scope["query_string"].decode("ascii")
        url = f"http://driver/api/v1/{raw}" + (f"?{query}" if query else "")
        kind = request.headers.get("content-type")
        try:
            async with _driver(entry, _CALL_SECS) as client:
                answer = await client.request(
                    request.method, url, content=body, headers={"content-type": kind} if kind else {}
                )
        except httpx.HTTPError as problem:
            reason = str(problem) or type(problem).__name__
            msg = f"the driver of {entry.topology}, process {entry.pid}, does not answer: {reason}"
            raise TopologyNotAliveError(msg) from problem
        passed = json_answer(None, answer.status_code)
        passed.body = answer.content
        passed.headers["content-length"] = str(len(answer.content))
        if not answer.headers.get("content-type", "").startswith("application/json"):
            passed.headers["content-type"] = "text/plain; charset=utf-8"
        return passed

    def _of_finished(self, one: Finished, name: str, request: Request, path: str) -> Response:
        here = HERE.removeprefix("/api/v1/") + "/topology"
        if request.method == "GET" and path == here:
            return json_answer({"id": name, "name": one.name, "finished": True})
        known, _, call = path.removeprefix(f"{here}/").partition("/")
        try:
            if request.method != "GET" or known != name:
                raise KeyError(path)
            return json_answer(one.answer(call, request.query_params.get("component")))
        except KeyError as missing:
            raise HTTPException(
                404, "the topology has ended: there is nothing more about it here"
            ) from missing


def _driver(entry: Entry, seconds: float) -> httpx.AsyncClient:
    """Return a client for one call. It needs no certificates, which take long to load."""
    return httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(verify=False, uds=entry.socket), timeout=seconds
    )
