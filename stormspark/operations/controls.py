"""What somebody outside of the driver does to a running topology: activate, deactivate, kill after a wait (J2)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from stormspark.operations.status import Action, Status, after

__all__ = ["Controllable", "Controls"]

_log = logging.getLogger(__name__)


class Controllable(Protocol):
    """A running topology of either engine, as far as it is controlled from outside."""

    @property
    def name(self) -> str:
        """The topology's name."""

    def activate(self) -> None:
        """Let the spouts emit again."""

    def deactivate(self) -> None:
        """Stop the spouts from emitting. What is under way goes on."""

    def stop(self) -> None:
        """End the topology at the next batch boundary, and wait for that."""


class Controls:
    """Changes the state of a running topology as Storm's nimbus does, from any thread.

    ``default_wait`` is how many seconds a kill waits if nobody says so: the topology's message timeout.
    """

    def __init__(
        self,
        running: Controllable,
        default_wait: float,
        *,
        active: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._running, self._default_wait, self._clock = running, default_wait, clock
        self._lock = threading.Lock()
        self._status = Status.ACTIVE if active else Status.INACTIVE
        self._ends_at = 0.0
        self._wakes = threading.Condition(self._lock)

    @property
    def status(self) -> Status:
        """The state of the topology."""
        return self._status

    def activate(self) -> None:
        """Let the spouts emit again. Raises `StatusError` for a killed topology."""
        with self._lock:
            self._status = after(self._running.name, self._status, Action.ACTIVATE)
            self._running.activate()

    def deactivate(self) -> None:
        """Stop the spouts from emitting. Raises `StatusError` for a killed topology."""
        with self._lock:
            self._status = after(self._running.name, self._status, Action.DEACTIVATE)
            self._running.deactivate()

    def kill(self, wait: float | None = None) -> float:
        """Deactivate the spouts now, and end the topology after ``wait`` seconds. Return that number.

        What is under way is worked off meanwhile. Then the topology stops at the end of its batch. A second call sets the wait
        anew, from now on. This method does not wait.
        """
        secs = self._default_wait if wait is None else wait
        with self._lock:
            first = self._status is not Status.KILLED
            self._status = after(self._running.name, self._status, Action.KILL)
            self._ends_at = self._clock() + secs
            self._wakes.notify_all()
        _log.warning(
            "topology %s was killed by a command: its spouts are deactivated, and it ends in %g s",
            self._running.name,
            secs,
        )
        if first:
            self._running.deactivate()
            name = f"ends {self._running.name}"
            threading.Thread(target=self._end_later, name=name, daemon=True).start()
        return secs

    def _end_later(self) -> None:
        with self._lock:
            while (left := self._ends_at - self._clock()) > 0:
                self._wakes.wait(left)
        self._running.stop()
