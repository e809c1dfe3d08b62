"""Groupings on whole DataFrames: each `Repartitioning` as the Spark operation that carries it out (D5-D11).

Partition i of the result holds exactly the rows that the consumer's task i gets, counted from the lowest task
id. For a fields grouping that is the task which the tuple side chooses too: the index is computed by the same
hashes, column by column, where each different text is hashed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, assert_never, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, IntegerType

from stormspark.errors import InvalidTopologyError
from stormspark.grouping.base import GroupingContext
from stormspark.grouping.columns import ascii_hashes, boolean_hashes, long_hashes, task_indices
from stormspark.grouping.hashing import value_hasher
from stormspark.grouping.repartitioning import (
    ByChooser,
    ById,
    ByTask,
    CopyToEach,
    Repartitioning,
    RoundRobin,
    SinglePartition,
    Stay,
)

__all__ = ["column_hashes", "repartition", "sender_context"]

#: What a DataFrame is called as the source of tuples.
_SOURCE = "DataFrame"


def repartition(df: DataFrame, repartitioning: Repartitioning) -> DataFrame:
    """Lay ``df``, batch or streaming, out for the tasks of a consumer; its columns stay as they are.

    The result has a partition a task, except for `SinglePartition` (one) and `Stay` (those of ``df``). Rows
    within a partition are in no promised order. `RoundRobin` is even within one row for each partition of
    ``df``. For `ByChooser` each partition of ``df`` is a sender task, in a stream in each batch anew.

    Raises `InvalidTopologyError` if ``df`` lacks a column that the repartitioning names.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.master("local[2]").getOrCreate()
    >>> words = spark.createDataFrame([("storm",), ("heron",), ("storm",)], "word string")
    >>> by_word = repartition(words, ById(("word",), partitions=4))
    >>> by_word.select("word", sf.spark_partition_id().alias("task")).distinct().orderBy("task").collect()
    [Row(word='storm', task=0), Row(word='heron', task=3)]
    """
    match repartitioning:
        case RoundRobin(partitions):
            return df.repartition(partitions)
        case ById(fields, partitions, ints):
            key = [_column(df, field) for field in fields]
            return df.repartitionById(partitions, _task_index(key, partitions, ints))
        case ByTask(column, targets):
            task = _column(df, column)
            # repartitionById would put an unknown task's row in some partition without a word.
            known = df.where(task.isin(list(targets)))
            position = sf.array_position(sf.array(*map(sf.lit, targets)), task.cast("int")) - 1
            return known.repartitionById(len(targets), position.cast("int"))
        case ByChooser(grouping, targets):
            for field in grouping.key_fields:
                _column(df, field)
            copy = _unused_name(df)
            copies = sf.explode(_chosen(df, repartitioning))
            layout = df.select("*", copies.alias(copy)).repartitionById(len(targets), copy)
            return layout.drop(copy)
        case CopyToEach(partitions):
            copy = _unused_name(df)
            copies = sf.explode(sf.array(*map(sf.lit, range(partitions))))
            return df.select("*", copies.alias(copy)).repartitionById(partitions, copy).drop(copy)
        case SinglePartition():
            # Not coalesce(1), which would run all of what comes before in the one task as well.
            return df.repartition(1)
        case Stay():
            return df
        case _:
            assert_never(repartitioning)


def column_hashes(column: pa.Array, ints: str = "long") -> NDArray[np.uint32]:
    """Hash each value of an Arrow column as `value_hash` does the Python value it stands for (D2, D3).

    Null stands for None, a struct for a dict, a map too. The result is unsigned. Raises as `value_hash`.

    >>> column_hashes(pa.array(["a", None, "b"]))
    array([97,  0, 98], dtype=uint32)
    """
    kind = column.type
    if pa.types.is_integer(kind):
        # A null's hash is 0, and so is that of the number 0.
        return long_hashes(column.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False), ints)
    if pa.types.is_boolean(kind):
        hashes = boolean_hashes(column.fill_null(False).to_numpy(zero_copy_only=False))
        return _without_nulls(hashes, column)
    # Not for floats, where a dictionary may take 0.0 and -0.0 for one; and there is none of nested values.
    if pa.types.is_floating(kind) or pa.types.is_nested(kind) or pa.types.is_null(kind):
        return _hashes_one_by_one(column, ints)
    if len(column) == column.null_count:
        return np.zeros(len(column), np.uint32)
    encoded = column.dictionary_encode()
    distinct = _text_hashes(encoded.dictionary)
    if distinct is None:
        distinct = _hashes_one_by_one(encoded.dictionary, ints)
    return _without_nulls(distinct[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)], column)


def sender_context(by: ByChooser, fields: tuple[str, ...], partition: int, batch: str) -> GroupingContext:
    """What the chooser for one partition of a DataFrame knows; ``batch`` is that of a stream, else empty.

    The same partition of the same batch makes the same choices, so Spark may repeat a task.
    """
    return GroupingContext(
        source=_SOURCE,
        stream="default",
        fields=fields,
        sender=partition,
        targets=by.targets,
        local_targets=(),
        random=Random(f"{batch}/{partition}"),
        ints=by.ints,
        consumer="its partitions",
    )


def _chosen(df: DataFrame, by: ByChooser) -> Column:
    """For each row the positions of the tasks that it goes to."""
    fields = tuple(df.columns)
    single = by.grouping.single
    position = {task: position for position, task in enumerate(by.targets)}

    def chosen(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        spark_task = TaskContext.get()
        assert spark_task is not None
        batch = spark_task.getLocalProperty("streaming.sql.batchId") or ""
        choose = by.grouping.chooser(sender_context(by, fields, spark_task.partitionId(), batch))
        for rows in batches:
            columns = [column.to_pylist(maps_as_pydicts="strict") for column in rows.flatten()]
            tasks = [choose(values) for values in zip(*columns, strict=True)]
            yield pa.array(
                [[position[one] for one in ((picked,) if single else picked)] for picked in tasks],
                pa.list_(pa.int32()),
            )

    # A struct, so that the function gets one column however many there are. Not deterministic, so that Spark computes it
    # once a row, where the row is.
    row = sf.struct(*(_column(df, field) for field in fields))
    function = arrow_udf(chosen, ArrayType(IntegerType()))  # type: ignore[call-overload]  # it is given a whole partition
    return cast("Column", function.asNondeterministic()(row))


def _task_index(key: Sequence[Column], tasks: int, ints: str) -> Column:
    def task_index(*columns: pa.Array) -> pa.Array:
        return pa.array(task_indices([column_hashes(column, ints) for column in columns], tasks))

    # Variadic, so there is no overload for it; Spark passes a whole batch of each column.
    return cast("Column", arrow_udf(task_index, "int")(*key))  # type: ignore[call-overload]


def _text_hashes(texts: pa.Array) -> NDArray[np.uint32] | None:
    """The hashes of strings without nulls, or None if they are no strings or not only ASCII."""
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return None
    _, offset_buffer, data = texts.buffers()
    width = np.dtype(np.int32 if pa.types.is_string(texts.type) else np.int64)
    offsets = np.frombuffer(offset_buffer, width)[texts.offset : texts.offset + len(texts) + 1]
    units = np.frombuffer(data or b"", np.uint8)[: offsets[-1]]
    return ascii_hashes(units, offsets) if units.max(initial=0) < 0x80 else None


def _hashes_one_by_one(column: pa.Array, ints: str) -> NDArray[np.uint32]:
    hash_of = value_hasher(ints)
    values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    return np.array([hash_of(value) & 0xFFFF_FFFF for value in values], np.uint32)


def _without_nulls(hashes: NDArray[np.uint32], column: pa.Array) -> NDArray[np.uint32]:
    """The hashes with 0 where ``column`` is null."""
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def _column(df: DataFrame, name: str) -> Column:
    """The column of just this name: a dot in it is no path, and its case matters, as in Storm."""
    if name not in df.columns:
        there = ", ".join(map(repr, df.columns))
        msg = f"a grouping takes column {name!r}, but the DataFrame has {there} only"
        raise InvalidTopologyError(msg)
    return df["`" + name.replace("`", "``") + "`"]


def _unused_name(df: DataFrame) -> str:
    taken = {name.lower() for name in df.columns}
    name = "copy"
    while name in taken:
        name += "_"
    return name
