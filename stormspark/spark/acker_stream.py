"""Lets Spark read the durable acker's journal as a stream. The offsets of this stream are the numbers of the journal's commits.

On the driver's host, Spark runs a Python process that finds and reads new files. Spark sends the files' bytes to its tasks, and
the tasks yield them as Arrow data. So only the driver's host has to see the folder, and no jar is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from stormspark.spark.versions import LimitedReader

__all__ = ["COMMIT", "acker_stream"]

#: The only key in the JSON of an offset.
COMMIT = "commit"
#: A batch reads about `_BATCH_BYTES` bytes at most, but at least one file. A task gets about `_TASK_BYTES` bytes at most.
_BATCH_BYTES = 64 << 20
_TASK_BYTES = 4 << 20


class _Changes(InputPartition):
    """The Arrow streams that one Spark task reads."""

    def __init__(self, streams: list[bytes]) -> None:
        self.streams = streams


class _Reader(LimitedReader):
    def __init__(self, folder: Path, planned: dict[str, int] | None = None) -> None:
        self._folder, self._planned = folder, planned

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {COMMIT: 0}

    def next_offset(self, start: dict[str, int]) -> dict[str, int]:
        last, size = start[COMMIT], 0
        while size < _BATCH_BYTES and (path := self._path(last + 1)).exists():
            last, size = last + 1, size + path.stat().st_size
        return {COMMIT: last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        groups: list[list[bytes]] = []
        size = 0
        for number in range(start[COMMIT] + 1, end[COMMIT] + 1):
            for data in _pieces(self._path(number).read_bytes()):
                if not groups or size + len(data) > _TASK_BYTES:
                    groups.append([])
                    size = 0
                groups[-1].append(data)
                size += len(data)
        return [_Changes(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Changes)
        for data in partition.streams:
            with pa.ipc.open_stream(data) as stream:
                yield from stream

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.arrow"


def _pieces(data: bytes) -> Iterator[bytes]:
    """Yield a file as a whole, or in parts if it is too large for one task."""
    if len(data) <= _TASK_BYTES:
        yield data
        return
    with pa.ipc.open_stream(data) as stream:
        for batch in chain.from_iterable(map(_small, stream)):
            sink = pa.BufferOutputStream()
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            with pa.ipc.new_stream(sink, batch.schema, options=options) as part:
                part.write_batch(batch)
            yield sink.getvalue().to_pybytes()


def _small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a record batch into parts that are small enough for one task. A row that is too large becomes a part of its own."""
    if batch.nbytes <= _TASK_BYTES or batch.num_rows < 2:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _small(batch.slice(0, half))
    yield from _small(batch.slice(half))


def acker_stream(
    spark: SparkSession, folder: Path, schema: str, planned: dict[str, int] | None = None
) -> DataFrame:
    """Make the streaming DataFrame of the journal in ``folder``. ``schema`` is the schema of its changes.

    ``planned`` is the offset at which the last batch ends that the query has planned, if there is one (`LimitedReader`).
    """

    class Journal(DataSource):
        @classmethod
        def name(cls) -> str:
            return "stormspark_acker_journal"

        def schema(self) -> str:
            return schema

        def streamReader(self, schema: object) -> DataSourceStreamReader:  # noqa: N802
            return _Reader(folder, planned)

    spark.dataSource.register(Journal)
    return spark.readStream.format(Journal.name()).load()
