"""Files of a folder as a spout."""

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
    """A spout that emits the rows of every file that is in ``path``, or comes into it, once.

    ``format`` is one that Spark streams from files: text, json, csv, parquet, orc. ``schema`` is Spark's DDL, such as
    ``"id long, price double"``, needed for all but text, whose only column is the line. ``fields`` name the values; they
    have to be given for all but text, where it is ``line``. ``options`` are Spark's own. Of these ``maxFilesPerTrigger`` or
    ``maxBytesPerTrigger`` is the most that a batch brings; how much it brings follows what the bolts can take (F10).

    A file must be there as a whole when it appears: write it beside, or under a name that begins with ``_`` or a dot, and rename
    it. Spark keeps which files have been read in the topology's checkpoint. The local engine reads text, json, csv and parquet
    with columns of simple types, and keeps nothing: a topology that is started again reads all files again.

    Raises `InvalidTopologyError` for a format that needs a schema and has none.

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
        """Spark's file stream."""
        reader = spark.readStream.format(self.format).options(**bounded(self.options, self))
        if self.schema is not None:
            reader = reader.schema(self.schema)
        return reader.load(self.path)

    def local_source(self) -> LocalFiles:
        """The same without Spark; raises `InvalidTopologyError` for what only Spark can read."""
        return LocalFiles(self.path, self.format, self.schema, self.options)
