"""Python's cyclic garbage collector, kept off the tuple path.

Left alone, the collector runs every 700 allocations and takes half of the time of a word count: tuples and
trees are containers, all young, hardly any in a cycle. Reference counting frees them; what is in a cycle can
wait until a batch has been answered and the driver does its part. So it is off, and `collect` runs then.

What has not changed is not looked at. The interpreter counts how many containers were made and not freed since the young
ones were looked at last, at no cost: where they are few there is nothing to find, however large a bolt's state is or however
many trees are open. Where they are many they are looked at once; what lives is old from then on. Where that finds state
and no garbage, the next look may wait for more of it. Old objects are looked at after a time, since garbage among them shows
nowhere: as often as costs 1 % of the time while the process grows, 0.1 % while it does not.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

__all__ = ["GarbageBetweenBatches"]

#: A full collection that took t seconds is followed by the next one after 100 t, or 1000 t where nothing has grown, and these
#: many seconds at least.
_SHARE, _LEAST_SECS = 0.01, 10.0
_QUIET_SHARE, _QUIET_LEAST_SECS = 0.001, 60.0
#: Young containers are looked at when there are so many, and never left alone when there are so many.
_FEW = 10_000
_MANY = 200_000
#: A look that frees less than this share of them was in vain.
_WORTH = 0.25


class GarbageBetweenBatches:
    """Turns the collector off for the whole process until `end`, and collects when told to.

    ``freeze`` leaves all that there is now out of every look to come: for a process whose plan, modules and tasks live as
    long as it does. ``clock`` gives monotonic seconds.
    """

    def __init__(self, *, freeze: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._was_on = gc.isenabled()
        if freeze:
            gc.collect()
            gc.freeze()
        gc.disable()
        self._enough = _FEW
        self._grown = 0  # since the last full collection, without what is young
        now = clock()
        self._next_full, self._latest_full = now + _LEAST_SECS, now + _QUIET_LEAST_SECS

    def collect(self) -> None:
        """Collect what is due; the process should have nothing to answer just now. Nothing where it had the collector off."""
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
        """Give the process its own setting back."""
        if self._was_on:
            gc.enable()
