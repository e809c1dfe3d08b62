"""Detects that a topology has nothing left to do."""

from __future__ import annotations

from stormspark.metrics.statistics import TopologyStatistics

__all__ = ["Quiet"]

_WORK = ("emitted", "executed", "acked", "failed", "restarts")


class Quiet:
    """A detector of the moment when no tree is open, nothing waits, and nothing has happened in the last two batches.

    The detector waits for two batches after the first quiet snapshot, because a spout that has just got a fail, or was just
    restarted, may emit again. Pass a snapshot to `reached` now and then. A second snapshot of the same batch has no effect.

    >>> quiet = Quiet()
    >>> snapshots = [TopologyStatistics("t", "local", 1.0, batches, None, {}) for batches in (1, 1, 2, 3, 4)]
    >>> [quiet.reached(snapshot) for snapshot in snapshots]
    [False, False, False, True, True]
    """

    def __init__(self) -> None:
        self._seen: tuple[int, ...] | None = None
        self._since: int | None = None
        #: Whether nothing happened since the last snapshot, although trees are open or tuples wait.
        self.waits = False

    def reached(self, now: TopologyStatistics) -> bool:
        """Take one more snapshot. Return true once there is nothing left to do."""
        work = tuple(now.total(name) for name in _WORK)
        left = now.total("pending") + now.backlog
        self.waits = work == self._seen and left > 0
        if work != self._seen or left or not now.batches:
            self._seen, self._since = work, None
        elif self._since is None:
            self._since = now.batches
        return self._since is not None and now.batches >= self._since + 2
