"""Computes how large max spout pending must be so that it does not slow a spout. It needs only rounds with a smaller setting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import ceil, log10

from stormspark.backpressure.local_preference import LimitedSpout
from stormspark.backpressure.signals import BoltLoad, SpoutLoad, TaskLoad

__all__ = ["PendingCost"]

#: How much an earlier round counts, compared with the one after it: about the last twenty rounds matter.
_FADING = 0.95


class PendingCost:
    """What rounds have shown about ``spouts``, the spouts with max spout pending. ``worker_of`` maps tasks to workers.

    Each round shows how many tuples a spout emitted, and for how many seconds the bolts of each worker worked. A worker does one
    thing at a time. So without a limit, the spout's rate is at most its number of tuples divided by the seconds of the busiest
    worker. A tree is open for about a round, and other trees begin meanwhile at this rate. So this rate, times the seconds of a
    round, is the number of trees that are open at once. A limit of this size does not slow the spout. The limit is an estimate,
    because the time that spouts take does not count.

    In this example two tasks emit 400 tuples per round, which take 4 ms in the busier worker. That makes 100,000 tuples per
    second. If trees are open for 1 s, each task has 50,000 open trees.

    >>> cost = PendingCost({"words": LimitedSpout((5, 6), 200)}, {3: 0, 4: 1, 5: 0, 6: 1})
    >>> emits, works = SpoutLoad(200, False, False, held=True), {3: BoltLoad(400, 0.004, 0, 0), 4: BoltLoad(9, 0.001, 0, 0)}
    >>> cost.observe({5: emits, 6: emits, **works})
    >>> cost.unfelt("words", open_secs=1.0)
    50000
    """

    def __init__(self, spouts: Mapping[str, LimitedSpout], worker_of: Mapping[int, int]) -> None:
        self._spouts, self._worker_of = spouts, worker_of
        self._emitted = dict.fromkeys(spouts, 0.0)
        self._busy = 0.0

    def observe(self, loads: Mapping[int, TaskLoad]) -> None:
        """Learn from a round."""
        busy: defaultdict[int, float] = defaultdict(float)
        for task, load in loads.items():
            if isinstance(load, BoltLoad):
                busy[self._worker_of[task]] += load.seconds
        self._busy = self._busy * _FADING + max(busy.values(), default=0.0)
        for name, spout in self._spouts.items():
            mine = (loads.get(task) for task in spout.tasks)
            emitted = sum(load.emitted for load in mine if isinstance(load, SpoutLoad))
            self._emitted[name] = self._emitted[name] * _FADING + emitted

    def unfelt(self, spout: str, open_secs: float) -> int | None:
        """Return the smallest limit per task that would not slow the spout if trees are open for ``open_secs``.

        The limit is rounded up to two digits. Returns None if the spout has emitted nothing, or if the bolts' work took no time.
        """
        emitted, busy = self._emitted.get(spout, 0.0), self._busy
        if not emitted or not busy:
            return None
        return _two_digits(emitted / busy * open_secs / len(self._spouts[spout].tasks))


def _two_digits(value: float) -> int:
    """Round up to two digits.

    >>> _two_digits(121_001), _two_digits(120_000), _two_digits(3.2)
    (130000, 120000, 4)
    """
    unit = int(10 ** max(int(log10(max(value, 1))) - 1, 0))
    return ceil(round(value / unit, 6)) * unit
