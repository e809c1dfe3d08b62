"""What the controller hears of a round, and what it says of the next one.

A *round* is one run of all supersteps: a micro-batch is one round, or several where it is prolonged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["BoltLoad", "Limits", "SpoutLoad", "TaskLoad"]

#: How many tuples each task of a spout may emit in the next round, by task id; a task that is not named has no limit.
Limits = Mapping[int, int]


class SpoutLoad(NamedTuple):
    """What a task of a spout did in a round."""

    #: Tuples.
    emitted: int
    #: Whether it would have emitted more: it was stopped by its limit, its time, or a queue above its mark.
    hungry: bool
    #: Whether it was its limit that stopped it.
    limited: bool
    #: Rows of a source that wait to be emitted.
    rows_waiting: int = 0
    #: Its trees that have not ended.
    open_trees: int = 0


class BoltLoad(NamedTuple):
    """What a task of a bolt did in a round, and what waits for it now."""

    executed: int
    #: Time in ``execute``.
    seconds: float
    #: Tuples in its inbox.
    queued: int
    #: Their size, estimated by a few of them.
    queued_bytes: int
    #: Tuples that were shed in the round, because their sender was told to, and not slowed down (F10).
    shed: int = 0


TaskLoad = SpoutLoad | BoltLoad
