"""Delta tables as source and as sink of one topology; what happens when a table's columns or rows change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from stormspark import TopologyBuilder
from stormspark.connectors import DeltaBolt, DeltaSpout
from stormspark.errors import InvalidTopologyError, StormsparkError
from stormspark.spark import SparkTopology
from tests.waiting import PATIENCE_SECS, wait_for, wait_until_idle

pytestmark = pytest.mark.spark

Start = Callable[..., SparkTopology]


_ROWS = pa.table({"n": [1, 2], "s": ["a", "b"], "x": [0.5, 0.5]})


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Callable[..., Any]:
    """Runs SQL, in which ``{t}`` is a table of this test; version 1 has two rows. Spark would take seconds to make it."""
    deltalake.DeltaTable.create(tmp_path / "in", schema=_ROWS.schema)
    deltalake.write_deltalake(tmp_path / "in", _ROWS, mode="append")
    return partial(_sql, spark, tmp_path)


@pytest.fixture
def table_of_spark(spark: SparkSession, tmp_path: Path) -> Callable[..., Any]:
    """The same; its columns can be renamed."""
    run = partial(_sql, spark, tmp_path)
    run(
        "CREATE TABLE {t} (n BIGINT, s STRING, x DOUBLE) USING delta TBLPROPERTIES('delta.columnMapping.mode'='name')"
    )
    run("INSERT INTO {t} VALUES (1, 'a', 0.5), (2, 'b', 0.5)")
    return run


def _sql(spark: SparkSession, folder: Path, sql: str) -> Any:
    return spark.sql(sql.format(t=f"delta.`{folder / 'in'}`"))


def copies(tmp_path: Path, over_column_changes: bool = False, **options: Any) -> Any:
    """A topology that copies two columns of the table to another one."""
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    builder = TopologyBuilder()
    spout = DeltaSpout(
        tmp_path / "in", schema.names, options=options, over_column_changes=over_column_changes
    )
    builder.set_spout("orders", spout, 2)
    builder.set_bolt("copy", DeltaBolt(tmp_path / "out", schema=schema), 2).shuffle_grouping("orders")
    return builder.create_topology("copies")


def copied(tmp_path: Path) -> list[int]:
    return sorted(deltalake.DeltaTable(tmp_path / "out").to_pyarrow_table()["n"].to_pylist())


def acked(running: SparkTopology) -> int:
    assert not running.wait(0), running.error
    return running.statistics().components["orders"].acked


def error_of(running: SparkTopology) -> str:
    assert running.wait(PATIENCE_SECS), "it still runs"
    assert isinstance(running.error, StormsparkError), running.error
    return str(running.error)


def test_rows_are_copied_once_also_over_new_columns_and_a_restart(
    spark: SparkSession, start: Start, table: Callable[..., Any], tmp_path: Path
) -> None:
    """W13: acked after their commit; a column that is added, while it runs or not, changes nothing for the others."""
    running = start(copies(tmp_path), checkpoint=tmp_path / "ck")
    wait_for(lambda: acked(running) == 2, message="the first rows")
    table("ALTER TABLE {t} ADD COLUMN (y INT)")
    table("INSERT INTO {t} VALUES (3, 'c', 0.5, 1)")
    wait_for(lambda: acked(running) == 3, message="a row with a new column")
    running.stop()
    table("ALTER TABLE {t} ADD COLUMN (z INT)")
    table("INSERT INTO {t} VALUES (4, 'd', 0.5, 1, 2)")
    running = start(copies(tmp_path), checkpoint=tmp_path / "ck")
    wait_for(lambda: copied(tmp_path) == [1, 2, 3, 4], message="a row with another one")
    wait_until_idle(running)
    running.stop()
    assert copied(tmp_path) == [1, 2, 3, 4] and running.error is None
    rows = spark.read.format("delta").load(str(tmp_path / "out")).orderBy("n").collect()
    assert [tuple(row) for row in rows] == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


def test_a_column_of_the_spout_that_is_renamed_is_an_error_that_says_so(
    start: Start, table_of_spark: Callable[..., Any], tmp_path: Path
) -> None:
    """While it runs, and when it is started."""
    running = start(copies(tmp_path), checkpoint=tmp_path / "ck")
    wait_for(lambda: acked(running) == 2, message="the first rows")
    table_of_spark("ALTER TABLE {t} RENAME COLUMN s TO label")
    told = error_of(running)
    assert "spout 'orders'" in told and "test_delta.py:" in told and str(tmp_path / "in") in told
    assert "has no column 's'; its columns are n, label, x." in told
    assert error_of(start(copies(tmp_path), checkpoint=tmp_path / "ck")) == told


@pytest.mark.long  # a column that is read is renamed above
def test_another_column_that_is_renamed_is_an_error_where_rows_before_it_are_unread(
    spark: SparkSession, start: Start, table_of_spark: Callable[..., Any], tmp_path: Path
) -> None:
    """Where rows are unread that were written before: Delta refuses; with what the error names, it reads on."""
    running = start(copies(tmp_path), checkpoint=tmp_path / "ck")
    wait_for(lambda: acked(running) == 2, message="the first rows")
    wait_until_idle(running)
    running.stop()
    table_of_spark("INSERT INTO {t} VALUES (3, 'c', 0.5)")
    table_of_spark("ALTER TABLE {t} RENAME COLUMN x TO price")
    table_of_spark("INSERT INTO {t} VALUES (4, 'd', 0.5)")
    told = error_of(start(copies(tmp_path), checkpoint=tmp_path / "ck"))
    changed = f"the columns of the Delta table {tmp_path / 'in'} have changed: 'x' is now called 'price'"
    assert f"spout 'orders': {changed}" in told
    assert "over_column_changes=True" in told and "\n" not in told
    running = start(copies(tmp_path, over_column_changes=True), checkpoint=tmp_path / "ck")
    wait_for(lambda: acked(running) == 2, message="the rows around the change")
    running.stop()
    assert copied(tmp_path) == [1, 2, 3, 4]


def test_rows_that_are_deleted_are_an_error_that_names_the_option(
    start: Start, table: Callable[..., Any], tmp_path: Path
) -> None:
    """And with the option it goes on."""
    running = start(copies(tmp_path), checkpoint=tmp_path / "ck")
    wait_for(lambda: acked(running) == 2, message="the first rows")
    table("DELETE FROM {t} WHERE n = 1")
    told = error_of(running)
    assert f"rows of the Delta table {tmp_path / 'in'} were deleted or changed" in told
    assert "skipChangeCommits" in told
    table("INSERT INTO {t} VALUES (3, 'c', 0.5)")
    running = start(copies(tmp_path, skipChangeCommits="true"), checkpoint=tmp_path / "ck")
    wait_for(lambda: copied(tmp_path) == [1, 2, 3], message="the third row")
    running.stop()


def test_options_reach_delta_and_names_of_tables_do(
    spark: SparkSession, start: Start, table: Callable[..., Any], tmp_path: Path
) -> None:
    """startingVersion; a table of the catalogue; a translator with columns."""
    table("INSERT INTO {t} VALUES (3, 'c', 0.5)")
    running = start(copies(tmp_path, startingVersion=2, maxFilesPerTrigger=1))
    wait_for(lambda: acked(running) == 1, message="the row of version 2")
    wait_until_idle(running)
    running.stop()
    assert copied(tmp_path) == [3]
    spark.sql(f"CREATE TABLE named_orders USING delta LOCATION '{tmp_path / 'in'}'")
    try:
        builder = TopologyBuilder()
        spout = DeltaSpout("named_orders", ["n"], lambda row: (len(row[0]) + 100,), columns=["s"])
        builder.set_spout("orders", spout)
        builder.set_bolt("copy", DeltaBolt(tmp_path / "named")).shuffle_grouping("orders")
        running = start(builder.create_topology("named"))
        wait_for(lambda: acked(running) == 3, message="three rows")
        running.stop()
    finally:
        spark.sql("DROP TABLE named_orders")
    assert deltalake.DeltaTable(tmp_path / "named").to_pyarrow_table()["n"].to_pylist() == [101] * 3


@pytest.mark.parametrize(
    ("path", "fields", "error"),
    [
        ("nowhere", ["n"], "there is no Delta table .*/nowhere"),
        ("in", ["n", "price"], r"has no column 'price'; its columns are n, s, x\."),
    ],
)
def test_what_can_not_be_read_is_reported_at_the_start(
    path: str, fields: list[str], error: str, start: Start, table: Callable[..., Any], tmp_path: Path
) -> None:
    """With the spout and the user's line."""
    builder = TopologyBuilder()
    builder.set_spout("orders", DeltaSpout(tmp_path / path, fields))
    running = start(builder.create_topology("unreadable"))
    assert running.wait(PATIENCE_SECS)
    with pytest.raises(InvalidTopologyError, match=rf"test_delta\.py:\d+: spout 'orders': .*{error}"):
        raise running.error or AssertionError
