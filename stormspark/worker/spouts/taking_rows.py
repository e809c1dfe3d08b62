"""The part of a spout's task that deals with the rows of a source. It queues the rows, makes the spout that emits them, and says
which rows are open when a batch ends.

A spout without a source gets no rows. Rows outlive the instances of the spout (`SpoutSource`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from stormspark.acker import SpoutAccount, Tree
from stormspark.acker.records import Record
from stormspark.api import SourceProgress, SourceSpout, Spout
from stormspark.checkpoint.state_files import TaskChanges
from stormspark.errors import SerializationError
from stormspark.worker.sources.row_codec import readable
from stormspark.worker.sources.row_spout import RowSpout
from stormspark.worker.sources.rows import Row
from stormspark.worker.sources.spout_source import SpoutSource
from stormspark.worker.spouts.life import SpoutLife
from stormspark.worker.starting_again import StartsAgain
from stormspark.working_folder import from_start

__all__ = ["TakesRows"]


class TakesRows(StartsAgain):
    """The part of a `stormspark.worker.spout_task.SpoutTask` that deals with rows."""

    def __init__(self, *args: Any, acking: bool, waits_for_commit: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._acking, self.waits_for_commit = acking, waits_for_commit
        self.in_transactions = waits_for_commit
        self.spout: Spout
        self.life = SpoutLife()
        self.source = SpoutSource(self.component, self.index, self._instance)
        self.account = SpoutAccount(self.id)

    def take_rows(self, batch: int, partition: int, payload: bytes) -> None:
        """Queue rows that Spark has read for this task. The rows wait until the spout emits them, and may come before the spout
        is open.
        """
        self.source.rows_to_come().take(batch, partition, payload)

    def add_rows(self, batch: int, partition: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Queue rows of the local engine, as `take_rows` does. These rows are Python objects already."""
        self.source.rows_to_come().add(batch, partition, rows)

    def adopt(
        self, rows: Iterable[tuple[Record | None, Row]], origin: str = "that its earlier worker left open"
    ) -> None:
        """Emit again the rows that this task left open in an earlier incarnation of the worker, or that are of another
        ``origin``.
        """
        adopted = self.source.rows_to_come().adopt(rows)
        if adopted:
            self.logger.info("%s emits %d rows again %s", self.name, adopted, origin)

    def adopt_encoded(
        self, rows: Iterable[tuple[tuple[int, int, int] | None, bytes]], *, letters: int | None
    ) -> None:
        """Emit again the rows that an earlier incarnation of the worker left open, as the durable acker has them. If ``letters``
        is a batch, the rows were dead letters instead, and come when that batch begins.
        """
        found = (
            (
                None if record is None else Record(*record),
                readable(row, record or row, "the durable acker's journal"),
            )
            for record, row in rows
        )
        if letters is None:
            self.adopt(found)
        else:
            self.source.letters_to_come.setdefault(letters, []).extend(row for _, row in found)

    def batch_begins(self, batch: int) -> None:
        """Begin a batch of a number that this task has not had yet."""
        self.life.batch_begins()
        to_come = self.source.letters_to_come
        for due in sorted(to_come)[::-1] if to_come else ():
            if due <= batch:
                self.adopt(((None, row) for row in to_come.pop(due)), "that were dead letters")

    def progress(self, batch: int) -> SourceProgress | None:
        """Return how far the spout has come with its source; None for a spout without a source."""
        return self.source.progress(self._row_spout, batch) if self.component.source else None

    @property
    def rows_waiting(self) -> int:
        """How many rows of a source wait to be emitted in this batch, or to be emitted again."""
        return len(self.source.rows)

    @property
    def rows_to_come(self) -> int:
        """How many rows of dead letters come with later batches."""
        return sum(map(len, self.source.letters_to_come.values()))

    @property
    def rows_left(self) -> int:
        """How many of `rows_waiting` have to be emitted before the batch can end, and how many dead letters to be reported.

        If the spout was not active in the batch, rows of committed batches do not count, because they wait until the spout is
        active again (B13).
        """
        letters = self.source.letters
        waiting = self.source.waiting(held_too=self.life.was_active_in_batch)
        return waiting if letters is None else waiting + letters.left

    def _around(self, source: SourceSpout) -> RowSpout:
        """Make the spout that emits the rows of a source."""
        self.source.follow(source)
        return RowSpout(
            source,
            self.source.rows,
            self._clock,
            self.source.letters,
            (folder := self._settings.dead_letter_dir) and from_start(folder),
            self._gave_up,
            self._ack_without_tuple,
            done_by_commit=self.waits_for_commit and self._acking,
        )

    @property
    def _row_spout(self) -> RowSpout | None:
        """The `RowSpout` around the source; None if the spout is not open, or has no source."""
        is_open = self.life.is_open and not self.is_down
        return self.spout if is_open and isinstance(self.spout, RowSpout) else None

    def _gave_up(self, reason: str) -> None:
        self.counters.dead_letters += 1
        self.report_error(f"dead letter: {reason}")

    def _ack_without_tuple(self, message_id: Hashable) -> None:
        """Ack a row that became no tuple. In a transaction the row counts as a tree without edges, and is acked with its
        batch.
        """
        if self.waits_for_commit:
            tree = Tree(self.account, message_id, self._clock())
            self._ledger.begin(tree)
            self._ledger.drained(tree)
        else:
            self.spout.ack(message_id)

    def restore_rows(self, found: Iterable[tuple[int, bytes, bytes]]) -> None:
        """Emit again the rows that were open at the last commit. ``found`` comes from the state table; see `HeldRows.load`."""
        self.adopt((None, row) for row in self.source.held.load(found))

    def held_rows(self) -> list[TaskChanges]:
        """Return the open rows that the prepared batch adds to the state table, and those that it removes; see `HeldRows`."""
        try:
            return self.source.held_rows(self.account.ended)
        except SerializationError as error:
            self.abort(f"a bolt keeps a tuple over the end of its batch, and {error}")
            return []
