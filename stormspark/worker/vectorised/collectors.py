"""The collectors of vectorised tasks. `stormspark.api.arrow_components` says what they promise."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from stormspark.acker import Outcome, Tree, Verdict
from stormspark.api import DEFAULT_STREAM, EmitInfo
from stormspark.errors import EmitError
from stormspark.extras import pyarrow as pa
from stormspark.worker.tuples.edges import reset_timeouts
from stormspark.worker.tuples.salvage import error_text
from stormspark.worker.tuples.spout_collector import SpoutCollector
from stormspark.worker.vectorised.outlets import BatchOutlet
from stormspark.worker.vectorised.roots import UNTRACKED, BatchRoots, positions_of
from stormspark.worker.vectorised.routing import Share
from stormspark.worker.vectorised.rows import rows_of

if TYPE_CHECKING:
    from stormspark.worker.vectorised.tasks import ArrowBoltTask, ArrowSpoutTask

__all__ = ["ArrowCollector", "ArrowSpoutCollector"]


def _outlet(task: ArrowBoltTask | ArrowSpoutTask, stream: str) -> BatchOutlet:
    """Return the outlet of a stream. Raises `EmitError` for an unknown stream (B9), and on any thread but the task's."""
    outlet = task.batch_outlets.get(stream)
    if outlet is None:
        msg = (
            f"component {task.component.id!r}, task {task.id}: Unknown stream ID {stream!r}; it declares "
            f"{', '.join(map(repr, task.batch_outlets)) or 'no streams'} in declare_output_fields"
        )
        raise EmitError(msg)
    if task.guarded and get_ident() != task.thread:
        msg = (
            f"{task.name}: a vectorised component emits on the thread that called it, inside execute_batch or next_batch; let "
            f"its own threads leave what is to be emitted in a queue"  # W26
        )
        raise EmitError(msg)
    return outlet


def _call_emit_hooks(
    task: ArrowBoltTask | ArrowSpoutTask, stream: str, batch: pa.RecordBatch, routed: list[list[Share]]
) -> None:
    """Call the hooks for each emitted row, as for a tuple (J21)."""
    tasks: list[list[int]] = [[] for _ in range(batch.num_rows)]
    for shares in routed:
        for to, rows in shares:
            for row in range(batch.num_rows) if rows is None else rows.tolist():
                tasks[row].append(to)
    for values, targets in zip(rows_of(batch), tasks, strict=True):
        info = EmitInfo(values, stream, task.id, tuple(targets))
        for hook in task.hooks:
            hook.emit(info)


class ArrowCollector:
    """The collector of one task of an `ArrowBolt`. `begin` sets the current record batch."""

    def __init__(self, task: ArrowBoltTask) -> None:
        self._task = task
        self.source_component = self.source_stream = ""
        self._roots, self._count = UNTRACKED, 0
        #: One bool per row of the current record batch, which says whether the row has failed; None if no row has failed.
        self.failed: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    def begin(self, component: str, stream: str, roots: BatchRoots, count: int) -> None:
        """Begin with a record batch of ``count`` rows."""
        self.source_component, self.source_stream = component, stream
        self._roots, self._count = roots, count
        self.failed = None

    def emit_batch(self, batch: Any, stream: str = DEFAULT_STREAM, anchors: Any = None) -> None:
        """Emit the rows of a record batch."""
        self._emit(None, batch, stream, anchors)

    def emit_batch_direct(
        self, task: int, batch: Any, stream: str = DEFAULT_STREAM, anchors: Any = None
    ) -> None:
        """Emit the rows of a record batch to one task on a direct stream (D11)."""
        self._emit(task, batch, stream, anchors)

    def _emit(self, to: int | None, batch: Any, stream: str, anchors: Any) -> None:
        task = self._task
        outlet = _outlet(task, stream)
        batch = outlet.checked(batch)
        rows = batch.num_rows
        roots = self._roots.anchored(anchors, self._count, rows, outlet.place)
        if not rows:
            return
        routed = outlet.send(batch, roots) if to is None else outlet.send_direct(to, batch, roots)
        if task.hooks:
            _call_emit_hooks(task, stream, batch, routed)

    def fail(self, rows: Any, reason: str | None = None) -> None:
        """Fail some rows of the current record batch (E5)."""
        task = self._task
        if reason is not None and type(reason) is not str:  # an exception may not be picklable
            reason = error_text(reason)
        place = f"component {task.component.id!r}, task {task.id}: fail"
        positions = np.unique(positions_of(rows, self._count, place))
        if self.failed is None:
            self.failed = np.zeros(self._count, np.bool_)
        positions = positions[~self.failed[positions]]
        self.failed[positions] = True
        failed = self._roots.take(positions)
        # Nothing else would abort the batch for a row without a tree.
        if failed.any_in_no_tree(len(positions)):
            task.abort(f"failed {len(positions)} rows: {reason or 'no reason given'}")
        failed.fail(task.ledger, len(positions), Verdict(Outcome.FAILED, reason, task.component.id, task.id))

    def reset_timeout(self) -> None:
        """Begin the timeouts of the current record batch's trees anew (C11)."""
        reset_timeouts(self._task.ledger, tuple(self._roots.branches(self._count)))

    def schema(self, stream: str = DEFAULT_STREAM) -> pa.Schema:
        """Return the schema of a stream."""
        return _outlet(self._task, stream).schema

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._task.report_error(error)


