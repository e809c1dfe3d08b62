"""Writes the durable acker's journal.

The journal gets changes from two sides. A worker reports *change sets*, which are numbered, and the writer writes each change set
once. The driver closes records, and the writer adds the changes that close them. This module uses neither Spark nor a clock.
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
    """The writer of one driver.

    Any thread may use `close` and `tried`. The other methods are for the thread of the data query, which runs the topology.

    If a commit raises an error, the commit may be written or not. The writer finds that out as soon as it can read the journal
    again. Until then the workers treat the commit's change sets as written (`tried`) and don't merge them with later ones. The
    writer treats them as not written.
    """

    def __init__(self, journal: AckerJournal) -> None:
        self._journal = journal
        # The number of the last change set that is known to be written, by worker and incarnation.
        self._written: dict[tuple[int, int], int] = {}
        # `_tried` is the last attempt that has tried to commit. `_sure` is the last attempt with a commit that is known to be
        # written.
        self._tried = self._sure = -1
        # While it is unknown whether the last commit is written: the numbers of its change sets, and the records that it closes.
        self._unsettled: tuple[dict[tuple[int, int], int], list[Record]] | None = None
        self._to_close: set[Record] = set()  # a set, because closing a record twice would open it again
        self._lock = threading.Lock()

    @property
    def tried(self) -> int:
        """The last attempt whose changes may be in the journal; -1 if there is none."""
        return self._tried

    def settle(self) -> None:
        """If it is unknown whether the last commit is written, find that out. Do nothing if the journal can't be read."""
        with suppress(OSError, CheckpointError):
            self._settle()

    def close(self, records: Iterable[Record]) -> None:
        """Close these records in the next commit."""
        with self._lock:
            self._to_close.update(records)

    def write(self, reports: Iterable[WorkerReport], attempt: int, at: int) -> bool:
        """Write the changes in a batch's reports that are not written yet, in one commit.

        ``attempt`` is the attempt that ran the batch, and ``at`` is the acker's time. Return false if there are no such changes.
        If this raises OSError, the changes may be written or not, and the next call finds out. Raises `CheckpointError` if
        existing files can't be read, and `FencedError` if a later driver has written.
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
        """If it is unknown whether the last commit is written, find that out."""
        if self._unsettled is None:
            return
        if self._journal.settle():
            self._count()
        else:
            # Now workers may merge these changes with later ones. Without merging, reports would grow for as long as a disk stays
            # full.
            self._unsettled, self._tried = None, self._sure

    def _count(self) -> None:
        """Count the last commit as written."""
        assert self._unsettled is not None
        numbers, closed = self._unsettled
        self._unsettled, self._sure = None, self._tried
        self._written |= numbers
        with self._lock:
            self._to_close -= set(closed)
