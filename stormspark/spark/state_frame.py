"""Turns a component's state into a Spark DataFrame. For each task of the component, one Spark task reads this task's state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BinaryType, DataType, IntegerType, StructField, StructType

from stormspark.checkpoint.plain_state import Entry, StateOfComponent

__all__ = ["state_frame"]

#: If the dicts that are read together have more different keys than this, they don't become structs: their keys are data, and not
#: names of fields. For dicts within dicts there is no such limit.
_MOST_FIELDS = 50


def state_frame(spark: SparkSession, found: StateOfComponent) -> DataFrame:
    """See `stormspark.state`. The state is read once here to find the types, and again whenever the DataFrame is used."""
    key, value = _types(spark, found)
    raw_keys, raw_values = key is None, value is None
    schema = pa.schema([("task", pa.int32()), ("key", key or pa.binary()), ("value", value or pa.binary())])

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for entries in _entries(found, batches, raw_keys, raw_values):
            columns = zip(*entries, strict=True)
            arrays = [pa.array(list(column), one.type) for column, one in zip(columns, schema, strict=True)]
            yield pa.record_batch(arrays, schema=schema)

    fields = [StructField("task", IntegerType(), False)]
    fields += [StructField(name, _spark_type(schema.field(name).type)) for name in ("key", "value")]
    return _tasks(spark, found).mapInArrow(read, StructType(fields))


def _tasks(spark: SparkSession, found: StateOfComponent) -> DataFrame:
    return spark.range(0, found.tasks, 1, numPartitions=found.tasks)


def _entries(
    found: StateOfComponent, batches: Iterable[pa.RecordBatch], raw_keys: bool, raw_values: bool
) -> Iterator[list[Entry]]:
    for batch in batches:
        for task in batch.column(0).to_pylist():
            for entries in found.of_task(task).batches(raw_keys=raw_keys, raw_values=raw_values):
                if entries:
                    yield entries


def _types(spark: SparkSession, found: StateOfComponent) -> tuple[pa.DataType | None, pa.DataType | None]:
    """Return the common type of all keys and the common type of all values; None where there is no common type."""

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for entries in _entries(found, batches, raw_keys=False, raw_values=False):
            _, keys, values = zip(*entries, strict=True)
            seen = [pa.schema([("", _type_of(list(one)))]).serialize().to_pybytes() for one in (keys, values)]
            yield pa.record_batch([[seen[0]], [seen[1]]], names=["key", "value"])

    rows = _tasks(spark, found).mapInArrow(look, "key binary, value binary").distinct().collect()
    return _common([row["key"] for row in rows]), _common([row["value"] for row in rows])


def _type_of(values: list[Any]) -> pa.DataType:
    """Return the common Arrow type of these values.

    If there is no such type, or if Spark does not have it, or if it is a struct with too many fields, return
    month_day_nano_interval, a type of Arrow that Spark does not have.
    """
    try:
        inferred = pa.array(values).type
        _spark_type(inferred)
    except (
        Exception
    ):  # of many kinds: mixed types, numbers that are too large, types that Spark does not have
        return pa.month_day_nano_interval()
    too_wide = pa.types.is_struct(inferred) and inferred.num_fields > _MOST_FIELDS
    return pa.month_day_nano_interval() if too_wide else inferred


def _common(seen: list[bytes]) -> pa.DataType | None:
    """Return the common type of the types that were seen; None if there is none, or if the state is empty."""
    schemas = [pa.ipc.read_schema(pa.py_buffer(bytes(one))) for one in seen]
    if not schemas:
        return None
    try:
        found = pa.unify_schemas(schemas).field(0).type
    except pa.ArrowException:
        return None
    if found == pa.month_day_nano_interval():
        return None
    return pa.binary() if pa.types.is_null(found) else found


def _spark_type(arrow: pa.DataType) -> DataType:
    return BinaryType() if pa.types.is_null(arrow) else from_arrow_type(arrow)
