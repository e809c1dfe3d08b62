"""Any streaming DataFrame as a spout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stormspark.api import ExponentialBackoff, Fields, Routed, SourceSpout

__all__ = ["DataFrameSpout"]


class DataFrameSpout(SourceSpout):
    """A spout whose tuples are the rows of the streaming DataFrame that ``stream(spark)`` gives; for the Spark engine.

    ``fields`` name the values: the DataFrame's columns, or what ``translator(row)`` returns (None: the row is acked and nothing
    emitted; `Routed`: for another stream). Failed rows are emitted again by ``retry``.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.testing import TestWordCounter
    >>> lines = DataFrameSpout(lambda spark: spark.readStream.text("/data/in"), fields=["line"])
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("lines", lines, parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter()).fields_grouping("lines", ["line"])
    """

    def __init__(
        self,
        stream: Callable[[Any], Any],
        fields: Fields | Iterable[str],
        translator: Callable[[tuple[Any, ...]], Sequence[Any] | Routed | None] | None = None,
        retry: ExponentialBackoff | None = None,
    ) -> None:
        super().__init__(fields, translator, retry)
        self._stream = stream

    def stream(self, spark: Any) -> Any:
        """Ask the given function."""
        return self._stream(spark)
