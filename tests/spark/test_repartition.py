"""Each repartitioning on a real Spark against the tuple side: partition i has what task i gets (D1-D13)."""

from __future__ import annotations

import doctest
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from stormspark.errors import InvalidTopologyError
from stormspark.grouping import (
    AllGrouping,
    ByChooser,
    ById,
    ByTask,
    CopyToEach,
    CustomGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    GroupingContext,
    LoadAwareShuffleGrouping,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    RoundRobin,
    ShuffleGrouping,
    SinglePartition,
    Stay,
)
from stormspark.grouping.hashing import value_hash
from stormspark.spark import repartition as module
from stormspark.spark.repartition import repartition, sender_context
from stormspark.wire.column_hashes import column_hashes
from tests.conformance.grouping_components import NotReady, OwnCount, Pick

pytestmark = pytest.mark.spark

TASKS = (4, 5, 6, 9)
GRINNING = "\N{GRINNING FACE}"

#: What a column of each type may hold. Every value stands for itself on the tuple side.
COLUMNS: dict[str, list[Any]] = {
    "string": ["storm", "", None, "é", f"a{GRINNING}", "x" * 100, "storm", "日本語" * 20],
    "boolean": [True, False, None],
    "tinyint": [0, -1, 127, None],
    "int": [0, 1, -1, 2**31 - 1, -(2**31), None],
    "bigint": [0, 1, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), None],
    "float": [0.0, -0.0, 0.5, float("nan"), None],
    "double": [0.0, -0.0, 1.0, -1.5, 0.1 + 0.2, float("inf"), float("nan"), None],
    "decimal(38,0)": [Decimal(2**100), Decimal(-1), Decimal(0), None],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-0.01"), None],
    "binary": [b"storm", b"", b"\xff\x00", None],
    "date": [date(2024, 2, 29), date(1969, 12, 31), None],
    "timestamp": [datetime(2024, 2, 29, 1, 2, 3, 4, UTC), datetime(1969, 12, 31, 23, 59, 59, 1, UTC), None],
    "timestamp_ntz": [datetime(2024, 2, 29, 1, 2, 3, 4), None],
    "array<bigint>": [[], [1, -1, None], None],
    "array<string>": [["a", None, GRINNING], [""], None],
    "array<array<double>>": [[[-0.0, float("nan")], []], [], None],
    "array<binary>": [[b"\xff", None, b""], None],
    "map<string,bigint>": [{"a": -1, "b": None}, {}, None],
}


def placed(df: DataFrame) -> list[Row]:
    """The rows of ``df``, each with its partition."""
    return df.withColumn("partition", sf.spark_partition_id()).collect()


def context(fields: tuple[str, ...], ints: str = "long") -> GroupingContext:
    return GroupingContext("split", "default", fields, 2, TASKS, (), Random(1), ints)


@pytest.mark.parametrize("ints", ["long", "integer", "json"])
def test_fields_puts_values_of_every_type_with_the_task_that_tuples_with_them_go_to(
    spark: SparkSession, ints: str
) -> None:
    """Spark puts a row where the fields grouping sends a tuple with the same values, of any type (D1-D3)."""
    names = tuple(f"c{i}" for i in range(len(COLUMNS)))
    schema = "id int, " + ", ".join(f"{name} {kind}" for name, kind in zip(names, COLUMNS, strict=True))
    # The lengths of the columns differ, so the rows combine their values in ever new ways.
    rows = [tuple(column[i % len(column)] for column in COLUMNS.values()) for i in range(50)]
    df = spark.createDataFrame([(i, *row) for i, row in enumerate(rows)], schema)

    for key in [("c0",), ("c4", "c0"), names]:
        grouping = FieldsGrouping(key)
        choose = grouping.chooser(context(names, ints))
        layout = repartition(df, grouping.repartitioning(TASKS, ints)).select("id", sf.spark_partition_id())
        assert layout.rdd.getNumPartitions() == len(TASKS)
        assert dict(map(tuple, layout.collect())) == {
            i: TASKS.index(choose(row)) for i, row in enumerate(rows)
        }


def test_fields_leaves_rows_and_columns_as_they_are(spark: SparkSession) -> None:
    """A layout by fields keeps the schema and all rows, also with dots and capitals in column names (D1)."""
    df = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "`a.word` string, N int")
    layout = repartition(df, ById(("a.word", "N"), 3))
    assert layout.schema == df.schema
    assert Counter(layout.collect()) == Counter(df.collect())


def test_fields_needs_its_columns(spark: SparkSession) -> None:
    """A field that the DataFrame does not have is an error that names the columns it has (D1)."""
    with pytest.raises(
        InvalidTopologyError, match="uses column 'Word', but the DataFrame has only the columns 'word', 'n'"
    ):
        repartition(spark.createDataFrame([("a", 1)], "word string, n int"), ById(("n", "Word"), 3))


