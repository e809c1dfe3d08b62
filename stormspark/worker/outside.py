"""The files that tell when something has come from outside; see `stormspark.spi.outside`."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable

from stormspark.worker.bolt_task import BoltTask

__all__ = ["Watch"]

#: For so long more is gathered.
_GATHER_SECONDS = 0.0003


class Watch:
    """Polls the files of some bolts, those that they had at the last `set`."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._bolts: dict[int, BoltTask] = {}

    def set(self, bolts: Iterable[BoltTask]) -> None:
        """Watch these from now on, as far as they work."""
        files = {bolt.fileno(): bolt for bolt in bolts if bolt.fatal is None}
        files.pop(-1, None)
        if files != self._bolts:
            self._bolts = files
            self._poll = select.poll()
            for file in files:
                self._poll.register(file, select.POLLIN)

    def take_in(self, seconds: float, enter: Callable[[BoltTask], None]) -> int | None:
        """Take in what has come, or comes within some seconds; None if nothing has, else how many tuples are done.

        ``enter`` is told whose code runs.
        """
        came = self._poll.poll(seconds * 1000)
        if not came:
            return None
        done = 0
        for file, _ in came:
            bolt = self._bolts[file]
            enter(bolt)
            done += bolt.take_in()
        return done

    def gather(self, bolts: Iterable[BoltTask]) -> None:
        """Let more come of these before the next look, unless one asks: who does is waiting."""
        if not any(bolt.asks for bolt in bolts):
            time.sleep(_GATHER_SECONDS)
