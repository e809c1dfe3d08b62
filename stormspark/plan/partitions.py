"""Decides how many partitions, and so how many Spark tasks, a superstep has. A partition has the frames of one or more workers.

Spark's driver schedules one task after another, and each exchange has as many blocks as the square of the number of partitions.
With one partition for each of 100 workers, that takes longer than a batch should. So from some number of workers on, several of
them share a partition. Their supersteps still run side by side, because a Spark task only carries frames. But it carries those of
its workers one after the other, so a partition has at most a few workers.
"""

from __future__ import annotations

__all__ = ["partitions_for"]

#: Up to this many workers have a partition each.
_MOST_ALONE = 32
#: At most this many workers share a partition.
_MOST_TOGETHER = 8


def partitions_for(workers: int, wanted: int = 0) -> int:
    """Return the number of partitions for ``workers`` workers. ``wanted`` is the user's own number; 0 if there is none.

    >>> [partitions_for(workers) for workers in (2, 32, 100, 256, 1000)]
    [2, 32, 32, 32, 125]
    >>> partitions_for(2, wanted=50)
    2
    """
    return min(workers, wanted or max(_MOST_ALONE, -(-workers // _MOST_TOGETHER)))