def test_shuffle_is_even(spark: SparkSession) -> None:
    """A layout by shuffle gives all partitions nearly the same number of rows and loses none (D5)."""
    df = spark.range(1000, numPartitions=2)
    layout = repartition(df, ShuffleGrouping().repartitioning(TASKS))
    sizes = Counter(row.partition for row in placed(layout))
    assert set(sizes) == {0, 1, 2, 3}
    assert max(sizes.values()) - min(sizes.values()) <= df.rdd.getNumPartitions()
    assert sorted(row.id for row in layout.collect()) == list(range(1000))


def test_all_copies_every_row_to_every_task(spark: SparkSession) -> None:
    """A layout by the all grouping has every row once per task, and the same schema (D9)."""
    df = spark.createDataFrame([("a", 1), ("b", 2), ("b", 2)], "copy string, COPY_ int")
    layout = repartition(df, AllGrouping().repartitioning(TASKS))
    assert layout.schema == df.schema
    got = Counter((*row,) for row in placed(layout))
    assert got == Counter((*row, task) for row in df.collect() for task in range(4))


def test_global_has_the_rows_at_the_lowest_task_and_nowhere_else(spark: SparkSession) -> None:
    """A layout by the global grouping has one partition with all rows (D10)."""
    df = spark.range(100, numPartitions=5)
    layout = repartition(df, GlobalGrouping().repartitioning(TASKS))
    assert layout.rdd.getNumPartitions() == 1
    assert layout.count() == 100


def test_direct_puts_a_row_with_the_task_it_names_and_drops_it_where_there_is_none(
    spark: SparkSession,
) -> None:
    """A layout by task puts each row with the task that it names, and drops rows without a known task (D11, B9)."""
    df = spark.createDataFrame(
        [(9, "a"), (4, "b"), (7, "c"), (5, "d"), (None, "e")], "task bigint, word string"
    )
    layout = repartition(df, ByTask("task", TASKS))
    assert layout.rdd.getNumPartitions() == len(TASKS)
    assert {row.word: TASKS[row.partition] for row in placed(layout)} == {"a": 9, "b": 4, "d": 5}


def test_local_or_shuffle_moves_nothing(spark: SparkSession) -> None:
    """The local-or-shuffle grouping returns the DataFrame itself (D7)."""
    df = spark.range(100, numPartitions=5)
    assert repartition(df, LocalOrShuffleGrouping().repartitioning(TASKS)) is df


CHOOSERS = [
    PartialKeyGrouping("word"),
    PartialKeyGrouping(["n", "word"]),
    PartialKeyGrouping(),
    NoneGrouping(),
    LoadAwareShuffleGrouping(),
    LocalFirstGrouping(),
    CustomGrouping(OwnCount()),
]


def chosen(
    grouping: Grouping,
    rows: list[Any],
    fields: tuple[str, ...],
    partition: int,
    batch: str = "",
    ints: str = "long",
) -> list[tuple[Any, ...]]:
    """The tuple side: each row with the position of each task that one sender chooses."""
    choose = grouping.chooser(sender_context(ByChooser(grouping, TASKS, ints), fields, partition, batch))
    placed_rows = []
    for row in rows:
        tasks = choose(tuple(row))
        placed_rows += [(*row, TASKS.index(task)) for task in ((tasks,) if grouping.single else tasks)]
    return placed_rows


@pytest.mark.parametrize("grouping", CHOOSERS, ids=lambda grouping: grouping.describe())
def test_each_partition_is_a_sender_whose_chooser_sees_its_rows_in_order(
    spark: SparkSession, grouping: Grouping
) -> None:
    """D6-D8, D12, D13: row by row the task that a sender task would have chosen."""
    rows = [(f"word {i % 7}" if i % 3 else "", i % 5 - 2) for i in range(200)]
    df = spark.createDataFrame(rows, "word string, n int").repartition(3).cache()
    layout = repartition(df, grouping.repartitioning(TASKS, "integer"))
    assert layout.schema == df.schema
    assert layout.rdd.getNumPartitions() == len(TASKS)
    expected = [
        one
        for partition, of_partition in enumerate(df.rdd.glom().collect())
        for one in chosen(grouping, of_partition, ("word", "n"), partition, ints="integer")
    ]
    assert Counter(map(tuple, placed(layout))) == Counter(expected)
    df.unpersist()


def test_a_custom_grouping_copies_a_row_to_none_one_or_all_partitions(spark: SparkSession) -> None:
    """A custom grouping may drop a row, or copy it to one, some or all partitions (D13)."""
    df = spark.range(40, numPartitions=2)
    layout = repartition(df, CustomGrouping(Pick()).repartitioning(TASKS))
    assert Counter(map(tuple, placed(layout))) == Counter(
        (n, task) for n in range(40) for task in range((0, 1, 2, 4)[n % 4])
    )


def test_a_chooser_gets_the_values_that_a_tuple_would_have(spark: SparkSession) -> None:
    """D12, D2: a partial key of every type that a column may have."""
    kinds = [kind for kind in COLUMNS if not kind.startswith("timestamp")]
    fields = tuple(f"c{i}" for i in range(len(kinds)))
    rows = [tuple(COLUMNS[kind][i % len(COLUMNS[kind])] for kind in kinds) for i in range(12)]
    schema = ", ".join(f"{field} {kind}" for field, kind in zip(fields, kinds, strict=True))
    df = spark.createDataFrame(rows, schema).coalesce(1)
    grouping = PartialKeyGrouping(fields)
    layout = repartition(df, grouping.repartitioning(TASKS))
    got = [row[-1] for row in placed(layout)]
    assert Counter(got) == Counter(task for *_, task in chosen(grouping, rows, fields, 0))


