"""The controller's input from one round, and its output for the next round.

A *round* is one run of all supersteps. A micro-batch is one round, or several if it is prolonged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["BoltLoad", "Limits", "SpoutLoad", "TaskLoad"]

#: How many tuples each task of a spout may emit in the next round, by task id. A task without an entry has no limit.
Limits = Mapping[int, int]


class SpoutLoad(NamedTuple):
    """A spout task's report of one round."""

    #: How many tuples the task emitted.
    emitted: int
    #: Whether the task had more to emit when its limit, its time, or a queue above its mark stopped it.
    hungry: bool
    #: Whether its limit stopped it.
    limited: bool
    #: The rows of a source that wait to be emitted.
    rows_waiting: int = 0
    #: The number of the task's open trees.
    open_trees: int = 0
    #: Whether max spout pending stopped it.
    held: bool = False


class BoltLoad(NamedTuple):
    """A bolt task's report of one round, and of the tuples that wait for it now."""

    executed: int
    #: The seconds spent in ``execute``.
    seconds: float
    #: The tuples in its inbox.
    queued: int
    #: The size of these tuples, estimated from a few of them.
    queued_bytes: int
    #: The tuples that were dropped or failed in the round, if the topology does that instead of slowing spouts down (F10).
    shed: int = 0
    #: Whether its executor has a thread of its own, so that it works beside all other bolts and also between supersteps. Then
    #: `seconds` is divided by the number of the bolt's executors in this worker.
    alongside: bool = False
    #: For how many seconds the call under way has lasted, divided likewise. It is all that is known of a bolt's speed before
    #: its first call has returned.
    under_way: float = 0.0


TaskLoad = SpoutLoad | BoltLoad
