"""The rounds of a topology as the controller hears of them: what came in and what was worked off, one by one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stormspark.backpressure import BoltLoad, SpoutLoad
from stormspark.driver.throttle import Throttle
from stormspark.worker.step import WorkerReport, merge_loads

__all__ = ["Round", "Rounds", "full_speed", "rate", "utilisation"]


class Round(NamedTuple):
    """``began`` and ``ended`` are monotonic seconds; ``busy`` is the time in ``execute`` by task of a bolt."""

    began: float
    ended: float
    emitted: int
    executed: int
    busy: dict[int, float]
    queued: int
    #: Of the next round, all spouts together; None: they are not held.
    limit: int | None

    @property
    def seconds(self) -> float:
        """From its beginning to its end."""
        return self.ended - self.began


class Rounds(list[Round]):
    """Listens to a `Throttle` from `listen` on: it is told of each round, as the controller is."""

    def listen(self, throttle: Throttle) -> None:
        """Note all rounds from now on."""
        observe = throttle.observe

        def observe_and_note(
            reports: Iterable[WorkerReport], seconds: float, *more: float, **named: bool
        ) -> None:
            reports, ended = list(reports), time.monotonic()
            observe(reports, seconds, *more, **named)
            loads = merge_loads(reports)
            bolts = {task: load for task, load in loads.items() if isinstance(load, BoltLoad)}
            limits = throttle.limits
            self.append(
                Round(
                    ended - seconds,
                    ended,
                    sum(load.emitted for load in loads.values() if isinstance(load, SpoutLoad)),
                    sum(load.executed for load in bolts.values()),
                    {task: load.seconds for task, load in bolts.items()},
                    sum(load.queued for load in bolts.values()),
                    sum(limits.values()) if limits else None,
                )
            )

        throttle.observe = observe_and_note  # type: ignore[method-assign]

    def since(self, moment: float) -> list[Round]:
        """Those that began then or later."""
        return [one for one in self if one.began >= moment]


def rate(rounds: Sequence[Round]) -> float:
    """Executed tuples a second."""
    return sum(one.executed for one in rounds) / max(1e-9, sum(one.seconds for one in rounds))


def utilisation(rounds: Sequence[Round]) -> float:
    """The throughput as a share of what the bolt's tasks could do if they did nothing but execute: the time that they were
    executing. Each has a worker of its own.
    """
    seconds = sum(one.seconds for one in rounds)
    tasks = {task for one in rounds for task in one.busy}
    busy = sum(sum(one.busy.values()) for one in rounds)
    return busy / (seconds * len(tasks)) if seconds and tasks else 0.0


def full_speed(rounds: Sequence[Round], after: float, full: float, *, together: int = 3) -> tuple[float, int]:
    """How long after a moment, and how many rounds, it began to run at ``full`` tuples a second or more, and did so for some
    rounds; infinite if it never did.
    """
    before = 0
    for first, one in enumerate(rounds):
        if one.began < after:
            continue
        some = rounds[first : first + together]
        if len(some) == together and rate(some) >= full:
            return one.began - after, before
        before += 1
    return math.inf, before
