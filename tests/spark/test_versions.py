"""What stormspark does in another way where Spark lacks something. All of it works on each version, so it is tried on each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType

from stormspark.spark import versions
from stormspark.spark.checkpoint_folder import planned_offsets
from stormspark.spark.versions import (
    keys_of_partitions,
    number_of_streams,
    repartition_by_id,
    with_arrow_column,
)

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("partitions", [1, 2, 7, 100])
def test_keys_go_where_sparks_hash_puts_them(spark: SparkSession, partitions: int) -> None:
    keys = spark.createDataFrame(
        [(number, key) for number, key in enumerate(keys_of_partitions(partitions))], "number int, key int"
    )
    wrong = keys.where(sf.pmod(sf.hash("key"), sf.lit(partitions)) != sf.col("number"))
    assert wrong.collect() == []


class Without:
    """A DataFrame of a Spark that has no ``repartitionById``."""

    def __init__(self, df: DataFrame) -> None:
        self.repartition = df.repartition


def test_rows_come_to_the_partition_that_a_column_names(spark: SparkSession) -> None:
    """Null and negative numbers go where ``repartitionById`` sends them, too."""
    numbers: list[Any] = [(number,) for number in range(-9, 30)] + [(None,)]
    df = spark.createDataFrame(numbers, "target int")
    for partitions in (1, 3, 8):
        older: Any = Without(df)
        ways = [
            repartition_by_id(older, partitions, "target"),
            repartition_by_id(df, partitions, sf.col("target")),
        ]
        for rows in ways:
            found = rows.select("target", sf.spark_partition_id().alias("at")).collect()
            assert len(found) == len(numbers)
            assert all(row["at"] == (row["target"] or 0) % partitions for row in found)
            assert rows.rdd.getNumPartitions() == partitions


@pytest.mark.parametrize("has_arrow_udf", [True, False])
def test_a_column_is_computed_from_record_batches(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, has_arrow_udf: bool
) -> None:
    if not has_arrow_udf:
        monkeypatch.setattr(versions, "arrow_udf", None)
    elif not hasattr(functions, "arrow_udf"):
        pytest.skip("Spark 4.0 has no arrow_udf")
    rows = [(1, "a", {"x": 1}), (2, None, None), (3, "ccc", {})]
    df = spark.createDataFrame(rows, "`a.b` int, word string, more map<string,int>")

    def lengths(batches: Iterator[Sequence[pa.Array]]) -> Iterator[pa.Array]:
        for word, number in batches:
            sizes = [
                len(text or "") + one for text, one in zip(word.to_pylist(), number.to_pylist(), strict=True)
            ]
            yield pa.array(sizes, pa.int32())

    added = with_arrow_column(df, "size", IntegerType(), ["word", "a.b"], lengths)
    assert added.columns == ["a.b", "word", "more", "size"]
    assert sorted(tuple(row) for row in added.select("`a.b`", "word", "size").collect()) == [
        (1, "a", 2),
        (2, None, 2),
        (3, "ccc", 6),
    ]
    assert [row["more"] for row in added.orderBy("`a.b`").collect()] == [{"x": 1}, None, {}]


def test_a_plan_has_as_many_streams_as_spark_s_log_has_offsets(spark: SparkSession, tmp_path: Path) -> None:
    """Where a plan reads one stream twice, too; and the log is read as each version of Spark writes it."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load().select("value")
    rows.createOrReplaceTempView("numbers_of_streams")
    with_x = "WITH x AS (SELECT * FROM numbers_of_streams) SELECT * FROM x"
    plans = [
        rows,
        rows.union(rows),
        spark.sql(with_x),
        spark.sql(f"{with_x} UNION ALL SELECT * FROM x"),
        spark.table("numbers_of_streams"),
    ]
    writer = reduce(DataFrame.union, plans).writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", tmp_path.as_uri()).start()
    query.awaitTermination()
    logged = planned_offsets(spark, tmp_path.as_uri())
    assert sum(map(number_of_streams, plans)) == len(logged)
    assert all(offset is not None and "offset" in offset.positions() for offset in logged)
