"""Vectorised components: spouts and bolts that take and emit many tuples per call, as the rows of an Arrow record batch.

In this module a *batch* is a record batch. Each row of a batch is a tuple like any other. Rows are routed, acked, failed and
counted one by one. A bolt that is not vectorised receives them one by one. Only the user's code works differently: one call
processes thousands of tuples, as the columns of a ``pyarrow.RecordBatch``. A ``pyarrow.Schema`` declares the fields of each
stream that a vectorised component emits or subscribes to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeAlias

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

#: The value of ``anchors`` for a batch in which row i is computed from input row i.
ROW_BY_ROW: Final = "row by row"

#: Positions of rows in the current batch, or one bool per row.
Rows: TypeAlias = "pa.Array | pa.ChunkedArray | NDArray[np.integer[Any]] | NDArray[np.bool_] | Sequence[int] | Sequence[bool]"
#: The input rows that each emitted row is computed from; see `ArrowOutputCollector.emit_batch`.
Anchors: TypeAlias = (
    "Literal['row by row'] | pa.Array | pa.ChunkedArray | NDArray[np.integer[Any]] | Sequence[int] | None"
)


class ArrowOutputCollector(Protocol):
    """The collector that `ArrowBolt.execute_batch` receives."""

    #: The component and the stream that the current batch came from.
    source_component: str
    source_stream: str

    def emit_batch(
        self, batch: pa.RecordBatch | pa.Table, stream: str = DEFAULT_STREAM, anchors: Anchors = None
    ) -> None:
        """Emit every row of ``batch`` as a tuple. The columns of ``batch`` are those of the stream's schema.

        ``anchors`` names the input rows that the emitted rows are anchored to (E4):

        - None: each emitted row is anchored to all input rows. If one emitted row fails, all input rows fail. This is always
          correct, but coarse if the input rows belong to many trees.
        - `ROW_BY_ROW`: row i is anchored to input row i. Both batches have the same number of rows.
        - an array of integers, one per row: the position of the row's input row. For flattened lists,
          ``pyarrow.compute.list_parent_indices`` returns this array.
        - an array of lists of integers, one list per row: the positions of all the row's input rows. A row with an
          empty list is untracked.

        Raises `EmitError` for an unknown stream, for columns that differ from the schema's, and for anchors that do
        not fit.
        """

    def emit_batch_direct(
        self,
        task: int,
        batch: pa.RecordBatch | pa.Table,
        stream: str = DEFAULT_STREAM,
        anchors: Anchors = None,
    ) -> None:
        """Emit every row of ``batch`` to one task on a direct stream, with anchors as in `emit_batch` (B9, D11)."""

    def fail(self, rows: Rows, reason: str | None = None) -> None:
        """Fail these rows of the current batch, given as positions or as one bool per row.

        The other rows are acked when ``execute_batch`` returns (E5, W4).
        """

    def reset_timeout(self) -> None:
        """Give all trees of the current batch another message timeout (C11)."""

    def schema(self, stream: str = DEFAULT_STREAM) -> pa.Schema:
        """Return the schema of one of the component's streams."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics (C4)."""


