"""A spout that reads any streaming DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stormspark.api import ExponentialBackoff, Fields, PerTrigger, Routed, SourceSpout

__all__ = ["DataFrameSpout"]


class DataFrameSpout(SourceSpout):
    """A spout that emits the rows of a streaming DataFrame. It runs on the Spark engine only.

    ``stream(spark)`` returns the DataFrame. ``fields`` name the emitted values, which are the DataFrame's columns, or the
    values that ``translator(row)`` returns. If the translator returns None, the spout acks the row and emits nothing. If it
    returns a `Routed`, the values go to another stream. ``retry`` says when a failed row is emitted again.

    With ``per_trigger``, the spout calls ``stream(spark, limit)`` instead. ``per_trigger`` names an option of Spark, and the
    function must set this option to ``limit``. In this way the topology can limit each batch to as many rows as its bolts can
    take (F10).

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
        """Return the DataFrame that the user's function makes."""
        return self._stream(spark) if self.per_trigger is None else self._stream(spark, self.limit)
