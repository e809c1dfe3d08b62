"""Vectorised components: spouts and bolts that take and emit whole batches of rows.

A row of a batch is a tuple in every respect: it is routed, acked, failed and counted like one, and a bolt that is not vectorised
gets it as one. Vectorised is only how the code is written: one call for thousands of tuples, in the columns of a
``pyarrow.RecordBatch``. Streams that such a component emits or subscribes to are typed: their fields are declared by a
``pyarrow.Schema``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from stormspark.api.components import Component, Spout
from stormspark.api.streams import DEFAULT_STREAM

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from stormspark.api.context import TopologyContext
    from stormspark.api.tuples import Tuple

__all__ = [
    "ROW_BY_ROW",
    "Anchors",
    "ArrowBolt",
    "ArrowOutputCollector",
    "ArrowSpout",
    "ArrowSpoutOutputCollector",
    "PandasBolt",
    "PandasOutputCollector",
    "Rows",
]

#: The anchors of a batch whose row i comes of input row i.
ROW_BY_ROW: Final = "row by row"

#: Positions of rows of the batch at hand, or one bool a row.
Rows: TypeAlias = "pa.Array | pa.ChunkedArray | NDArray[np.integer[Any]] | NDArray[np.bool_] | Sequence[int] | Sequence[bool]"
#: Which rows of the batch at hand each emitted row comes of; see `ArrowOutputCollector.emit_batch`.
Anchors: TypeAlias = (
    "Literal['row by row'] | pa.Array | pa.ChunkedArray | NDArray[np.integer[Any]] | Sequence[int] | None"
)


class ArrowOutputCollector(Protocol):
    """What `ArrowBolt.execute_batch` gets."""

    #: Where the batch at hand comes from.
    source_component: str
    source_stream: str

    def emit_batch(
        self, batch: pa.RecordBatch | pa.Table, stream: str = DEFAULT_STREAM, anchors: Anchors = None
    ) -> None:
        """Emit every row of ``batch`` as a tuple; its columns are those of the stream's schema.

        ``anchors`` says of which input rows the rows come (E4):

        - None: each row of all input rows. So if one of them fails, all input rows fail: right whatever you compute, but
          coarse where input rows belong to many trees.
        - `ROW_BY_ROW`: row i of input row i; there are as many.
        - an array of integers, one a row: the position of its input row. ``pyarrow.compute.list_parent_indices`` gives them for
          lists that are flattened.
        - an array of lists of integers, one a row: the positions of all of its input rows; none: the row is untracked.

        Raises `EmitError` for an unknown stream, columns that are not the schema's, and anchors that do not fit.
        """

    def emit_batch_direct(
        self,
        task: int,
        batch: pa.RecordBatch | pa.Table,
        stream: str = DEFAULT_STREAM,
        anchors: Anchors = None,
    ) -> None:
        """The same to one task on a direct stream (B9, D11)."""

    def fail(self, rows: Rows, reason: str | None = None) -> None:
        """Fail these rows of the batch at hand, as positions or as one bool a row; the others are acked (E5, W4)."""

    def reset_timeout(self) -> None:
        """Give all trees of the batch at hand another message timeout (C11)."""

    def schema(self, stream: str = DEFAULT_STREAM) -> pa.Schema:
        """The schema of one of the component's streams."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics (C4)."""


class ArrowBolt(Component, ABC):
    """A bolt that is given its tuples as batches of rows, acked when ``execute_batch`` returns.

    It is to a batch what `BasicBolt` is to a tuple (C5): what is emitted is anchored, what raises fails all rows of the batch,
    and `ArrowOutputCollector.fail` fails some. How many rows a batch has is not promised: what waits for a task is put together.
    All rows of a batch come from one stream of one component; the order of tuples is kept (E31).

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> class Split(ArrowBolt):
    ...     def execute_batch(self, batch, collector):
    ...         words = pc.utf8_split_whitespace(batch["sentence"])
    ...         out = pa.record_batch([pc.list_flatten(words)], ["word"])
    ...         collector.emit_batch(out, anchors=pc.list_parent_indices(words))
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(pa.schema({"word": pa.string()}))
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, in the worker, before any batch."""

    @abstractmethod
    def execute_batch(self, batch: pa.RecordBatch, collector: ArrowOutputCollector) -> None:
        """Process the rows of one batch, of one at least."""

    def on_tick_tuple(self, tick: Tuple, collector: ArrowOutputCollector) -> None:
        """``topology.tick.tuple.freq.secs`` have passed (C9). What is emitted here is untracked."""

    def cleanup(self) -> None:
        """The topology ends. Not called when a worker is killed (C1)."""