class ArrowBolt(Component, ABC):
    """A bolt that receives its tuples as batches of rows. When ``execute_batch`` returns, the rows that it has not failed are
    acked.

    The bolt handles a batch as `BasicBolt` handles a tuple (C5): emitted rows are anchored, an exception fails all rows of
    the batch, and `ArrowOutputCollector.fail` fails some of them. The size of a batch varies, because the engine puts together
    the tuples that wait for a task. All rows of a batch come from one stream of one component, and the order of tuples is kept
    (E31).

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> class Split(ArrowBolt):
    ...     def execute_batch(self, batch, collector):
    ...         words = pc.utf8_split_whitespace(batch["sentence"])
    ...         out = pa.record_batch([pc.list_flatten(words)], ["word"])
    ...         collector.emit_batch(out, anchors=pc.list_parent_indices(words))
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(pa.schema({"word": pa.string()}))
    """

    _required_modules: ClassVar[tuple[str, ...]] = ("pyarrow",)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, in the worker, before any batch."""

    @abstractmethod
    def execute_batch(self, batch: pa.RecordBatch, collector: ArrowOutputCollector) -> None:
        """Process the rows of one batch, which has at least one row."""

    def on_tick_tuple(self, tick: Tuple, collector: ArrowOutputCollector) -> None:
        """Called at the interval ``topology.tick.tuple.freq.secs``, if it is set (C9). Tuples emitted here are untracked."""

    def cleanup(self) -> None:
        """Called when the topology ends, but not when a worker is killed (C1)."""


class PandasOutputCollector(ArrowOutputCollector, Protocol):
    """The collector that `PandasBolt.execute_frame` receives."""

    def emit_frame(
        self, frame: pd.DataFrame, stream: str = DEFAULT_STREAM, anchors: Anchors | pd.Index[Any] = None
    ) -> None:
        """Emit every row of ``frame`` as a tuple, as `emit_batch` does.

        The frame's columns are those of the stream's schema, in any order. The index of an input frame numbers its rows from 0.
        pandas keeps the index when you filter, sort or explode the frame. So pass the index of the emitted frame as ``anchors``,
        unless the frame has a new index, as after ``reset_index``, ``groupby`` or a ``merge`` on columns.
        """


class PandasBolt(ArrowBolt):
    """An `ArrowBolt` whose batches are pandas frames.

    The values are those of ``RecordBatch.to_pandas()``: a column of ints that has nulls becomes a column of floats.

    >>> import pyarrow as pa
    >>> class Large(PandasBolt):
    ...     def execute_frame(self, frame, collector):
    ...         large = frame[frame["amount"] > 100]
    ...         collector.emit_frame(large, anchors=large.index)
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(pa.schema({"customer": pa.string(), "amount": pa.float64()}))
    """

    _required_modules = ("pandas", "pyarrow")

    @abstractmethod
    def execute_frame(self, frame: pd.DataFrame, collector: PandasOutputCollector) -> None:
        """Process the rows of one frame, which has at least one row."""

    def execute_batch(self, batch: pa.RecordBatch, collector: ArrowOutputCollector) -> None:
        """Convert the batch to a frame and process it."""
        self.execute_frame(batch.to_pandas(), _Frames(collector))


class ArrowSpoutOutputCollector(Protocol):
    """The collector that `ArrowSpout.open` receives."""

    def emit_batch(
        self,
        batch: pa.RecordBatch | pa.Table,
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
        message_ids: pa.Array | pa.ChunkedArray | Sequence[Hashable] | None = None,
    ) -> None:
        """Emit every row of ``batch`` as a tuple.

        With ``message_id``, all rows form one tree: the spout gets one ``ack`` when all are processed, or one ``fail``
        (as for a group, X68). Tracking then has no per-row cost. With ``message_ids``, which has one id per row, each row is a
        tree of its own (B6). A row whose id is null is untracked. Without either, all rows are untracked. Raises `EmitError` as
        `ArrowOutputCollector.emit_batch` does.
        """

    def schema(self, stream: str = DEFAULT_STREAM) -> pa.Schema:
        """Return the schema of one of the component's streams."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics, and do nothing else (C4)."""

    @property
    def pending_count(self) -> int:
        """The number of this task's open tuple trees (B5)."""


class ArrowSpout(Spout):
    """A spout that emits batches of rows.

    The engine checks ``topology.max.spout.pending`` and the spout's limit before each call of ``next_batch``. The call itself
    may exceed both (B4). The setting is a number of trees, and the spout's limit is a number of rows. With a few thousand rows
    per call, the cost of the call itself is small.

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

    _required_modules: ClassVar[tuple[str, ...]] = ("pyarrow",)

    @abstractmethod
    def open(  # type: ignore[override]
        self, conf: Mapping[str, Any], context: TopologyContext, collector: ArrowSpoutOutputCollector
    ) -> None:
        """Called once, in the worker, before anything else (B2)."""

    @abstractmethod
    def next_batch(self) -> None:
        """Emit a batch, or nothing if there is none, and return (B3, B12)."""

    def next_tuple(self) -> None:
        """Call `next_batch`, because the engine calls ``next_tuple`` of every spout."""
        self.next_batch()


class _Frames:
    """An `ArrowOutputCollector` that also accepts frames, for `PandasBolt`."""

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
