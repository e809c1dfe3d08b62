"""A spout that emits the rows of a Delta table. Spark reads the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from stormspark.api import ExponentialBackoff, Fields, Routed, SourceSpout
from stormspark.config import DELTA_PACKAGE
from stormspark.connectors.delta_changes import columns_read, schema_change
from stormspark.connectors.file_limits import bounded, per_trigger_of
from stormspark.errors import InvalidTopologyError, UnsupportedEnvironmentError

__all__ = ["DeltaSpout"]

_OVER_CHANGES = "spark.databricks.delta.streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled"
_ROWS_CHANGED = ("DELTA_SOURCE_IGNORE_DELETE", "DELTA_SOURCE_TABLE_IGNORE_CHANGES")


class DeltaSpout(SourceSpout):
    """A spout that emits the rows of a Delta table, existing and new ones. It runs on the Spark engine only.

    If ``table`` has a slash, it is a path or a URL; otherwise it is the name of a table. ``fields`` are the columns to read. The
    columns are read by name, so columns that are added later do no harm. If there is a ``translator``, ``columns`` are the
    columns that it receives, and ``fields`` name the values that it returns.

    ``options`` are Delta's, such as ``startingVersion`` and ``skipChangeCommits``. The options ``maxFilesPerTrigger`` and
    ``maxBytesPerTrigger`` limit how much one batch reads. Up to that limit, each batch reads as much as the bolts can take (F10).
    Spark records in the topology's checkpoint how far it has read.

    Delta can't read on if a column was renamed or dropped, if it got another type, or if rows were changed or deleted (unless
    ``skipChangeCommits`` is set). The topology then ends with an error that names the table and the change. With
    ``over_column_changes``, Delta reads on after columns were renamed or dropped, and uses the present names for all rows. This
    setting then holds for all Delta spouts of the topology.

    The Spark session needs Delta's jars and extension. A session that stormspark starts gets them.

    >>> orders = DeltaSpout("/data/orders", ["id", "price"], options={"startingVersion": 17})
    >>> prices = DeltaSpout("shop.orders", ["cents"], lambda row: (round(row[0] * 100),), columns=["price"])
    """

    needs_delta = True

    def __init__(
        self,
        table: str | PathLike[str],
        fields: Fields | Iterable[str],
        translator: Callable[[tuple[Any, ...]], Sequence[Any] | Routed | None] | None = None,
        retry: ExponentialBackoff | None = None,
        *,
        columns: Iterable[str] | None = None,
        options: Mapping[str, Any] | None = None,
        over_column_changes: bool = False,
    ) -> None:
        super().__init__(fields, translator, retry)
        if translator is not None and columns is None:
            msg = "DeltaSpout: its translator needs columns: give them, such as columns=['id', 'price']"
            raise InvalidTopologyError(msg)
        self.table = str(table)
        self.columns = list(self.fields if columns is None else columns)
        self.options = dict(options or {})
        self.over_column_changes = over_column_changes
        self.per_trigger = per_trigger_of(self.options)

    def stream(self, spark: Any) -> Any:
        """Return Delta's stream of the table, with the columns that the spout reads.

        Raises `InvalidTopologyError` if the table can't be read or lacks one of the columns, and `UnsupportedEnvironmentError`
        if the session has no Delta.
        """
        if self.over_column_changes:
            spark.conf.set(_OVER_CHANGES, "true")  # the session is the query's own
        reader = spark.readStream.format("delta").options(**bounded(self.options, self))
        try:
            rows = self._load(reader)
            there = rows.columns
        except Exception as error:
            raise self._not_read(error) from error
        missing = [name for name in self.columns if name not in there]
        if missing:
            msg = (
                f"the Delta table {self.table} has no column {missing[0]!r}; its columns are {', '.join(there)}. If the column "
                f"was renamed or dropped, give the spout the present names"
            )
            raise InvalidTopologyError(msg)
        return rows.select(*(f"`{name.replace('`', '``')}`" for name in self.columns))

    def explain_failure(self, error: str, spark: Any) -> str | None:
        """Explain an error of Delta that every new start of the query would raise again. Return None for any other error."""
        found = re.search(r"\[(DELTA_\w+)[\]._]", error)
        if found is None:
            return None
        first = error.strip().splitlines()[0]
        if found[1] in _ROWS_CHANGED:
            if self._location(spark) not in error:
                return None
            return (
                f"rows of the Delta table {self.table} were deleted or changed, but a stream reads only rows that are added: "
                f"give the option skipChangeCommits to continue without them ({first})"
            )
        if "schema" not in error:
            return None
        now = self._load(spark.read.format("delta")).columns
        read = columns_read(error, self._location(spark))
        # If the query knew other columns than the table has now, another attempt begins with the present columns and may succeed.
        if read is None or (now[: len(read[0])], len(now)) != read:
            return None
        change = schema_change(error, now)
        if change is None:
            return None
        return (
            f"the columns of the Delta table {self.table} have changed: {change}. Delta's stream does not read on after such a "
            f"change. Start the topology with a new checkpoint folder and the option startingVersion. If columns were renamed or "
            f"dropped, you can give the spout over_column_changes=True instead: it reads all rows by the present names ({first})"
        )

    def _load(self, reader: Any) -> Any:
        return reader.load(self.table) if self._is_path else reader.table(self.table)

    @property
    def _is_path(self) -> bool:
        return "/" in self.table

    def _location(self, spark: Any) -> str:
        if self._is_path:
            return self.table.removeprefix("file:").rstrip("/")
        name = ".".join(f"`{part}`" for part in self.table.split("."))
        return str(spark.sql(f"DESCRIBE DETAIL {name}").first().location).removeprefix("file:")

    def _not_read(self, error: Exception) -> Exception:
        text = str(error)
        if "Failed to find the data source: delta" in text or "DATA_SOURCE_NOT_FOUND" in text:
            msg = (
                f"the Spark session has no Delta: start it with --packages {DELTA_PACKAGE}, "
                f"spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
                f"spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"
            )
            return UnsupportedEnvironmentError(msg)
        if (
            "DELTA_SCHEMA_NOT_SET" in text
            or "TABLE_OR_VIEW_NOT_FOUND" in text
            or "DELTA_PATH_DOES_NOT_EXIST" in text
        ):
            return InvalidTopologyError(f"there is no Delta table {self.table}")
        return InvalidTopologyError(
            f"the Delta table {self.table} can't be read: {text.strip().splitlines()[0]}"
        )
