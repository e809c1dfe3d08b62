"""Timers of a worker's tasks: for ticks, windows, metrics and users' own calls, all on the worker's clock.

Timers go off between tuples, on the worker's thread: in superstep 0, and when the worker calls spouts again after it. If a task's
executor has a thread of its own, the timer only asks that thread to make the call. In a round that ends a batch, no timer goes
off. So a timer may be late by the length of a batch; Storm's ticks are not exact either (C9). If a worker was busy or asleep for
several periods, the timer makes one call for all of them, and then goes on in its old rhythm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stormspark.worker.task import Task

__all__ = ["Timers"]


@dataclass(eq=False)
class _Timer:
    task: Task
    period: float
    callback: Callable[[], None]
    due: float


class Timers:
    """All timers of one worker. ``next_due`` is the time at which the next timer goes off; infinity if there is no timer."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.next_due = math.inf
        self._clock = clock
        self._timers: list[_Timer] = []

    def add(
        self, task: Task, seconds: float, callback: Callable[[], None], first: float | None = None
    ) -> None:
        """Call ``callback`` every ``seconds`` for ``task``. If ``first`` is given, make the first call after ``first``
        seconds.
        """
        due = self._clock() + (seconds if first is None else first)
        self._timers.append(_Timer(task, seconds, callback, due))
        self._look()

    def remove(self, task: Task) -> None:
        """Drop the timers of ``task``, because its instance has ended."""
        self._timers = [timer for timer in self._timers if timer.task is not task]
        self._look()

    def take_due(self, now: float) -> Iterator[tuple[Task, Callable[[], None]]]:
        """Iterate over the calls that are due at ``now``, each once, in the order in which they fell due.

        A call is left out if an earlier call has raised, so that its task was restarted.
        """
        due = sorted((timer for timer in self._timers if timer.due <= now), key=lambda timer: timer.due)
        for timer in due:
            # Computed in one step, because the clock may have jumped by a million periods.
            timer.due += timer.period * (math.floor((now - timer.due) / timer.period) + 1)
            if timer.due <= now:  # the period is smaller than the precision of the numbers
                timer.due = now + timer.period
        self._look()
        for timer in due:
            if timer in self._timers:
                yield timer.task, timer.callback

    def _look(self) -> None:
        self.next_due = min((timer.due for timer in self._timers), default=math.inf)
