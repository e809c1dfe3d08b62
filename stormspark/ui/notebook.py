"""Progress that changes in place: in Jupyter one output, elsewhere a line.

Jupyter has IPython's display handles. Old Databricks notebooks have none, but a function ``displayHTML``, whose outputs stay as
they are. So there are lines while the topology runs, and one such output at the end.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rich.console import Console

from stormspark.engine import RunningTopology
from stormspark.ui.line import ProgressLine
from stormspark.ui.look import Look
from stormspark.ui.progress import Progress
from stormspark.ui.watch import Idleness

__all__ = ["find_display", "show_progress"]

Links = Callable[[], Mapping[str, str]]


class _Display(Protocol):
    def show(self, progress: Progress, look: Look) -> None:
        """Show the progress so far."""

    def end(self, look: Look) -> None:
        """Show the state at the end, which stays."""


def show_progress(
    running: RunningTopology,
    links: Links,
    *,
    seconds: float | None = None,
    until_idle: float | None = None,
    every: float = 0.5,
    display: _Display | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Show the progress of a topology until it has ended; see `stormspark.running.TopologyHandle.show_progress`."""
    display = display or find_display(links)
    look = Look(running)
    idleness = None if until_idle is None else Idleness(until_idle)
    began = clock()
    try:
        while True:
            display.show(look.again(), look)
            over = seconds is not None and clock() - began >= seconds
            if running.wait(0) or over or (idleness is not None and idleness.reached(running.statistics())):
                return
            left = every if seconds is None else min(every, seconds - (clock() - began))
            running.wait(max(left, 0.0))
    finally:
        look.again()
        display.end(look)


def find_display(links: Links) -> _Display:
    """Return the display that fits the place where this process shows things."""
    shell = _shell()
    if getattr(shell, "kernel", None) is not None:
        from IPython.display import display

        return _Output(display, links)
    show_html = getattr(shell, "user_ns", {}).get("displayHTML") or _of_main("displayHTML")
    if callable(show_html):
        return _Databricks(show_html, links)
    return _Line()


def _shell() -> Any:
    """Return the shell of IPython that this process runs in; None if there is none."""
    ipython = sys.modules.get("IPython")  # whoever runs in it has imported it
    return None if ipython is None else ipython.get_ipython()


def _of_main(name: str) -> Any:
    return getattr(sys.modules.get("__main__"), name, None)


class _Output:
    """An output of a Jupyter notebook."""

    def __init__(self, display: Callable[..., Any], links: Links) -> None:
        self._display, self._links = display, links
        self._handle: Any = None

    def show(self, progress: Progress, look: Look) -> None:
        content = {"text/plain": look.line(), "text/html": look.html(self._links())}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def end(self, look: Look) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": look.line(), "text/html": look.html(self._links())}, raw=True)


class _Databricks:
    """Lines, and an output at the end."""

    def __init__(self, show_html: Callable[[str], object], links: Links) -> None:
        self._show_html, self._links = show_html, links
        self._line = _Line()

    def show(self, progress: Progress, look: Look) -> None:
        self._line.show(progress, look)

    def end(self, look: Look) -> None:
        self._line.end(look)
        self._show_html(look.html(self._links()))


class _Line:
    """The progress line. What it says last stays."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stdout, highlight=False)
        self._line = ProgressLine(self._console)
        self._block = contextlib.ExitStack()
        self._begun = False

    def show(self, progress: Progress, look: Look) -> None:
        if not self._begun:
            self._begun = True
            self._block.enter_context(self._line)
        self._line.show(progress)

    def end(self, look: Look) -> None:
        self._block.close()
        self._line.say(look.line())
