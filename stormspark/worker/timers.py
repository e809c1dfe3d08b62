"""Timers of a worker's tasks: ticks, windows, metric buckets and users' own, all on the worker's clock.

They go off in superstep 0, between tuples, on the thread that runs the tasks. So a timer is as exact as
batches are short, which is what Storm says of its ticks too (C9). A worker that was busy or asleep for several
periods goes on with one call, in the old rhythm.
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
    """All timers of one worker. ``next_due`` is when the first of them goes off, infinity where there is none."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.next_due = math.inf
        self._clock = clock
        self._timers: list[_Timer] = []

    def add(
        self, task: Task, seconds: float, callback: Callable[[], None], first: float | None = None
    ) -> None:
        """Call ``callback`` every ``seconds`` from now on, for ``task``; at first after ``first`` seconds, if that is given."""
        due = self._clock() + (seconds if first is None else first)
        self._timers.append(_Timer(task, seconds, callback, due))
        self._look()

    def remove(self, task: Task) -> None:
        """Forget the timers of ``task``: its instance has ended."""
        self._timers = [timer for timer in self._timers if timer.task is not task]
        self._look()

    def take_due(self, now: float) -> Iterator[tuple[Task, Callable[[], None]]]:
        """The calls that are due at ``now``, each once, in the order in which they fell due.

        One whose task began anew meanwhile, because an earlier one raised, is left out.
        """
        due = sorted((timer for timer in self._timers if timer.due <= now), key=lambda timer: timer.due)
        for timer in due:
            # By arithmetic, not step by step: the clock may have jumped by a million periods.
            timer.due += timer.period * (math.floor((now - timer.due) / timer.period) + 1)
            if timer.due <= now:  # a period that is too small for the numbers' precision
                timer.due = now + timer.period
        self._look()
        for timer in due:
            if timer in self._timers:
                yield timer.task, timer.callback

    def _look(self) -> None:
        self.next_due = min((timer.due for timer in self._timers), default=math.inf)
