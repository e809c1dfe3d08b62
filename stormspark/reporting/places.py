"""Where workers are, and where they were last, so that their metrics keep their names while workers start and end."""

from __future__ import annotations

import threading

from stormspark.reporting.measured import Measured

__all__ = ["FIRST_PORT", "Hosts"]

#: A worker of Storm has a port, which shows its slot. Workers here have none, but people tell workers apart by it.
FIRST_PORT = 6700


class Hosts:
    """The last known host of each worker of a topology."""

    def __init__(self, measured: Measured) -> None:
        self._measured, self._last = measured, dict[int, str]()
        self._lock = threading.Lock()

    def of(self, worker: int) -> str:
        """Return the host of a worker; an empty string if it was never known. `look` makes it known."""
        return self._last.get(worker, "")

    def look(self) -> None:
        """Note where workers are now."""
        places = self._measured.worker_places()
        with self._lock:
            self._last |= {one.worker: one.host for one in places if one.host}
