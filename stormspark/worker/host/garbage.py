"""A schedule for Python's cyclic garbage collector, so that the collector does not run while tuples are processed.

By default the collector runs every 700 allocations, and takes half of the time in a topology that counts words. Tuples and trees
are containers. Nearly all of them are young and in no cycle, so reference counting frees them. Objects in a cycle can wait until
the worker has replied, because then the driver does its part of the batch. So the collector is off, and `collect` runs after the
reply.

*Young objects.* The interpreter counts, at no cost, the containers that were made and not freed since the last collection of
young containers. If there are few such containers, there is hardly any garbage, even if a bolt's state is large or many trees
are open. Once there are many, one collection examines them. Those that it does not free count as old. If the collection found
hardly any garbage, the next collection waits for more young containers.

*Old objects.* Nothing shows how much garbage there is among old objects, so they are collected at intervals. The intervals are
so long that these collections cost at most 1 % of the time while the process grows, and 0.1 % while it does not grow.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

__all__ = ["GarbageBetweenBatches"]

#: If a full collection took t seconds, the next one follows after 100 t if the process has grown, and otherwise after 1000 t.
#: The second number of each line is the shortest time between two such collections, in seconds.
_SHARE, _LEAST_SECS = 0.01, 10.0
_QUIET_SHARE, _QUIET_LEAST_SECS = 0.001, 60.0
#: How many young containers cause a collection: `_FEW` at first, and at most `_MANY`.
_FEW = 10_000
_MANY = 200_000
#: A collection was in vain if it freed less than this share of the young containers.
_WORTH = 0.25


class GarbageBetweenBatches:
    """The collector's schedule. It turns the collector off for the whole process until `end`. `collect` does the work instead.

    ``freeze`` excludes all objects that exist now from every later collection. It is meant for a process whose plan, modules
    and tasks live as long as the process. ``clock`` returns monotonic seconds.
    """

    def __init__(self, *, freeze: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._was_on = gc.isenabled()
        if freeze:
            gc.collect()
            gc.freeze()
        gc.disable()
        self._enough = _FEW
        self._grown = 0  # containers made since the last full collection, without those that are young now
        now = clock()
        self._next_full, self._latest_full = now + _LEAST_SECS, now + _QUIET_LEAST_SECS

    def collect(self) -> None:
        """Run a collection if one is due. Call this while nobody waits for the process.

        If the collector was off before this object was made, nothing is collected.
        """
        if not self._was_on:
            return
        began = self._clock()
        young = gc.get_count()[0]
        if began >= self._latest_full or (began >= self._next_full and self._grown + young >= _FEW):
            gc.collect()
            now = self._clock()
            self._grown = 0
            self._next_full = now + max((now - began) / _SHARE, _LEAST_SECS)
            self._latest_full = now + max((now - began) / _QUIET_SHARE, _QUIET_LEAST_SECS)
        elif young >= self._enough:
            self._grown += young
            in_vain = gc.collect(1) < _WORTH * young
            self._enough = min(2 * self._enough, _MANY) if in_vain else _FEW

    def end(self) -> None:
        """Turn the collector on again, if it was on before."""
        if self._was_on:
            gc.enable()
