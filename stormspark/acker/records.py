"""The durable acker's knowledge of source rows that are open at the end of a batch.

A *record* stands for one open row. It has a random ``root``, and the acker keeps one XOR per root. The record's ``value`` enters
that XOR when a task opens the record, and again when the task closes the record. So a root is done if its XOR is zero (E2). While
a task lives, its worker's ledger decides verdicts. When the task has died, its records are still open, and their rows are emitted
again.

A record is *late* if it is older than the watermark. The watermark is the acker's time minus a fixed delay. Spark may drop
changes of late records. So old records are closed before they are late, and new ones are opened in their place
(`AckerTime.refresh_before`). A long pause between two commits must not make a record late, so the acker's time is not the time of
a clock. With each commit of the journal it advances by the time since the last commit, but at most by a quarter of the delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["AckerTime", "Change", "Record"]


class Record(NamedTuple):
    """One open row in the durable acker.

    ``root`` and ``value`` are random signed integers of 64 bits. ``created`` is the acker's time when the record was opened.
    """

    root: int
    created: int
    value: int


class Change(NamedTuple):
    """A change in the journal: a record is opened, with its row, or closed.

    For a record that is closed, ``batch`` and ``row`` are None. For a record that is opened, ``batch`` is the batch that brought
    the row, and ``row`` holds what is needed to emit the row again. ``message_id`` is for people who read the journal.
    """

    record: Record
    batch: int | None = None
    message_id: str | None = None
    row: bytes | None = None


@dataclass
class AckerTime:
    """The acker's time in microseconds at the next commit, and the bounds that follow from this time.

    ``delay`` is the watermark's delay in seconds. The acker's query reports records that are open and older than the delay.

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
    #: The number of the last attempt that has tried to commit changes to the journal. The journal has no changes of later
    #: attempts.
    tried: int = -1

    def committed(self, seconds: float) -> None:
        """Advance the time, because a commit was written ``seconds`` after the previous commit."""
        self.at += round(min(max(seconds, 0.0), self.delay / 4) * 1_000_000)

    @property
    def refresh_before(self) -> int:
        """The acker's time before which a record is too old. Such records are closed, and others are opened in their place.

        All other records are at most half of the delay old, and the next commit comes at most a quarter of the delay later.
        So a record is closed when it is at most three quarters of the delay old. It becomes late only after a whole delay.
        """
        return self.at - round(self.delay * 500_000)