def test_the_choice_of_a_row_is_the_same_when_spark_asks_again(spark: SparkSession) -> None:
    """D8: chance is seeded by partition, so a repeated Spark task repeats its choices."""
    layout = repartition(spark.range(100, numPartitions=3), NoneGrouping().repartitioning(TASKS))
    first, second = (Counter(map(tuple, placed(layout))) for _ in range(2))
    assert first == second


def test_the_fields_of_a_partial_key_are_columns(spark: SparkSession) -> None:
    """A partial key's field that is no column is an error that names the columns (D12)."""
    with pytest.raises(
        InvalidTopologyError, match="uses column 'Word', but the DataFrame has only the columns 'id'"
    ):
        repartition(spark.range(3), PartialKeyGrouping("Word").repartitioning(TASKS))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Pick(unknown=2), "choose_tasks must return a list of ids of its target tasks [4, 5, 6, 9]"),
        (Pick(fails=2), "choose_tasks raised ZeroDivisionError: no rule"),
        (NotReady(), "prepare raised LookupError: no table of tasks"),
    ],
)
def test_what_goes_wrong_in_a_rule_is_reported(spark: SparkSession, rule: Any, message: str) -> None:
    """D13: as on the tuple side."""
    layout = repartition(spark.range(3, numPartitions=1), CustomGrouping(rule).repartitioning(TASKS))
    with pytest.raises(PythonException) as raised:
        layout.collect()
    assert "from component 'DataFrame', task 0" in str(raised.value)
    assert message in str(raised.value)


def test_a_streaming_dataframe_is_laid_out_batch_by_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Each grouping lays out a streaming DataFrame, each batch as a sender of its own (D1, D5, D7, D9, D10, D12)."""
    words = [f"word-{n}" for n in range(20)]
    for part in (words[:10], words[10:]):
        spark.createDataFrame([(word,) for word in part], "word string").coalesce(1).write.mode(
            "append"
        ).json(str(tmp_path / "words"))
    source = (
        spark.readStream.schema("word string").option("maxFilesPerTrigger", 1).json(str(tmp_path / "words"))
    )
    layouts = {
        "fields": repartition(source, FieldsGrouping("word").repartitioning(TASKS)),
        "all": repartition(source, CopyToEach(2)),
        "shuffle": repartition(source, RoundRobin(2)),
        "global": repartition(source, SinglePartition()),
        "local": repartition(source, Stay()),
        "drawn": repartition(source, NoneGrouping().repartitioning(TASKS)),
        "partial": repartition(source, PartialKeyGrouping("word").repartitioning(TASKS)),
    }
    got: dict[str, Counter[tuple[str, int]]] = {}
    for name, layout in layouts.items():
        query = (
            layout.withColumn("partition", sf.spark_partition_id())
            .writeStream.format("memory")
            .queryName(name)
            .option("checkpointLocation", str(tmp_path / name))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        got[name] = Counter((row.word, row.partition) for row in spark.table(name).collect())

    choose = FieldsGrouping("word").chooser(context(("word",)))
    assert got["fields"] == Counter((word, TASKS.index(choose([word]))) for word in words)
    assert got["all"] == Counter((word, task) for word in words for task in (0, 1))
    assert got["global"] == got["local"] == Counter((word, 0) for word in words)
    assert Counter(partition for _, partition in got["shuffle"].elements()) == {0: 10, 1: 10}
    for name, grouping in (("drawn", NoneGrouping()), ("partial", PartialKeyGrouping("word"))):
        in_batches = (
            [(word,) for word in part] for part in (words[:10], words[10:])
        )  # a batch is a sender of its own
        assert got[name] == Counter(
            one
            for batch, rows in enumerate(in_batches)
            for one in chosen(grouping, rows, ("word",), 0, str(batch))
        )


@pytest.mark.parametrize("ints", ["long", "integer", "json"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "storm", "a"]),
        pa.array(["a", None, "é", GRINNING]),
        pa.array(["storm", "heron", "spark"]).slice(1),
        pa.array(["storm", None], pa.large_string()),
        pa.array([None, None], pa.string()),
        pa.array([], pa.string()),
        pa.array([None, None]),
        pa.array([-1, None, 2**40]),
        pa.array([True, None, False, True]).slice(1),
        pa.array([0.1 + 0.2, None, -0.0, 0.0]),
        pa.array([b"storm", None, b"\xff"]),
        pa.array([{"a": 1, "b": None}, None]),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_a_column_hashes_as_its_values(column: pa.Array, ints: str) -> None:
    """Hashing an Arrow column gives the hash of each of its values, also with nulls and offsets (D2, D3)."""
    got = column_hashes(column, ints).view("int32").tolist()
    assert got == [value_hash(value, ints) for value in column.to_pylist()]


def test_the_examples_in_the_docstrings(spark: SparkSession) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
