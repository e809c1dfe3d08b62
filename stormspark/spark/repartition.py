"""Applies groupings to whole DataFrames: this module turns each `Repartitioning` into an operation of Spark (D5-D11).

Partition i of the result holds exactly the rows that task i of the consumer gets, except for `Stay`. Tasks are counted from the
lowest task id. With a fields grouping, a row goes to the same task as a tuple with the same values, because rows and tuples use
the same hashes. The hashes are computed column by column, and each different string is hashed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import assert_never

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, IntegerType

from stormspark.errors import InvalidTopologyError
from stormspark.grouping.base import GroupingContext
from stormspark.grouping.columns import task_indices
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
from stormspark.spark.versions import (
    ArrowFunction,
    column_named,
    repartition_by_function,
    repartition_by_id,
    unused_name,
    with_arrow_column,
)
from stormspark.wire.column_hashes import column_hashes
from stormspark.wire.python_values import python_values

__all__ = ["repartition", "sender_context"]

#: A chooser gets the component id of the tuples' sender. If the tuples are rows of a DataFrame, it gets this id.
_SOURCE = "DataFrame"


def repartition(df: DataFrame, repartitioning: Repartitioning) -> DataFrame:
    """Partition ``df``, which may be static or streaming, for the tasks of a consumer. The columns stay as they are.

    The result has one partition per task. But with `SinglePartition` it has only one partition, and with `Stay` it keeps the
    partitions of ``df``. The order of rows within a partition is not defined. With `RoundRobin`, the numbers of rows of two tasks
    differ by at most one per partition of ``df``. With `ByChooser`, each partition of ``df`` is a sender task with a chooser of
    its own. In a stream, each batch begins with new choosers.

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
            for field in fields:
                _column(df, field)
            return repartition_by_function(df, partitions, fields, _task_index(partitions, ints))
        case ByTask(column, targets):
            task = _column(df, column)
            # repartitionById would silently put the rows of an unknown task into some partition.
            known = df.where(task.isin(list(targets)))
            position = sf.array_position(sf.array(*map(sf.lit, targets)), task.cast("int")) - 1
            return repartition_by_id(known, len(targets), position.cast("int"))
        case ByChooser(grouping, targets):
            for field in grouping.key_fields:
                _column(df, field)
            copy = unused_name(df, "copy")
            chosen = _chosen(tuple(df.columns), repartitioning)
            found = with_arrow_column(df, copy, ArrayType(IntegerType()), df.columns, chosen)
            layout = found.withColumn(copy, sf.explode(copy))
            return repartition_by_id(layout, len(targets), copy).drop(copy)
        case CopyToEach(partitions):
            copy = unused_name(df, "copy")
            copies = sf.explode(sf.array(*map(sf.lit, range(partitions))))
            return repartition_by_id(df.select("*", copies.alias(copy)), partitions, copy).drop(copy)
        case SinglePartition():
            # coalesce(1) would run all preceding operations in a single task, too.
            return df.repartition(1)
        case Stay():
            return df
        case _:
            assert_never(repartitioning)


def sender_context(by: ByChooser, fields: tuple[str, ...], partition: int, batch: str) -> GroupingContext:
    """Return the context of the chooser for one partition of a DataFrame.

    ``batch`` is the batch's number in a stream, and otherwise empty. The same partition of the same batch gets the same choices
    again, so Spark may repeat a task.
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


def _chosen(fields: tuple[str, ...], by: ByChooser) -> ArrowFunction:
    """Return the function that yields, for each row, the positions of the tasks to which the row goes."""
    single = by.grouping.single
    position = {task: position for position, task in enumerate(by.targets)}

    def chosen(batches: Iterator[Sequence[pa.Array]]) -> Iterator[pa.Array]:
        spark_task = TaskContext.get()
        assert spark_task is not None
        batch = spark_task.getLocalProperty("streaming.sql.batchId") or ""
        choose = by.grouping.chooser(sender_context(by, fields, spark_task.partitionId(), batch))
        for rows in batches:
            columns = [python_values(column) for column in rows]
            tasks = [choose(values) for values in zip(*columns, strict=True)]
            yield pa.array(
                [[position[one] for one in ((picked,) if single else picked)] for picked in tasks],
                pa.list_(pa.int32()),
            )

    return chosen


def _task_index(tasks: int, ints: str) -> Callable[..., pa.Array]:
    """Return the function that computes the position of each row's task from the columns of the key."""

    def task_index(*columns: pa.Array) -> pa.Array:
        return pa.array(task_indices([column_hashes(column, ints) for column in columns], tasks))

    return task_index


def _column(df: DataFrame, name: str) -> Column:
    """Return the column of exactly this name. A dot in the name does not make a path, and case matters, as in Storm."""
    if name not in df.columns:
        there = ", ".join(map(repr, df.columns))
        msg = f"a grouping uses column {name!r}, but the DataFrame has only the columns {there}"
        raise InvalidTopologyError(msg)
    return column_named(df, name)
