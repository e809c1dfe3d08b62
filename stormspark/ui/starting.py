"""Says how far the start of a topology is. It may take minutes, on storage that is slow or where jars are fetched."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from stormspark.driver.start_steps import begin_step, current_step
from stormspark.ui.progress import Progress

__all__ = ["Starting"]

#: On a terminal the line changes so often, in seconds. Elsewhere a line comes so often.
_LIVE_EVERY, _PLAIN_EVERY = 0.5, 5.0


class _Line(Protocol):
    """The line on which a start is shown, a `stormspark.ui.ProgressLine`."""

    @property
    def is_live(self) -> bool:
        """Whether the line redraws itself."""

    def show(self, progress: Progress) -> None:
        """Redraw the line."""

    def say(self, text: str) -> None:
        """Print a line that stays."""


class Starting:
    """Shows the steps of a start while its ``with`` block lasts, from a thread of its own. A short start shows nothing.

    ``step`` is the first step. ``wait`` waits so many seconds for the end of the block, and returns whether it has come.
    """

    def __init__(
        self, topology: str, line: _Line, step: str, wait: Callable[[float], bool] | None = None
    ) -> None:
        self._topology, self._line = topology, line
        self._ended = threading.Event()
        self._wait = self._ended.wait if wait is None else wait
        self._began = time.monotonic()
        begin_step(step)

    def __enter__(self) -> Self:
        threading.Thread(target=self._show, name="stormspark-starting", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()

    def _show(self) -> None:
        while not self._wait(_LIVE_EVERY if self._line.is_live else _PLAIN_EVERY):
            seconds = time.monotonic() - self._began
            progress = Progress(self._topology, seconds, 0, None, 0, 0, 0, 0, 0, 0, waits_for=current_step())
            if self._line.is_live:
                self._line.show(progress)
            else:
                self._line.say(str(progress))
