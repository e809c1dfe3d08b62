"""Spouts whose tuples are the rows of a Spark streaming source."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from stormspark.api.components import Component
from stormspark.api.fields import Fields
from stormspark.api.retry import ExponentialBackoff
from stormspark.api.streams import DEFAULT_STREAM

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from stormspark.api.context import TopologyContext
    from stormspark.api.streams import OutputFieldsDeclarer

__all__ = ["FiniteLocalSource", "LocalSource", "PerTrigger", "Routed", "SourceProgress", "SourceSpout"]


class Routed(NamedTuple):
    """A translator's result that also names the stream of the tuple, instead of the default stream (K7)."""

    values: Sequence[Any]
    stream: str


class PerTrigger(NamedTuple):
    """The bound on how much a batch may read from a source, in the unit of a Spark option: rows, files or bytes.

    ``first`` is the amount at the start of the topology. Afterwards the amount is raised or lowered, depending on how much the
    bolts can process. If ``most`` is given, the amount never exceeds it. ``option`` is the name of the Spark option.

    >>> PerTrigger("maxOffsetsPerTrigger", first=10_000, most=1_000_000).most
    1000000
    """

    option: str
    first: int
    most: int | None = None


class SourceProgress(NamedTuple):
    """The progress of the tasks of a source spout.

    ``waiting`` is the number of rows that are not emitted yet. Rows that wait for their retry do not count. If the spout's tasks
    read ranges of the source themselves, such as Kafka's offsets, the rows of unread ranges count as waiting. ``came`` is the
    number of rows, or of ranges, that are new in this batch. ``low_marks`` holds, for each partition, the lowest position of a
    row that is still open. A partition without an entry has no open row. ``low_marks`` is None if the tasks were not asked for
    low marks after this batch (`SourceSpout.low_marks_every`). ``limit`` is the number of rows that all tasks together may emit
    in the next batch; None means that there is no limit.
    """

    waiting: int
    low_marks: Mapping[str, int] | None = None
    came: int = 0
    limit: int | None = None


class LocalSource(Protocol):
    """The object that the local engine reads rows from for a spout, in place of Spark."""

    def poll(self) -> Iterable[tuple[int, Sequence[tuple[Any, ...]]]]:
        """Return the new rows, by partition number, without waiting. Called before each batch."""

    def told(self, progress: SourceProgress) -> None:
        """Called after each batch with the progress of the spout's tasks."""

    def close(self) -> None:
        """Called when the topology ends."""


@runtime_checkable
class FiniteLocalSource(LocalSource, Protocol):
    """A `LocalSource` that knows its end, for a topology that only processes the rows that are there at the start.

    If a source has no such methods, such a topology ends once nothing has come for some batches.
    """

    def prepare_available_now(self) -> None:
        """Read nothing that appears from now on. Called before the first `poll`."""

    def is_done(self) -> bool:
        """Return whether `poll` has returned everything that is known to be there."""


class SourceSpout(Component, ABC):
    """A spout whose rows Spark reads: each row of a streaming DataFrame becomes a tuple with its own message id.

    Spark keeps the offsets, and reads a batch of rows again if it was not committed. All rows of a partition reach the same task,
    in order (`partition_column`). A row that fails or times out is emitted again by the rules of ``retry``. The row becomes a
    dead letter when these rules give it up, or when its tree has failed in too many attempts at its batch. It also becomes one if
    Python can't hold its values, if `translate` raises, or if the result can't be emitted.

    ``fields`` name the values that ``translator(row)`` or `translate` returns. By default the values are the row's
    columns, and there must be as many fields as columns.
    """

    #: Columns that form the row's message id. Without such columns, the id is (batch, partition, row). Rows may share an id, even
    #: while they are open: each row has a tree of its own, and `ack` or `fail` is called once per row. In an id, arrays, structs
    #: and maps become tuples.
    id_columns: ClassVar[tuple[str, ...]] = ()
    #: A column of whole numbers that assigns rows to tasks. The task's index is this number modulo the number of tasks. If there
    #: is no such column, the index of Spark's partition takes the place of this number.
    partition_column: ClassVar[str | None] = None
    #: If false, rows are emitted without a message id, and count as done once they are emitted (K2).
    reliable: bool = True
    #: Whether Spark needs Delta's jars for this spout.
    needs_delta: ClassVar[bool] = False
    #: The number of batches after which tasks are asked for their `low_marks` again; None means never.
    low_marks_every: int | None = None
    #: The bound on how much a batch may read from this spout's source; None if the topology can't change such a bound.
    per_trigger: PerTrigger | None = None
    #: The value for the Spark option that ``per_trigger`` names, or None. `stream` has to set the option to this value.
    limit: int | None = None
    #: A function that reports an error. The task that owns this instance sets this attribute.
    _report: Callable[[BaseException | str], None] | None = None

    def __init__(
        self,
        fields: Fields | Iterable[str],
        translator: Callable[[tuple[Any, ...]], Sequence[Any] | Routed | None] | None = None,
        retry: ExponentialBackoff | None = None,
    ) -> None:
        self.fields = fields if isinstance(fields, Fields) else Fields(fields)
        self.translator = translator
        self.retry = retry or ExponentialBackoff()

    @abstractmethod
    def stream(self, spark: Any) -> Any:
        """Return the streaming DataFrame.

        The driver calls this method with the Spark session when the topology starts, again after a failure, and after a change
        of ``limit`` (F10).
        """

    def open(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, in the worker, before the first row."""

    def translate(self, row: tuple[Any, ...]) -> Sequence[Any] | Routed | None:
        """Return the values of a row's tuple: the translator's result, or the row's columns.

        None acks the row and emits nothing (K7).
        """
        return row if self.translator is None else self.translator(row)

    @property
    def takes_rows_as_they_are(self) -> bool:
        """Whether a tuple's values are its row's columns."""
        return self.translator is None and type(self).translate is SourceSpout.translate

    def low_marks(self, ids: Iterable[Hashable], ranges: Iterable[tuple[Any, ...]]) -> Mapping[str, int]:
        """Return the lowest position of each partition among this task's open message ids and unread ranges."""
        return {}

    def explain_failure(self, error: str, spark: Any) -> str | None:
        """Explain why the query has ended with Spark's message ``error``, if no further attempt can succeed.

        The topology then stops and reports the returned reason. None means that this spout did not cause the error, or that
        another attempt may succeed.
        """
        return None

    def local_source(self) -> LocalSource | None:
        """Return the object that the local engine reads from, or None if only Spark can read the rows of this spout."""
        return None

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics (C4). Before `open`, and in tests, the error is only logged."""
        if self._report is None:
            _log.error("%s", error)
        else:
            self._report(error)

    def ack(self, message_id: Hashable) -> None:
        """Called when the row is fully processed."""

    def fail(self, message_id: Hashable) -> None:
        """Called when the row has failed. The engine emits the row again, unless the row is given up."""

    def close(self) -> None:
        """Called when the topology ends gracefully."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the default stream, with ``fields``."""
        declarer.declare_stream(DEFAULT_STREAM, self.fields)
