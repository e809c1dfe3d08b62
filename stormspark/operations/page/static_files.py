"""The files of the page: HTML, CSS and scripts of this package, which need nothing from the internet.

Whoever knows the address may read them, because they say nothing about a topology.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["HEADERS", "StaticFiles"]

#: Scripts and styles come from this server alone, and none is part of the HTML. No other page may show this one in a frame.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOLDERS = ("", "uplot/")


class StaticFiles:
    """The files, which are read once. `page` returns the HTML, and `routes` where the others are."""

    def __init__(self) -> None:
        self._contents: dict[str, tuple[bytes, str, str]] = {}
        top = files("stormspark.operations.page").joinpath("static")
        for folder in _FOLDERS:
            self._read(top.joinpath(folder) if folder else top, folder)

    def _read(self, place: Traversable, folder: str) -> None:
        for file in place.iterdir():
            dot = file.name.rpartition(".")[2]
            kind = _TYPES.get(f".{dot}")
            if kind is not None and file.is_file():
                content = file.read_bytes()
                tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
                self._contents[folder + file.name] = (content, kind, tag)

    def routes(self, at: str = "") -> list[Route]:
        """Return where the scripts and styles are: below ``at``."""
        return [Route(f"{at}/page/{{file:path}}", self._file, methods=["GET"])]

    async def page(self, request: Request) -> Response:
        """The page of a topology."""
        return self._answer(request, "topology.html")

    async def list_page(self, request: Request) -> Response:
        """The page with the list of topologies."""
        return self._answer(request, "list.html")

    async def _file(self, request: Request) -> Response:
        name = request.path_params["file"]
        if name not in self._contents or name.endswith(".html"):
            raise HTTPException(404, f"the page has no file {name!r}")
        return self._answer(request, name)

    def _answer(self, request: Request, name: str) -> Response:
        content, kind, tag = self._contents[name]
        headers = {**HEADERS, "ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers={**headers, "Content-Type": kind})
