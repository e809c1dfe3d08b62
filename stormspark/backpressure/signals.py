"""The controller's input from one round, and its output for the next round.

A *round* is one run of all supersteps. A micro-batch is one round, or several if it is prolonged, or if it is a transaction that
has work left after its first round.
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
    #: Whether the task had more to emit when something stopped it: its limit, its time, or too many tuples that wait in its
    #: worker. False if max spout pending stopped it.
    hungry: bool
    #: Whether the task's limit stopped it.
    limited: bool
    #: The rows of a source that wait to be emitted.
    rows_waiting: int = 0
    #: The number of the task's open trees.
    open_trees: int = 0
    #: Whether max spout pending stopped the task.
    held: bool = False


class BoltLoad(NamedTuple):
    """A bolt task's report of one round, and of the tuples that wait for the task now."""

    executed: int
    #: The seconds spent in ``execute``.
    seconds: float
    #: The number of tuples in the task's inbox, and of those in calls that are under way at its executor.
    queued: int
    #: The size of the tuples that count, estimated from a few of them.
    queued_bytes: int
    #: The number of tuples that were dropped or failed in the round, if the topology does that instead of slowing spouts down
    #: (F10).
    shed: int = 0
    #: Whether the task is async or its executor has a thread of its own, so that the bolt works at the same time as other bolts,
    #: and also between supersteps. Then `seconds` is divided by how many calls of the bolt there may be at once in this worker.
    alongside: bool = False
    #: For how many seconds the call under way has lasted, divided in the same way as `seconds`. Until the first call of a bolt
    #: returns, this is all that is known of the bolt's speed.
    under_way: float = 0.0
    #: For people alone: how many of `queued` and `queued_bytes` belong to calls that are under way, and so don't wait any more.
    in_calls: int = 0
    in_calls_bytes: int = 0
    #: For people alone: how many seconds a task that is async or has a thread needs for one waiting tuple, which is the time of a
    #: call divided by the number of calls that the task makes at once. None if `seconds` tells, as it does for every other task.
    pace: float | None = None
    #: For people alone: if no call of the task has ended yet, for how many seconds the oldest call has lasted.
    first_call: float = 0.0


TaskLoad = SpoutLoad | BoltLoad
