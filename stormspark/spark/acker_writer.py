"""What the driver writes into the durable acker's journal: workers' change sets, each once, and records that it closes itself.

No Spark, no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress

import pyarrow as pa

from stormspark.acker.records import Change, Record
from stormspark.checkpoint.acker_journal import AckerJournal
from stormspark.errors import CheckpointError
from stormspark.worker.sources.acker_log import change_table
from stormspark.worker.step import WorkerReport

__all__ = ["AckerWriter"]


class AckerWriter:
    """For one driver. `close` and `tried` are for any thread, the rest is for the data query's.

    A commit that raised is written or not, and that is found out as soon as the journal can be read again. Until then its change
    sets count as written for workers (`tried`), which leave them as they are, and as not written here.
    """

    def __init__(self, journal: AckerJournal) -> None:
        self._journal = journal
        self._written: dict[tuple[int, int], int] = {}  # by worker and incarnation: the last number
        # The last attempt whose commit was tried, and the last one that is known to be written.
        self._tried = self._sure = -1
        # What the last commit that was tried said, where it is not known to be written: numbers, closed.
        self._unsettled: tuple[dict[tuple[int, int], int], list[Record]] | None = None
        self._to_close: set[Record] = set()  # a set: closed twice would be open
        self._lock = threading.Lock()

    @property
    def tried(self) -> int:
        """The last attempt that may be written; -1: none. Of the attempts after it nothing is."""
        return self._tried

    def settle(self) -> None:
        """Find out what became of the last commit, where that is not known and the journal can be read."""
        with suppress(OSError, CheckpointError):
            self._settle()

    def close(self, records: Iterable[Record]) -> None:
        """Close these, in the next commit."""
        with self._lock:
            self._to_close.update(records)

    def write(self, reports: Iterable[WorkerReport], attempt: int, at: int) -> bool:
        """Write what the reports of an ``attempt`` at a batch bring and is not written yet, in one commit at the acker's time
        ``at``; false: there is nothing.

        Raises OSError: then it may be written or not, and the next call finds out; `CheckpointError` where what is there can't be
        read; `FencedError` where a later driver has written.
        """
        self._settle()
        tables: list[pa.Table] = []
        numbers: dict[tuple[int, int], int] = {}
        for report in reports:
            life = (report.worker, report.incarnation)
            for number, data in report.acker:
                if number > self._written.get(life, 0):
                    tables.append(pa.ipc.open_stream(data).read_all())
                    numbers[life] = number
        with self._lock:
            closing = list(self._to_close)
        if closing:
            tables.append(change_table("", -1, [Change(record) for record in closing]))
        if not tables:
            return False
        self._unsettled, self._tried = (numbers, closing), attempt
        self._journal.append(pa.concat_tables(tables), at)
        self._count()
        return True

    def _settle(self) -> None:
        """Find out what became of the last commit, where that is not known."""
        if self._unsettled is None:
            return
        if self._journal.settle():
            self._count()
        else:
            # Workers may make one of what it said and what comes: else a disk that stays full made reports larger and larger.
            self._unsettled, self._tried = None, self._sure

    def _count(self) -> None:
        """The last commit is written."""
        assert self._unsettled is not None
        numbers, closed = self._unsettled
        self._unsettled, self._sure = None, self._tried
        self._written |= numbers
        with self._lock:
            self._to_close -= set(closed)
