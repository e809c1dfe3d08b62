"""The progress line: on a terminal it redraws itself, elsewhere it is a plain line every few seconds."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

__all__ = ["ProgressLine", "Shown"]


class Shown(Protocol):
    """What the line shows, as its string: a `stormspark.ui.Progress`, or another command's step."""

    @property
    def seconds(self) -> float:
        """For how long it has been under way."""


class ProgressLine:
    """A line on a console that shows a `Progress` while the ``with`` block lasts. On a terminal the line vanishes at the end.

    On a terminal, what this process prints meanwhile appears above the line. If not ``takes_prints``, the caller sees to that.

    >>> import sys
    >>> from stormspark.ui import Progress
    >>> with ProgressLine(Console(file=sys.stdout, width=100)) as line:
    ...     line.show(Progress("words", 1.0, 1, 980.0, 400.0, 100.0, 100, 0, 7, 0))
    ...     line.say("stopping")
    words 1 s  400 tuples/s  acked 100 (100/s)  failed 0  pending 7  batch 1: 980 ms
    stopping
    """

    def __init__(self, console: Console, plain_every: float = 5.0, *, takes_prints: bool = True) -> None:
        self._console = console
        self._plain_every = plain_every
        self._shown_at: float | None = None
        #: Held while something is drawn. What another thread draws meanwhile would not erase a line that begins just then.
        self._drawing = threading.Lock()
        # Only `show` redraws the line, in one write. A timer would make the line flicker.
        self._live = (
            Live(
                console=console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=takes_prints,
                redirect_stderr=takes_prints,
            )
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    @property
    def is_live(self) -> bool:
        """Whether the line redraws itself, on a terminal."""
        return self._live is not None

    def show(self, progress: Shown) -> None:
        """Show how far it is now."""
        if self._live:
            with self._drawing:
                self._live.update(Text(str(progress), no_wrap=True, overflow="ellipsis"), refresh=True)
        elif self._shown_at is None or progress.seconds - self._shown_at >= self._plain_every:
            self._shown_at = progress.seconds
            self.say(str(progress))

    def say(self, text: str) -> None:
        """Print a line that stays, above the progress line."""
        with self._drawing:
            self._console.print(Text(text), soft_wrap=True)
