"""What somebody outside of the driver does to a running topology: activate, deactivate, kill, rebalance (J2)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from stormspark.errors import StatusError
from stormspark.operations.status import Action, Status, after
from stormspark.plan.physical import PhysicalPlan

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

    def rebalanced(
        self, *, workers: int | None = None, executors: Mapping[str, int] | None = None
    ) -> PhysicalPlan:
        """Return the plan with other numbers of workers and executors. Raises `InvalidTopologyError`, and `StatusError` if the
        topology can't be laid out anew at all.
        """

    def lay_out(self, plan: PhysicalPlan) -> None:
        """End the workers at the next batch boundary, and go on with those of this plan. Return when these are up."""


class Controls:
    """Changes the state of a running topology as Storm's nimbus does, from any thread.

    ``default_wait`` is how many seconds a kill and a rebalance wait if nobody says so: the topology's message timeout.
    ``on_kill`` is called at the first kill.
    """

    def __init__(
        self,
        running: Controllable,
        default_wait: float,
        *,
        active: bool = True,
        clock: Callable[[], float] = time.monotonic,
        on_kill: Callable[[], None] = lambda: None,
    ) -> None:
        self._running, self._default_wait, self._clock, self._on_kill = running, default_wait, clock, on_kill
        self._lock = threading.Lock()
        self._status = Status.ACTIVE if active else Status.INACTIVE
        #: When the wait of a kill or a rebalance is over.
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
            self._on_kill()
            self._running.deactivate()
            name = f"ends {self._running.name}"
            threading.Thread(target=self._end_later, name=name, daemon=True).start()
        return secs

    def _end_later(self) -> None:
        self._wait_until_due(Status.KILLED)
        self._running.stop()

    def rebalance(
        self,
        wait: float | None = None,
        *,
        workers: int | None = None,
        executors: Mapping[str, int] | None = None,
    ) -> float:
        """Deactivate the spouts now, and lay the topology out anew after ``wait`` seconds. Return that number.

        What is under way is worked off meanwhile. Then the workers end, and others begin with the state of the tasks. The
        topology then returns to the state that it had. This method does not wait. Raises `InvalidTopologyError` and `StatusError`
        (see `Controllable.rebalanced`), and the topology goes on unchanged.
        """
        secs = self._default_wait if wait is None else wait
        plan = self._running.rebalanced(workers=workers, executors=executors)
        with self._lock:
            before, self._status = (
                self._status,
                after(self._running.name, self._status, Action.REBALANCE),
            )
            self._ends_at = self._clock() + secs
            self._running.deactivate()
        _log.warning(
            "topology %s is rebalanced by a command: its spouts are deactivated, and in %g s it goes on with %d workers and %d "
            "executors",
            self._running.name,
            secs,
            plan.workers,
            plan.executors,
        )
        name = f"rebalances {self._running.name}"
        threading.Thread(target=self._rebalance_later, args=(plan, before), name=name, daemon=True).start()
        return secs

    def _rebalance_later(self, plan: PhysicalPlan, before: Status) -> None:
        if not self._wait_until_due(Status.REBALANCING):
            return  # somebody has killed it
        try:
            self._running.lay_out(plan)
        except StatusError as error:  # the topology ends
            _log.warning("%s", error)
        except Exception:  # nobody else hears of it, and the spouts must not stay deactivated
            _log.exception("topology %s could not be laid out anew", self._running.name)
        with self._lock:
            if self._status is Status.REBALANCING:
                self._status = before
                if before is Status.ACTIVE:
                    self._running.activate()

    def _wait_until_due(self, status: Status) -> bool:
        """Wait for the end of the wait of a kill or a rebalance. Return false if the topology has another state by then."""
        with self._lock:
            while self._status is status and (left := self._ends_at - self._clock()) > 0:
                self._wakes.wait(min(left, threading.TIMEOUT_MAX))
            return self._status is status
