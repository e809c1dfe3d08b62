"""Notes a running topology's sums for the page, in a thread of its own, so that there is a past when somebody opens the page."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from stormspark.backpressure import Pressure
from stormspark.metrics.sums import Sums
from stormspark.operations.page.history import History, Moment
from stormspark.plan.physical import PhysicalPlan

__all__ = ["Recordable", "Recorder"]

_log = logging.getLogger(__name__)

_EVERY_SECS = 1.0
#: To note takes at most this share of a core. So a topology with very many tasks is looked at less often.
_MOST_SHARE = 0.005


class Recordable(Protocol):
    """A running topology, as far as its history goes."""

    @property
    def plan(self) -> PhysicalPlan:
        """The physical plan that runs."""

    def sums(self) -> Sums:
        """Return the sums of the counters by component."""

    def pressure(self) -> Pressure | None:
        """Return what the controller of backpressure knows; None if there is no controller."""


class Recorder:
    """The history of a topology, which any thread may ask for. `close` ends it."""

    def __init__(self, running: Recordable, *, clock: Callable[[], float] = time.time) -> None:
        self._running, self._clock = running, clock
        spouts = [one.id for one in running.plan.components.values() if one.kind == "spout"]
        self._history, self._lock = History(spouts), threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Note the sums each second from now on."""
        self.look()
        self._thread = threading.Thread(target=self._look_on, name="history for the page", daemon=True)
        self._thread.start()

    def _look_on(self) -> None:
        wait = _EVERY_SECS
        while not self._closed.wait(wait):
            began = time.thread_time()
            try:
                self.look()
            except Exception:
                _log.exception("the history of the topology ends here, and the topology goes on")
                return
            wait = max(_EVERY_SECS, (time.thread_time() - began) / _MOST_SHARE)

    def look(self) -> None:
        """Note the sums of now, unless that was done within the last second."""
        with self._lock:
            last = self._history.last
        now = self._clock()
        if last is not None and last.at <= now < last.at + 0.9:
            return
        sums, pressure = self._running.sums(), self._running.pressure()
        limits = np.full(len(sums.names), np.nan)
        if pressure is not None:
            for row, name in enumerate(sums.names):
                if (spout := pressure.spouts.get(name)) is not None and spout.limit is not None:
                    limits[row] = spout.limit
        with self._lock:
            self._history.note(Moment(now, sums, limits))

    def rates(self) -> dict[str, dict[str, float]]:
        """Return by component what it did per second in the last seconds."""
        with self._lock:
            return self._history.rates()

    def edge_rates(self) -> list[float | None]:
        """Return how many tuples per second came by each subscription that is counted by itself, and None for others."""
        with self._lock:
            return self._history.edge_rates()

    def batch(self) -> dict[str, float]:
        """Return how long the last batches and their parts took, in ms."""
        with self._lock:
            return self._history.batch()

    def series(self, component: str | None, seconds: float, since: float) -> dict[str, list[Any]]:
        """Return `stormspark.operations.page.history.History.series`."""
        with self._lock:
            return self._history.series(component, seconds, since)

    def close(self) -> None:
        """Note nothing more."""
        self._closed.set()
