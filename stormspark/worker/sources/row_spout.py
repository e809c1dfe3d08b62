"""The spout around a `SourceSpout`. It emits one row per call, handles the verdict, and emits failed rows again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from stormspark.acker import Outcome, Verdict
from stormspark.api import (
    DEFAULT_STREAM,
    Routed,
    SourceSpout,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
)
from stormspark.errors import EmitError
from stormspark.worker.sources.letters import DeadLetters, GivenUp, LetterPlace
from stormspark.worker.sources.rows import Row, message_id_of
from stormspark.worker.sources.source_rows import SourceRows
from stormspark.worker.tuples.salvage import error_text

__all__ = ["RowSpout"]

#: The outcomes of a tree that do not count as failures of its row: the batch was rolled back, or a worker was lost.
_INNOCENT = (Outcome.TAKEN_BACK, Outcome.WORKER_LOST)
#: If the dead letter of a row can't be written, the row comes again after this many seconds. If the letter only has to wait for
#: the next report, it waits for `_ROOM_SECS`.
_LETTER_AGAIN_SECS, _ROOM_SECS = 5.0, 0.1
_FAILED_TOO_OFTEN = "its tree failed in too many attempts at its batch (stormspark.exactly.once.attempts)"


class RowSpout(Spout):
    """The spout that a task makes around each instance of its `SourceSpout`. ``rows`` belong to the task, and outlive this spout.

    ``letters`` takes the dead letters. If it is None, they go to the task's own file in the folder ``letter_dir``, or to the
    task's log. ``gave_up`` is called with the reason of each dead letter that is written. If ``done_by_commit``, a row is done
    when its batch is committed, even if ``ack`` raises.

    ``done`` is called with the id of a row that becomes no tuple, so that the task acks the row. There is one exception: without
    ``done_by_commit``, a row whose ``translate`` raises, or whose emit is refused, is only marked as done in ``rows``.
    """

    def __init__(
        self,
        source: SourceSpout,
        rows: SourceRows,
        clock: Callable[[], float],
        letters: LetterPlace | None,
        letter_dir: str | None,
        gave_up: Callable[[str], None],
        done: Callable[[Hashable], None],
        *,
        done_by_commit: bool,
    ) -> None:
        self.source = source
        self._rows, self._clock, self._gave_up, self._done = rows, clock, gave_up, done
        self._place, self._letter_dir = letters, letter_dir
        self._done_by_commit = done_by_commit

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Open the source in this task. Rows that an earlier instance left open are emitted again."""
        self._collector, self._context = collector, context
        self._letters = self._place or DeadLetters(self._letter_dir, context)
        self.source._report = self._report_error = collector.report_error
        self.source.open(conf, context)
        self._rows.reopen()

    def next_tuple(self) -> None:
        """Emit one row. On the way to it, ack or give up rows that become no tuple.

        If the dead letter of a row can't be written, the row stays open and comes again.
        """
        while (row := self._rows.next(self._clock())) is not None:
            if row.unreadable is not None or row.id in self._rows.skipped:
                if self._give_up(row, row.unreadable or self._failed_too_often(row)):
                    self._done(row.id)
                continue
            try:
                translated = self.source.translate(row.values)
            except (Exception, SystemExit) as error:
                self._give_up_untranslated(row, f"translate raised {error_text(error)}")
                continue
            if translated is None:
                self._done(row.id)
                continue
            values, stream = translated if isinstance(translated, Routed) else (translated, DEFAULT_STREAM)
            try:
                self._collector.emit(values, stream, message_id=row.id if self.source.reliable else None)
            except EmitError as error:
                self._give_up_untranslated(row, f"the result of translate can't be emitted: {error}")
                continue
            if not self.source.reliable:
                self._rows.done(row.id)
            return

    def ack(self, message_id: Hashable) -> None:
        """Call the source's ``ack``. Before that, mark the row as done, unless ``done_by_commit``.

        Without ``done_by_commit``, do nothing if the row was emitted in an earlier attempt at its batch. Such a row comes again
        and is acked later.
        """
        if not self._done_by_commit:
            if not self._rows.knows(message_id):
                return
            self._rows.done(message_id)
        self.source.ack(message_id_of(message_id))

    def fail(self, message_id: Hashable) -> None:
        """Let the row come again later, or give it up. Then call the source's ``fail``.

        A row is given up only if its dead letter can be written. Without ``done_by_commit``, do nothing if the row was emitted in
        an earlier attempt at its batch.
        """
        if not self._done_by_commit and not self._rows.knows(message_id):
            return
        verdict = self._collector.verdict
        innocent = verdict is not None and verdict.outcome in _INNOCENT
        given_up = self._rows.failed(message_id, self._clock(), innocent=innocent)
        if given_up is not None and self._write_or_wait(
            given_up, f"given up after its last retry: {self._told(verdict)}"
        ):
            self._rows.done(message_id)
        self.source.fail(message_id_of(message_id))

    def _told(self, verdict: Verdict | None) -> str:
        """Return the verdict as text. It names the bolt's task as logs do: by its index, which is also in the name of its log."""
        if verdict is None or verdict.component is None or verdict.task is None:
            return str(verdict)
        index = self._context.component_tasks(verdict.component).index(verdict.task)
        return str(replace(verdict, task=index))

    def close(self) -> None:
        """Close the source."""
        self.source.close()

    def settle(self) -> None:
        """Count the rows that a batch gives up, because the worker prepares the batch. Raises OSError if their letters can't be
        written.
        """
        for reason in self._letters.settle():
            self._gave_up(reason)

    def take_back(self) -> None:
        """Drop the dead letters of a batch that is rolled back, because its rows come again."""
        self._letters.take_back()

    def _failed_too_often(self, row: Row) -> str:
        why = self._rows.why.get(row.id)
        return _FAILED_TOO_OFTEN if why is None else f"{_FAILED_TOO_OFTEN}, the last time: {why}"

    def _give_up_untranslated(self, row: Row, reason: str) -> None:
        if self._give_up(row, reason):
            (self._done if self._done_by_commit else self._rows.done)(row.id)

    def _give_up(self, row: Row, reason: str) -> bool:
        if self._done_by_commit:
            self._letters.note(row, reason)
            return True
        return self._write_or_wait(row, reason)

    def _write_or_wait(self, row: Row, reason: str) -> bool:
        """Write a dead letter, and return true. If the write fails, return false, so that the row stays open and comes again.

        A failed write must not lose the row, because a disk may be full only for a while. A row whose letter merely has to wait
        is not emitted any more.
        """
        now = self._clock()
        if not self._letters.has_room:
            self._rows.later(row._replace(unreadable=GivenUp(reason)), now + _ROOM_SECS)
            return False
        try:
            self._letters.add(row, reason)
        except OSError as error:
            self._report_error(
                f"the dead letter of row {row.message_id!r:.300} can't be written, so the row comes again: {error}"
            )
            self._rows.later(row, now + _LETTER_AGAIN_SECS)
            return False
        self._gave_up(reason)
        return True
