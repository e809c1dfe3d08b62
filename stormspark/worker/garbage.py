"""Python's cyclic garbage collector, kept off the tuple path.

Left alone, the collector runs every 700 allocations and takes half of the time of a word count: tuples and
trees are containers, all young, hardly any in a cycle. Reference counting frees them; what is in a cycle can
wait until a batch has been answered and the driver does its part. So it is off, and `collect` runs then: the
young objects each time, everything as often as costs 1 % of the time.
"""

from __future__ import annotations

import gc
import time

__all__ = ["GarbageBetweenBatches"]

#: A full collection that took t seconds is followed by the next one after 100 t, and this many seconds at
#: least.
_SHARE = 0.01
_LEAST_SECS = 10.0


class GarbageBetweenBatches:
    """Turns the collector off for the whole process, and collects when told to."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # plan, modules and tasks live as long as the process: nobody has to look at them again
        gc.disable()
        self._next_full = time.monotonic() + _LEAST_SECS

    def collect(self) -> None:
        """Collect what is due; the process should have nothing to answer just now."""
        began = time.monotonic()
        if began < self._next_full:
            gc.collect(1)
            return
        gc.collect()
        now = time.monotonic()
        self._next_full = now + max((now - began) / _SHARE, _LEAST_SECS)