class ArrowSpoutCollector(SpoutCollector):
    """The collector of one task of an `ArrowSpout`."""

    __slots__ = ()

    _task: ArrowSpoutTask

    def emit_batch(
        self,
        batch: Any,
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
        message_ids: Any = None,
    ) -> None:
        """Emit the rows of a record batch, as one tree, as one tree per row, or untracked (B6)."""
        task = self._task
        outlet = _outlet(task, stream)
        batch = outlet.checked(batch)
        count = batch.num_rows
        ids = self._ids(count, message_id, message_ids, outlet.place)
        if -1 < self.pause_at <= self.emitted:
            task.pause()
        # A record batch without rows counts as one row.
        before, self.emitted = self.emitted, self.emitted + max(count, 1)
        trees: list[Tree] = []
        roots = UNTRACKED
        if ids and self._acking:
            keys = self._new_trees(ids, before)
            trees = [key for key in keys if key is not None]
            roots = BatchRoots(keys, None if message_ids is None else np.arange(count))
        if count:
            routed = outlet.send(batch, roots)
            if task.hooks:
                _call_emit_hooks(task, stream, batch, routed)
        for tree in trees:
            self._begun(tree)
        if not self._acking:
            for one in ids:
                if one is not None:
                    self._acked_at_once(one)

    def _new_trees(self, ids: list[Any], before: int) -> list[Tree | None]:
        """Make a tree for each id that is not None."""
        account, now = self._account, self.now
        if self.new_tree is Tree:
            return [None if one is None else Tree(account, one, now) for one in ids]
        # Trees are made one by one, as if each row were an emit. While some trees are to be traced, ``new_tree`` may change
        # after each.
        after = self.emitted
        trees: list[Tree | None] = []
        for place, one in enumerate(ids, before + 1):
            self.emitted = place
            trees.append(None if one is None else self.new_tree(account, one, now))
        self.emitted = after
        return trees

    def _ids(self, count: int, message_id: Any, message_ids: Any, place: str) -> list[Any]:
        if message_ids is None:
            return [] if message_id is None else [message_id]
        if message_id is not None:
            msg = f"{place}: emit_batch takes one message_id for all rows, or message_ids with one per row, not both"
            raise EmitError(msg)
        ids = (
            message_ids.to_pylist()
            if isinstance(message_ids, pa.Array | pa.ChunkedArray)
            else list(message_ids)
        )
        if len(ids) != count:
            msg = f"{place}: there are {len(ids)} message ids for {count} rows: each row has one, or null"
            raise EmitError(msg)
        return ids

    def schema(self, stream: str = DEFAULT_STREAM) -> pa.Schema:
        """Return the schema of a stream."""
        return _outlet(self._task, stream).schema

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM, message_id: Any = None) -> list[int]:
        """Raise `EmitError`, because a vectorised spout emits only record batches."""
        self._refuse()

    def emit_direct(self, *_args: Any, **_named: Any) -> None:
        """Raise `EmitError`, because a vectorised spout emits only record batches."""
        self._refuse()

    def group(self, message_id: Hashable) -> Any:
        """Raise `EmitError`, because a vectorised spout emits only record batches."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        msg = (
            f"component {self._task.component.id!r}, task {self._task.id}: an ArrowSpout emits batches: emit_batch(batch), with "
            f"one message id for all of its rows or one for each"
        )
        raise EmitError(msg)
