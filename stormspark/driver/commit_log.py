"""The last commits of a topology whose batches are transactions, and the last attempts that were taken back."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

__all__ = ["Commit", "CommitLog", "Commits", "TakenBack"]

_KEPT = 50
#: A reason may hold the output of a program. So many characters of it are kept.
_MOST_OF_REASON = 2000


class Commit(NamedTuple):
    """A committed batch. Commits without tuples that follow each other are one entry, with the number of the last batch."""

    batch: int
    #: In seconds since 1970.
    at: float
    #: Seconds since the commit before, or since the topology began. Of several batches, the sum.
    seconds: float
    #: How many tuples spouts have emitted and bolts have executed since the commit before, in attempts taken back, too.
    emitted: int
    executed: int
    rounds: int
    #: How many batches the entry stands for.
    batches: int = 1


class TakenBack(NamedTuple):
    """An attempt at a batch that was taken back, so that the batch ran again. ``at`` is in seconds since 1970.

    ``batch`` is -1 if the attempt failed before its first batch.
    """

    batch: int
    at: float
    reason: str


class Commits(NamedTuple):
    """The last commits and the last attempts that were taken back, the newest first."""

    committed: tuple[Commit, ...]
    taken_back: tuple[TakenBack, ...]


class CommitLog:
    """Keeps the last 50 entries of both kinds. Times are arguments, and totals are those since the topology began.

    ``now`` is the beginning of the topology. Its clock, which may be any, is also that of `commit`. Not thread-safe.

    >>> log = CommitLog(now=10.0)
    >>> log.commit(0, 1, emitted=2, executed=4, now=10.5, at=1000.0)
    >>> for batch in 1, 2:
    ...     log.commit(batch, 1, emitted=2, executed=4, now=11.0 + batch, at=1001.0 + batch)
    >>> log.commits().committed[0]
    Commit(batch=2, at=1003.0, seconds=2.5, emitted=0, executed=0, rounds=2, batches=2)
    """

    def __init__(self, now: float) -> None:
        self._commits: deque[Commit] = deque(maxlen=_KEPT)
        self._taken_back: deque[TakenBack] = deque(maxlen=_KEPT)
        self._last, self._emitted, self._executed = now, 0, 0

    def commit(self, batch: int, rounds: int, *, emitted: int, executed: int, now: float, at: float) -> None:
        """Add a commit."""
        one = Commit(batch, at, now - self._last, emitted - self._emitted, executed - self._executed, rounds)
        self._last, self._emitted, self._executed = now, emitted, executed
        before = self._commits[-1] if self._commits else None
        if before is not None and not (before.emitted or before.executed or one.emitted or one.executed):
            self._commits[-1] = one._replace(
                seconds=before.seconds + one.seconds,
                rounds=before.rounds + one.rounds,
                batches=before.batches + 1,
            )
        else:
            self._commits.append(one)

    def take_back(self, batch: int, reason: str, *, at: float) -> None:
        """Add an attempt that was taken back."""
        self._taken_back.append(TakenBack(batch, at, reason[:_MOST_OF_REASON]))

    def commits(self) -> Commits:
        """Return what is kept."""
        return Commits(tuple(reversed(self._commits)), tuple(reversed(self._taken_back)))