class PandasOutputCollector(ArrowOutputCollector, Protocol):
    """What `PandasBolt.execute_frame` gets."""

    def emit_frame(
        self, frame: pd.DataFrame, stream: str = DEFAULT_STREAM, anchors: Anchors | pd.Index[Any] = None
    ) -> None:
        """Emit every row of ``frame``, whose columns are those of the stream's schema, in any order.

        As `emit_batch`. An input frame's index counts its rows, so ``anchors=out.index`` is right for what pandas derives of it
        by filtering, sorting, exploding or merging it, until somebody resets the index.
        """


class PandasBolt(ArrowBolt):
    """An `ArrowBolt` whose batches are pandas frames.

    The values are as ``RecordBatch.to_pandas()`` has them: where a column of ints has nulls, it is one of floats.

    >>> import pyarrow as pa
    >>> class Large(PandasBolt):
    ...     def execute_frame(self, frame, collector):
    ...         large = frame[frame["amount"] > 100]
    ...         collector.emit_frame(large, anchors=large.index)
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(pa.schema({"customer": pa.string(), "amount": pa.float64()}))
    """

    @abstractmethod
    def execute_frame(self, frame: pd.DataFrame, collector: PandasOutputCollector) -> None:
        """Process the rows of one frame, of one at least."""

    def execute_batch(self, batch: pa.RecordBatch, collector: ArrowOutputCollector) -> None:
        """Make a frame of it."""
        self.execute_frame(batch.to_pandas(), _Frames(collector))


class ArrowSpoutOutputCollector(Protocol):
    """What `ArrowSpout.open` gets."""

    def emit_batch(
        self,
        batch: pa.RecordBatch | pa.Table,
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
        message_ids: pa.Array | pa.ChunkedArray | Sequence[Hashable] | None = None,
    ) -> None:
        """Emit every row of ``batch`` as a tuple.

        With ``message_id`` all rows are one tree: one ``ack`` when all are processed, or one ``fail`` (as a group, X68). That
        costs nothing a row. With ``message_ids``, one a row, each row is a tree of its own (B6); a null is a row that is
        untracked. Without either, no row is tracked. Raises `EmitError` as `ArrowOutputCollector.emit_batch`.
        """

    def schema(self, stream: str = DEFAULT_STREAM) -> pa.Schema:
        """The schema of one of the component's streams."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics, nothing else (C4)."""

    @property
    def pending_count(self) -> int:
        """How many of this task's tuple trees are open (B5)."""


class ArrowSpout(Spout):
    """A spout that emits batches of rows.

    ``topology.max.spout.pending`` and limits count before each call of ``next_batch``, which may go beyond them (B4): in trees
    the one, in rows the others. Some thousands of rows a call are enough to make the price of a call small.

    >>> import pyarrow as pa
    >>> class Numbers(ArrowSpout):
    ...     def open(self, conf, context, collector):
    ...         self.collector, self.n = collector, 0
    ...     def next_batch(self):
    ...         numbers = pa.array(range(self.n, self.n + 1000))
    ...         self.collector.emit_batch(pa.record_batch([numbers], ["n"]), message_id=self.n)
    ...         self.n += 1000
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(pa.schema({"n": pa.int64()}))
    """

    @abstractmethod
    def open(  # type: ignore[override]
        self, conf: Mapping[str, Any], context: TopologyContext, collector: ArrowSpoutOutputCollector
    ) -> None:
        """Called once, in the worker, before anything else (B2)."""

    @abstractmethod
    def next_batch(self) -> None:
        """Emit a batch, or nothing if there is nothing, and return (B3, B12)."""

    def next_tuple(self) -> None:
        """As the engine calls it."""
        self.next_batch()


class _Frames:
    """An `ArrowOutputCollector` that takes frames, too."""

    def __init__(self, collector: ArrowOutputCollector) -> None:
        self._collector = collector

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collector, name)

    def emit_frame(self, frame: Any, stream: str = DEFAULT_STREAM, anchors: Any = None) -> None:
        import pyarrow as pa

        schema = self._collector.schema(stream)
        batch = pa.RecordBatch.from_pandas(frame, schema=schema, preserve_index=False)
        is_index = hasattr(anchors, "to_numpy") and not isinstance(anchors, pa.Array | pa.ChunkedArray)
        rows = anchors.to_numpy() if is_index else anchors
        self._collector.emit_batch(batch.replace_schema_metadata(None), stream, rows)
