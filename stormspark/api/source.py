"""Spouts whose tuples are the rows of a Spark streaming source."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from stormspark.api.components import Component
from stormspark.api.fields import Fields
from stormspark.api.retry import ExponentialBackoff
from stormspark.api.streams import DEFAULT_STREAM

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from stormspark.api.context import TopologyContext
    from stormspark.api.streams import OutputFieldsDeclarer

__all__ = ["LocalSource", "PerTrigger", "Routed", "SourceProgress", "SourceSpout"]


class Routed(NamedTuple):
    """What a translator returns for a stream other than the default one (K7)."""

    values: Sequence[Any]
    stream: str


class PerTrigger(NamedTuple):
    """How much of a source one batch may bring, in the unit of an option of Spark's: rows, files, bytes.

    ``first`` is where the topology begins; it changes by factors, by what the bolts can take, and is never more than ``most``.
    ``option`` is for people.

    >>> PerTrigger("maxOffsetsPerTrigger", first=10_000, most=1_000_000).most
    1000000
    """

    option: str
    first: int
    most: int | None = None


class SourceProgress(NamedTuple):
    """How far the tasks of a source spout have come; rows that wait for their retry are not ``waiting``.

    ``waiting`` rows, or rows of ranges, are still to be emitted; ``came`` rows, or ranges, are new in this
    batch. ``low_marks`` are the lowest positions that are not done with, by partition; one that is absent has
    nothing open. None: they were not asked this time (`SourceSpout.low_marks_every`). ``limit`` is what they
    may emit in the next batch, all together; None: nothing holds them.
    """

    waiting: int
    low_marks: Mapping[str, int] | None = None
    came: int = 0
    limit: int | None = None


class LocalSource(Protocol):
    """What the local engine reads for a spout, in place of Spark."""

    def poll(self) -> Iterable[tuple[int, Sequence[tuple[Any, ...]]]]:
        """New rows, by number of partition. Asked before each batch; returns at once."""

    def told(self, progress: SourceProgress) -> None:
        """After each batch: how far the spout's tasks have come."""

    def close(self) -> None:
        """The topology ends."""


class SourceSpout(Component, ABC):
    """A spout that Spark reads for: any streaming DataFrame, its rows become tuples, each with a message id
    of its own.

    Spark keeps the offsets: a batch of rows is read again if it was not committed. Rows reach the spout's
    tasks by source partition, in order. A row that fails or times out is emitted again by ``retry``, and goes
    to the dead letters when that gives up, or when `translate` raises.

    ``fields`` are what ``translator(row)`` or `translate` returns; by default the row's columns, which then
    have to be as many.
    """

    #: Columns that make the row's message id; none: (batch, partition, row). Rows may share an id, open ones too: each
    #: has a tree of its own, and `ack` or `fail` is called once for each. Arrays, structs and maps are tuples in an id.
    id_columns: ClassVar[tuple[str, ...]] = ()
    #: A column of whole numbers that says which task gets a partition's rows, number modulo tasks; None:
    #: Spark's partition.
    partition_column: ClassVar[str | None] = None
    #: False: rows are emitted without a message id, and are done with once they are emitted (K2).
    reliable: bool = True
    #: Tasks are asked for their `low_marks` every so many batches; None: never.
    low_marks_every: int | None = None
    #: How a batch of its rows is bounded; None: by nothing that the topology could change.
    per_trigger: PerTrigger | None = None
    #: Where there is a ``per_trigger``: what `stream` has to set that option to.
    limit: int | None = None
    #: Set by the task that has this instance.
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
        """The streaming DataFrame; called on the driver with the Spark session when the topology starts, and again after a
        failure, or where it wants another ``limit`` (F10).
        """

    def open(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, in the worker, before the first row."""

    def translate(self, row: tuple[Any, ...]) -> Sequence[Any] | Routed | None:
        """The values of a row's tuple: by the translator, or its columns. None: the row is acked and nothing
        emitted (K7).
        """
        return row if self.translator is None else self.translator(row)

    @property
    def takes_rows_as_they_are(self) -> bool:
        """Whether a tuple's values are its row's columns."""
        return self.translator is None and type(self).translate is SourceSpout.translate

    def low_marks(self, ids: Iterable[Hashable], ranges: Iterable[tuple[Any, ...]]) -> Mapping[str, int]:
        """The lowest position of each partition that this task is not done with, of all message ids and
        unread ranges.
        """
        return {}

    def explain_failure(self, error: str, spark: Any) -> str | None:
        """What is wrong for good where the query has ended with ``error``, Spark's text: the topology stops and says so.

        None: that error is not this spout's, or another attempt may help.
        """
        return None

    def local_source(self) -> LocalSource | None:
        """What the local engine reads; None: only Spark can read for this spout."""
        return None

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics (C4). Before `open`, and in tests, it is logged."""
        if self._report is None:
            _log.error("%s", error)
        else:
            self._report(error)

    def ack(self, message_id: Hashable) -> None:
        """The row is fully processed."""

    def fail(self, message_id: Hashable) -> None:
        """The row failed; it is emitted again without your doing, unless it is given up."""

    def close(self) -> None:
        """The topology ends gracefully."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """The default stream, with ``fields``."""
        declarer.declare_stream(DEFAULT_STREAM, self.fields)
