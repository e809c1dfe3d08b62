"""A spout that reads the files of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from stormspark.api import ExponentialBackoff, Fields, Routed, SourceSpout
from stormspark.connectors.file_limits import bounded, per_trigger_of
from stormspark.connectors.local_files import LocalFiles
from stormspark.errors import InvalidTopologyError

__all__ = ["FileSpout"]


class FileSpout(SourceSpout):
    """A spout that emits each row of every file in the folder ``path``, including files that appear there later.

    Each row is read once. ``retry`` says when a row that has failed is emitted again.

    ``format`` is a file format that Spark can stream: text, json, csv, parquet or orc. ``schema`` is Spark's DDL, such as
    ``"id long, price double"``. ``fields`` name the emitted values, which are the row's columns, or the values that
    ``translator(row)`` returns. Every format except text needs a schema and fields. A text file has one column, the line. Its
    field is called ``line`` by default.

    ``options`` are Spark's own. The options ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` limit how much one batch reads. Up
    to that limit, each batch reads as much as the bolts can take (F10).

    A file must be complete when it appears. So write it in another folder, or under a name that begins with ``_`` or a dot, and
    then rename it.

    Spark records in the topology's checkpoint which files have been read. The local engine reads text, json, csv and
    parquet, with columns of simple types. It records nothing, so a topology that is started again reads all files again.

    Raises `InvalidTopologyError` if the format needs a schema and fields, and one of the two is missing. Raises the same error if
    an option that limits a batch is neither a positive number nor a size such as ``10m``.

    >>> lines = FileSpout("/data/logs")
    >>> orders = FileSpout("/data/orders", "json", schema="id long, price double", fields=["id", "price"])
    >>> lines.fields, orders.fields
    (Fields('line'), Fields('id', 'price'))
    """

    def __init__(
        self,
        path: str | PathLike[str],
        format: str = "text",
        *,
        schema: str | None = None,
        fields: Fields | Iterable[str] | None = None,
        translator: Callable[[tuple[Any, ...]], Sequence[Any] | Routed | None] | None = None,
        retry: ExponentialBackoff | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if format != "text" and (schema is None or fields is None):
            msg = f"FileSpout: files of format {format!r} need a schema, such as 'id long, price double', and fields"
            raise InvalidTopologyError(msg)
        super().__init__(fields if fields is not None else ["line"], translator, retry)
        self.path, self.format, self.schema = str(path), format, schema
        self.options = dict(options or {})
        self.per_trigger = per_trigger_of(self.options)

    def stream(self, spark: Any) -> Any:
        """Return Spark's file stream."""
        reader = spark.readStream.format(self.format).options(**bounded(self.options, self))
        if self.schema is not None:
            reader = reader.schema(self.schema)
        return reader.load(self.path)

    def local_source(self) -> LocalFiles:
        """Return a source that reads the same rows without Spark.

        Raises `InvalidTopologyError` if the path does not exist, or if only Spark can read these files with these options.
        """
        return LocalFiles(self.path, self.format, self.schema, self.options)
