"""Serves one page for all topologies of this user on this host, until Ctrl-C: ``stormspark ui``."""

from __future__ import annotations

import contextlib
import html
import os
import re
import socket
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.operations.connections import limited_server
from stormspark.operations.page.finished import read_finished
from stormspark.operations.page.one_page import Links, one_page
from stormspark.operations.registry import registry_folder
from stormspark.private_files import make_private, open_private

__all__ = ["serve_page"]

_HOST = "127.0.0.1"


def serve_page(port: int, files: Sequence[str], *, opens: bool | None) -> int:
    """Serve the page on a port of 127.0.0.1, 0 for any, until Ctrl-C. ``files`` are about topologies that have ended.

    ``opens`` says whether to open it in a browser; None means: if there is a desktop. Returns the exit code. Raises
    `UnsupportedEnvironmentError` if the port can't be had, and `UnreadablePageError` for a file that is something else.
    """
    finished = {}
    for number, file in enumerate(files):
        one = read_finished(file)
        # Letters of a path, and no name of a topology that runs.
        finished[f"file-{number + 1}-{re.sub('[^A-Za-z0-9_-]', '_', one.name)}"] = one
    bound = _bound(port)
    console = Console(highlight=False)
    address = f"http://{_HOST}:{bound.getsockname()[1]}/"
    at = f"t/{next(iter(finished))}/" if len(finished) == 1 else ""

    def link() -> str:
        return f"{address}{at}#once={links.once}"

    def used() -> None:
        console.print(Text(f"for another browser: {link()}"), soft_wrap=True)

    links = Links(used)
    console.print(Text(f"{link()}\nThis link is good for one time. Ctrl-C ends the page."), soft_wrap=True)
    if opens if opens is not None else _has_desktop():
        _open(link())
    server = limited_server(one_page(links, finished), shutdown_secs=2)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[bound])
    return 0


def _bound(port: int) -> socket.socket:
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((_HOST, port))
    except OSError as error:
        listening.close()
        msg = f"the page can't have the port {port} of {_HOST} ({error.strerror}): name another one with --port, or none"
        raise UnsupportedEnvironmentError(msg) from error
    return listening


def _has_desktop() -> bool:
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(link: str) -> None:
    """Open a link in the user's browser, by way of a file: others on this host see the arguments of a browser that starts."""
    file = Path(make_private(registry_folder()), f"ui-{os.getpid()}.html")
    with open(open_private(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as opened:
        opened.write(f'<meta charset="utf-8"><meta http-equiv="refresh" content="0;url={html.escape(link)}">')
    webbrowser.open(file.as_uri())
