"""What the durable acker knows of a source row that is open at the end of a batch (tier 3).

A record is one edge: its ``value`` is XORed to its root when the row's task opens it and again when the task
closes it, so a root whose XOR is zero is done (E2). While a task lives its ledger decides verdicts; when it
has died its records are still open, and their rows are emitted again.

The acker's time is not a clock's: it only goes on by commits, and by at most a quarter of the watermark's
delay from one to the next (`AckerTime`). So nothing that is written is ever late, however long the pause
between two commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["AckerTime", "Change", "Record"]


class Record(NamedTuple):
    """``root`` and ``value`` are random, 64 bits with sign; ``created`` is the acker's time at which it was
    opened.
    """

    root: int
    created: int
    value: int


class Change(NamedTuple):
    """A record is opened, with its row, or closed: then ``batch`` is None and there is no row.

    ``message_id`` is for people, ``row`` is what it takes to emit it again; ``batch`` is the one that brought
    it.
    """

    record: Record
    batch: int | None = None
    message_id: str | None = None
    row: bytes | None = None


@dataclass
class AckerTime:
    """The time of the next commit in microseconds, how old a record may get, and which attempts may have been written down.

    ``delay`` is the watermark's, in seconds: what is older than that and still open is told by the acker
    query.

    >>> time = AckerTime(delay=90.0, at=10_000_000)
    >>> time.committed(5.0); time.at
    15000000
    >>> time.committed(3600.0); time.at          # an hour's outage makes nothing late
    37500000
    >>> time.refresh_before
    -7500000
    """

    delay: float
    at: int = 0
    #: The last attempt at a batch whose changes may be in the journal; what later attempts told is not.
    tried: int = -1

    def committed(self, seconds: float) -> None:
        """A commit was written ``seconds`` after the one before: time goes on."""
        self.at += round(min(max(seconds, 0.0), self.delay / 4) * 1_000_000)

    @property
    def refresh_before(self) -> int:
        """Records older than this are opened anew.

        One that is not is at most half of the delay old, so at most three quarters when the next commit
        closes it, and the watermark is a whole delay behind.
        """
        return self.at - round(self.delay * 500_000)
