"""What the durable acker knows of a source row that is open at the end of a batch (tier 3).

A record is one edge: its ``value`` is XORed to its root when the row's task opens it and again when the task closes it, so a root whose XOR
is zero is done (E2). The tasks' ledgers decide verdicts as long as they live; a record whose task has died is still open, and
the row is emitted again.

The acker's time, seconds that begin at 0 with the first record, is not a clock's: it only goes on by commits, and by at most a quarter of the
watermark's delay from one to the next (`AckerTime`). So nothing that is written is ever late, whatever happened between two commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["AckerTime", "Change", "Record"]


class Record(NamedTuple):
    """``root`` and ``value`` are random, 64 bits with sign; ``created`` is the acker's time at which it was opened."""

    root: int
    created: float
    value: int


class Change(NamedTuple):
    """A record is opened, with its row, or closed: then ``batch`` is None and there is no row.

    ``message_id`` is for people, ``source`` is the row, pickled; ``batch`` is the one that brought it.
    """

    record: Record
    batch: int | None
    message_id: str | None = None
    source: bytes | None = None


@dataclass
class AckerTime:
    """The time of the next commit, and how old a record may get.

    ``delay`` is the watermark's: seconds after which what is still open is told by the acker query.

    >>> time = AckerTime(delay=90.0, at=10.0)
    >>> time.committed(5.0); time.at
    15.0
    >>> time.committed(3600.0); time.at          # an hour's outage makes nothing late
    37.5
    >>> time.refresh_before
    -7.5
    """

    delay: float
    at: float = 0.0

    def committed(self, seconds: float) -> None:
        """A commit was written ``seconds`` after the one before: time goes on."""
        self.at += min(max(seconds, 0.0), self.delay / 4)

    @property
    def refresh_before(self) -> float:
        """Records older than this are opened anew.

        One that is not is at most half of the delay old now, so at most three quarters when the next commit closes it: the
        watermark is at most at the whole.
        """
        return self.at - self.delay / 2
