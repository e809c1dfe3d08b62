"""Spouts whose tuples are the rows of a Spark streaming source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from stormspark.api.components import Component
from stormspark.api.fields import Fields
from stormspark.api.retry import ExponentialBackoff
from stormspark.api.streams import DEFAULT_STREAM

if TYPE_CHECKING:
    from stormspark.api.context import TopologyContext
    from stormspark.api.streams import OutputFieldsDeclarer

__all__ = ["Routed", "SourceSpout"]


class Routed(NamedTuple):
    """What a translator returns for a stream other than the default one (K7)."""

    values: Sequence[Any]
    stream: str


class SourceSpout(Component, ABC):
    """A spout that Spark reads for: any streaming DataFrame, its rows become tuples, each with a message id of its own.

    Spark keeps the offsets: a batch of rows is read again if it was not committed. Rows reach the spout's tasks by source
    partition, in order. A row that fails or times out is emitted again by ``retry``, and goes to the dead letters when that gives
    up, or when `translate` raises.

    ``fields`` are what ``translator(row)`` or `translate` returns; by default the row's columns, which then have to be as many.
    """

    #: Columns that tell the row from every other one, for its message id; none: (batch, partition, row).
    id_columns: ClassVar[tuple[str, ...]] = ()
    #: A column of whole numbers that says which task gets a partition's rows, number modulo tasks; None: Spark's partition.
    partition_column: ClassVar[str | None] = None

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
        """The streaming DataFrame; called on the driver with the Spark session when the topology starts."""

    def open(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, in the worker, before the first row."""

    def translate(self, row: tuple[Any, ...]) -> Sequence[Any] | Routed | None:
        """The values of a row's tuple: by the translator, or its columns. None: the row is acked and nothing emitted (K7)."""
        return row if self.translator is None else self.translator(row)

    @property
    def takes_rows_as_they_are(self) -> bool:
        """Whether a tuple's values are its row's columns."""
        return self.translator is None and type(self).translate is SourceSpout.translate

    def ack(self, message_id: Hashable) -> None:
        """The row is fully processed."""

    def fail(self, message_id: Hashable) -> None:
        """The row failed; it is emitted again without your doing, unless it is given up."""

    def close(self) -> None:
        """The topology ends gracefully."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """The default stream, with ``fields``."""
        declarer.declare_stream(DEFAULT_STREAM, self.fields)
