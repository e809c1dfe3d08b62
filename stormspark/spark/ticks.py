"""A source that yields tick rows without an end. It is for queries with ``trigger="available-now"``, whose other sources end.

With `Trigger.AvailableNow`, Spark fixes at the start of the query how far it reads each source, and ends the query when it has
read that far. At that time the last rows have been handed out, but their trees have not ended. So the ticks of such a query have
no end. The driver ends the query when no row comes, none waits, and no tree is open any more.

The offsets are like those of Spark's ``rate-micro-batch``, which gives the ticks in all other queries. So a topology can continue
from the same checkpoint with another trigger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from stormspark.spark.versions import LimitedReader

__all__ = ["endless_ticks"]


def endless_ticks(session: SparkSession, partitions: int) -> DataFrame:
    """Make a streaming DataFrame with ``partitions`` partitions, and one row per partition and batch."""
    session.dataSource.register(_Ticks)
    return session.readStream.format(_Ticks.name()).option("partitions", partitions).load()


@dataclass
class _Tick(InputPartition):
    number: int


class _Ticks(DataSource):
    @classmethod
    def name(cls) -> str:
        return "stormspark-ticks"

    def schema(self) -> str:
        return "timestamp timestamp, value bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's names
        return _TickReader(int(self.options["partitions"]))


class _TickReader(LimitedReader):
    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"offset": 0, "timestamp": 0}

    def next_offset(self, start: dict[str, Any]) -> dict[str, Any]:
        return {"offset": start["offset"] + self._partitions, "timestamp": start["timestamp"] + 1000}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_Tick(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, _Tick)
        yield (None, partition.number)
