"""The rows that have come for a spout's task, and what becomes of them when their batch is committed or runs again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from stormspark.acker import ACKED, Tree
from stormspark.acker.records import AckerTime, Change
from stormspark.api import SourceProgress, SourceSpout
from stormspark.api.retry import ExponentialBackoff
from stormspark.checkpoint.state_files import TaskChanges
from stormspark.plan.physical import ComponentPlan
from stormspark.spi import RangeSpout
from stormspark.worker.sources.held_rows import HeldRows
from stormspark.worker.sources.letters import LetterLog
from stormspark.worker.sources.row_spout import RowSpout
from stormspark.worker.sources.rows import Row, comparable
from stormspark.worker.sources.source_rows import SourceRows

__all__ = ["SpoutSource"]

#: At most this many failed rows are reported per attempt at a batch.
_MOST_FAILED_ROWS = 1000


class SpoutSource:
    """The source of one spout's task. The task of a spout that reads no source has such an object, too, but gets no rows.

    Rows may come before the spout is opened. In that case ``make`` makes an instance, whose settings say how to treat the rows.
    """

    def __init__(self, component: ComponentPlan, index: int, make: Callable[[], SourceSpout]) -> None:
        self._make = make
        self._is_known = False
        self._reliable = True
        #: The rows, which outlive the instances of the spout. Until the first instance is known, this is an empty object.
        self.rows = SourceRows(ExponentialBackoff(), ())
        #: Rows that stay open beyond the end of their batch, if batches are transactions.
        self.held = HeldRows(component.id, index)
        self._failed: list[Hashable] = []
        #: The dead letters for the reports; None if they don't go to the driver.
        self.letters: LetterLog | None = None
        #: The rows of earlier dead letters that are emitted again, by the batch with which they come.
        self.letters_to_come: dict[int, list[Row]] = {}

    # -- rows come -------------------------------------------------------------------------------------------

    def follow(self, source: SourceSpout) -> None:
        """Take over the settings of this new instance of the spout.

        The first instance says how rows are read, retried and identified. A later one changes only how rows are read.
        """
        self._reliable = source.reliable
        ranges = source if isinstance(source, RangeSpout) else None
        if not self._is_known:
            self._is_known = True
            self.rows = SourceRows(source.retry, source.id_columns, ranges)
        elif ranges is not None:
            self.rows.read_with(ranges)

    def rows_to_come(self) -> SourceRows:
        """Return the object to which new rows are added. Make an instance of the spout if there was none yet."""
        if not self._is_known:
            self.follow(self._make())
        return self.rows

    def skip(self, rows: Iterable[Hashable]) -> None:
        """Let these rows become dead letters instead of tuples, because they failed in too many attempts at their batch."""
        self.rows.skipped = frozenset(map(comparable, rows))

    def progress(self, spout: RowSpout | None, batch: int) -> SourceProgress:
        """Return how far ``spout`` has come with its source. ``spout`` is the opened instance, or None if no instance is open."""
        rows = self.rows
        if spout is None:
            return SourceProgress(len(rows))
        came, rows.came = rows.came, 0
        every = spout.source.low_marks_every
        wants_marks = every is not None and batch % every == 0
        marks = spout.source.low_marks(rows.open_ids(), rows.unread()) if wants_marks else None
        return SourceProgress(rows.waiting, marks, came)

    # -- what becomes of the rows ----------------------------------------------------------------------------

    def waiting(self, *, held_too: bool) -> int:
        """Return how many rows wait to be emitted, or to be emitted again. Held rows count only if ``held_too``."""
        return len(self.rows) if held_too else self.rows.waiting_but(self.held)

    def acker_changes(self, time: AckerTime, draw: Callable[[int], Sequence[int]]) -> list[Change]:
        """Return the changes of these rows that the durable acker has to learn; see `OpenRows.changes`.

        An unreliable spout has no such changes. It must not emit a row twice, so no row may come back (K2).
        """
        return self.rows.changes(time, draw) if self._is_known and self._reliable else []

    def held_rows(self, ended: Sequence[Tree]) -> list[TaskChanges]:
        """Return the changes to the held rows in the state table, for the batch that is being prepared.

        ``ended`` are the trees of the batch that have ended. Raises `SerializationError` if a row could not be read back from
        the table.
        """
        all_done = len(ended) == self.rows.open or not self._reliable
        if not self._is_known or (all_done and not self.held):
            return []
        acked = {tree.message_id for tree in ended if tree.verdict is ACKED}
        return self.held.changes(self.rows.open_rows(acked))

    def note_failed(self, tree: Tree) -> None:
        """Remember that the tree of a row has failed in this attempt at the batch, and why."""
        if self._is_known and len(self._failed) < _MOST_FAILED_ROWS:
            self._failed.append(tree.message_id)
            self.rows.why[tree.message_id] = str(tree.verdict)

    def take_failed(self) -> list[Hashable]:
        """Return the ids of rows whose trees failed in this attempt at the batch, at most `_MOST_FAILED_ROWS` of them."""
        failed, self._failed = self._failed, []
        return failed

    def commit(self, acked: Iterable[Hashable]) -> None:
        """Remove the ``acked`` rows, which are done because the batch is committed. Also take over the changes of held rows."""
        if self._is_known:
            self.rows.commit(acked)
            self.held.commit()

    def forget_batch(self, batch: int) -> None:
        """Forget the rows of the batch, because the batch runs again and brings them again. Trees of the earlier attempt stay
        open.
        """
        self.rows.forget_batch(batch, trees_live_on=True)
        if self.letters is not None:
            self.letters.forget_batch(batch)

    def roll_back(self, batch: int) -> None:
        """Forget the rows of the batch, because it is a transaction that runs again and brings them again."""
        self.rows.forget_batch(batch)
        self.held.roll_back()
        self._failed.clear()
        if self.letters is not None:
            self.letters.take_back()
