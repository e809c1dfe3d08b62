"""All that sends metrics of one topology: its consumers and its reporters. Both engines use it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from stormspark.metrics import DataPoint
from stormspark.plan.physical import PhysicalPlan
from stormspark.reporting.consumers import Consumer, consumers_of
from stormspark.reporting.family import Family
from stormspark.reporting.measured import Measured
from stormspark.reporting.places import Hosts
from stormspark.reporting.report import Report
from stormspark.reporting.reporters import Sender, senders_of

__all__ = ["Reporting"]

#: The end of a topology waits for as long for all of them together.
_END_SECS = 1.0


class Reporting:
    """The consumers and the reporters of a topology. Raises `InvalidTopologyError` if the topology names one that can't be.

    `begin` comes when the topology has begun, and `close` when it ends, whether it has begun or not.
    """

    def __init__(self, plan: PhysicalPlan) -> None:
        self._consumers, self._senders = consumers_of(plan), senders_of(plan)
        self._has_begun = self._has_ended = False

    @property
    def wants_points(self) -> bool:
        """Whether somebody wants the readings of users' metrics."""
        return bool(self._consumers)

    def take(self, points: Sequence[DataPoint]) -> None:
        """Take readings of users' metrics, without waiting."""
        for consumer in self._consumers:
            consumer.take(points)

    def begin(
        self,
        measured: Measured,
        families: Callable[[], Sequence[Family]],
        log_folder: str | None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Begin to report. If a test drives the ``clock``, nothing happens but in `step`."""
        self._has_begun = True
        wall_clock, hosts = clock or time.time, Hosts(measured)
        for consumer in self._consumers:
            consumer.begin(measured, hosts, log_folder, clock)
        for sender in self._senders:
            sender.begin(lambda: Report(measured, hosts, families(), wall_clock()), clock)

    def step(self) -> None:
        """Report what is due, if a test drives the clock."""
        for consumer in self._consumers:
            consumer.step()
        for sender in self._senders:
            sender.step()

    def close(self) -> None:
        """Report the last figures, and end."""
        if self._has_ended or not self._has_begun:
            return
        self._has_ended = True
        everyone: list[Consumer | Sender] = [*self._consumers, *self._senders]
        for one in everyone:
            one.end()
        until = time.monotonic() + _END_SECS
        for one in everyone:
            one.join(max(0.0, until - time.monotonic()))
