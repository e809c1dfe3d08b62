"""Any streaming DataFrame as a spout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stormspark.api import ExponentialBackoff, Fields, PerTrigger, Routed, SourceSpout

__all__ = ["DataFrameSpout"]


class DataFrameSpout(SourceSpout):
    """A spout whose tuples are the rows of the streaming DataFrame that ``stream`` gives; for the Spark engine.

    ``fields`` name the values: the DataFrame's columns, or what ``translator(row)`` returns (None: the row is acked and nothing
    emitted; `Routed`: for another stream). Failed rows are emitted again by ``retry``.

    With ``per_trigger`` the function is ``stream(spark, limit)``, which sets that option of its source to ``limit``: then the
    topology bounds what a batch brings by what its bolts can take (F10).

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.testing import TestWordCounter
    >>> lines = DataFrameSpout(lambda spark: spark.readStream.text("/data/in"), fields=["line"])
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("lines", lines, parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter()).fields_grouping("lines", ["line"])

    >>> from stormspark.api import PerTrigger
    >>> def read(spark, limit):
    ...     kafka = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"}
    ...     return spark.readStream.format("kafka").options(**kafka, maxOffsetsPerTrigger=limit).load().select("value")
    >>> orders = DataFrameSpout(read, ["order"], per_trigger=PerTrigger("maxOffsetsPerTrigger", first=10_000))
    """

    def __init__(
        self,
        stream: Callable[..., Any],
        fields: Fields | Iterable[str],
        translator: Callable[[tuple[Any, ...]], Sequence[Any] | Routed | None] | None = None,
        retry: ExponentialBackoff | None = None,
        *,
        per_trigger: PerTrigger | None = None,
    ) -> None:
        super().__init__(fields, translator, retry)
        self._stream = stream
        self.per_trigger = per_trigger

    def stream(self, spark: Any) -> Any:
        """Ask the given function."""
        return self._stream(spark) if self.per_trigger is None else self._stream(spark, self.limit)
