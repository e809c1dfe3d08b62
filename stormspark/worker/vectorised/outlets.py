"""Outlets of vectorised tasks, the objects that emit record batches. A task has one outlet per stream.

Such an outlet treats a record batch as `stormspark.worker.tuples.outlets` treats a tuple. It chooses every receiver before the
first row leaves, and each copy of a row has one edge. The outlet passes rows to a function of type `Receive`. This function
belongs to a vectorised task of this worker, to the inbox of a task of this worker that is not vectorised, or to a lane to
another worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

from stormspark.api import TupleSource
from stormspark.errors import EmitError
from stormspark.extras import pyarrow as pa
from stormspark.worker.stories.recording import Inbox, Scene
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.tuples.unpacking import Refuse
from stormspark.worker.vectorised.roots import BatchRoots
from stormspark.worker.vectorised.routing import Route, Share
from stormspark.worker.vectorised.rows import readable_rows_of, rows_of

__all__ = ["BatchOutlet", "BatchReceiver", "BatchSubscription", "Receive", "as_tuples"]

#: A function that receives rows of one stream of one task, with the trees that they belong to.
Receive: TypeAlias = "Callable[[pa.RecordBatch, TupleSource, BatchRoots], None]"


class BatchReceiver(NamedTuple):
    """The receiver of rows for one task. ``name`` is the task's name, and ``here`` says whether the task is in this worker."""

    receive: Receive
    name: str
    here: bool


@dataclass(frozen=True)
class BatchSubscription:
    """One consumer of a stream: the route that shares out rows, and the receivers of the consumer's tasks."""

    consumer: str
    route: Route
    direct: bool
    receivers: Mapping[int, BatchReceiver]


def as_tuples(task: int, inbox: list[Delivery], refuse: Refuse) -> Receive:
    """Make a receiver for a task that is not vectorised. It turns rows into tuples, and refuses rows that Python can't hold."""

    def receive(batch: pa.RecordBatch, source: TupleSource, roots: BatchRoots) -> None:
        try:
            rows = rows_of(batch)
        except Exception:  # Arrow can hold times, maps and strings that Python can't hold
            receive_readable(batch, source, roots)
        else:
            inbox.extend(zip(rows, repeat(source), roots.each()))  # `each` may be endless, but `rows` ends

    def receive_readable(batch: pa.RecordBatch, source: TupleSource, roots: BatchRoots) -> None:
        for row, of_row in zip(readable_rows_of(batch), roots.each(), strict=False):
            if type(row) is tuple:
                inbox.append((row, source, of_row))
            else:
                place = f"of a row on stream {source.stream!r} of {source.component!r}, task {source.task}"
                refuse(task, of_row, f"{row}, {place}. Let its schema have a type that Python can hold")

    return receive


class BatchOutlet:
    """The sending end of one stream of a vectorised task. It checks record batches, and sends them to all subscribers."""

    def __init__(
        self,
        source: TupleSource,
        schema: pa.Schema,
        subscriptions: Sequence[BatchSubscription],
        scene: Scene,
    ) -> None:
        self.source, self.schema = source, schema
        #: `emitted`: how many rows were emitted so far. `copies`: how many copies of rows went to tasks.
        self.emitted = self.copies = 0
        self._subscriptions = subscriptions
        self._scene = scene
        self._by_task = {task: (one, to) for one in subscriptions for task, to in one.receivers.items()}

    @property
    def place(self) -> str:
        """The component, task and stream, for the beginning of a message."""
        source = self.source
        return f"component {source.component!r}, task {source.task}, stream {source.stream!r}"

    def checked(self, batch: Any) -> pa.RecordBatch:
        """Return ``batch`` as one record batch with the columns of the schema. Raises `EmitError` if its columns differ (A12)."""
        if isinstance(batch, pa.Table):
            batches = batch.combine_chunks().to_batches()
            batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=batch.schema)
        if not isinstance(batch, pa.RecordBatch):
            msg = f"{self.place}: emit_batch takes a pyarrow.RecordBatch or Table, got {type(batch).__name__}"
            raise EmitError(msg)
        if batch.schema.equals(self.schema):
            return batch
        got, declared = batch.schema, self.schema
        if got.names == declared.names and got.types == declared.types:
            # Only metadata or nullability differ.
            return pa.RecordBatch.from_arrays(batch.columns, schema=declared)
        msg = (
            f"{self.place}: the batch has other columns than the stream: expected {_columns(declared)}, got "
            f"{_columns(got)}; select the columns in this order, or cast them: batch.select([...]).cast(collector.schema())"
        )
        raise EmitError(msg)

    def send(self, batch: pa.RecordBatch, roots: BatchRoots) -> list[list[Share]]:
        """Send each row to the tasks that each subscriber's grouping chooses. Return the shares by subscriber (D15)."""
        # All receivers are chosen before the first row leaves, so that an error can't leave half an emit behind.
        routed = [one.route(batch) for one in self._subscriptions]
        self.emitted += batch.num_rows
        for one, shares in zip(self._subscriptions, routed, strict=True):
            for task, rows in shares:
                self._give(one.receivers[task], batch, roots, rows)
        return routed

    def send_direct(self, task: int, batch: pa.RecordBatch, roots: BatchRoots) -> list[list[Share]]:
        """Send all rows to one task (B9, D11)."""
        if type(task) is not int:
            msg = (
                f"{self.place}: emit_batch_direct takes a task id, got {task!r} of type {type(task).__name__}"
            )
            raise EmitError(msg)
        subscription, receiver = self._by_task.get(task, (None, None))
        if subscription is not None and not subscription.direct:
            msg = (
                f"{self.place}: emit_batch_direct to task {task} of {subscription.consumer!r}, which does not subscribe by a "
                f"direct grouping; let it subscribe by direct_grouping({self.source.component!r}), or use emit_batch"
            )
            raise EmitError(msg)
        self.emitted += batch.num_rows
        if receiver is None:
            return []  # a task that does not subscribe gets nothing, which is no error (B9)
        self._give(receiver, batch, roots, None)
        return [[(task, None)]]

    def _give(self, to: BatchReceiver, batch: pa.RecordBatch, roots: BatchRoots, rows: Any) -> None:
        share = batch if rows is None else batch.take(pa.array(rows))
        count = share.num_rows
        if not count:
            return
        roots = roots.take(rows)
        if roots.tracked:
            # The recording of a traced tree finds the receiver of its rows in `Scene.sending`.
            self._scene.sending = Inbox(to.name, [], to.here)
            roots.open_edges(count)
            self._scene.sending = None
        to.receive(share, self.source, roots)
        self.copies += count


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema) or "none"
