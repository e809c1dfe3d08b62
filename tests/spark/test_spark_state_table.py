"""The state table that Spark writes, for places that delta-rs can't reach."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from stormspark.checkpoint.handed_state import HandedState
from stormspark.checkpoint.ordered_keys import encode_key
from stormspark.checkpoint.plain_state import find_state, state_in
from stormspark.checkpoint.state_components import ComponentState, described
from stormspark.checkpoint.state_files import ChangedRows, TaskChanges, changed_rows
from stormspark.checkpoint.state_table import StateTable, write_changes
from stormspark.errors import (
    CheckpointError,
    FencedError,
    UnsupportedEnvironmentError,
)
from stormspark.spark import spark_state_table, submit
from stormspark.spark.spark_state_table import SparkStateTable, is_for_spark
from tests.spark.test_exactly_once import topology

pytestmark = pytest.mark.spark


def rows(txid: int, items: Mapping[bytes, bytes | None], generation: int = 0) -> ChangedRows | None:
    return changed_rows([TaskChanges("count", 1, items.items())], generation=generation, txid=txid)


def state(table: SparkStateTable, as_of: int | None = None) -> dict[bytes, bytes]:
    return {row["key"]: row["value"] for row in table.newest_rows("component = 'count'", as_of).to_pylist()}


@pytest.fixture
def location(tmp_path: Path) -> str:
    return (tmp_path / "state").as_uri()


@pytest.fixture
def table(spark: SparkSession, location: str) -> SparkStateTable:
    table = SparkStateTable(spark, location, retain_txids=1)
    table.open(0)
    return table


@pytest.mark.parametrize(
    ("setting", "location", "expected"),
    [
        (None, "/checkpoints/count", False),
        (None, "s3://bucket/count", False),
        (None, "abfss://box@account.dfs.core.windows.net/count", False),
        (None, "hdfs://name:8020/count", True),
        (None, "dbfs:/count", True),
        ("spark", "/checkpoints/count", True),
        ("driver", "/checkpoints/count", False),
        ("delta-rs", "hdfs://name:8020/count", False),
    ],
)
def test_the_writer_follows_from_the_setting_and_the_place(
    setting: str | None, location: str, expected: bool
) -> None:
    """C36: delta-rs where it can, else Spark, unless somebody says otherwise."""
    assert is_for_spark(setting, location) is expected


def test_batches_in_order_and_once(spark: SparkSession, table: SparkStateTable, location: str) -> None:
    """C36, C44: what was committed is there for the next driver, as of each batch, with what the driver noted."""
    assert (table.last_txid, table.oldest_txid) == (-1, -1)
    table.commit(0, [rows(0, {b"a": b"1", b"b": b"1"}), None], {b"tasks": b"2"})
    table.announce(1, {b"spout/0": b"meta"})
    assert table.announced() == (1, {b"spout/0": b"meta"})
    table.commit(1, [rows(1, {b"a": b"2", b"b": None})])
    table.commit(2, [])
    successor = SparkStateTable(spark, location)
    successor.open(3)
    assert (successor.last_txid, successor.oldest_txid, successor.announced()) == (2, 0, (-1, {}))
    assert successor.metadata() == {b"tasks": b"2"}
    assert state(successor) == {b"a": b"2"}
    assert state(successor, 0) == {b"a": b"1", b"b": b"1"}
    for txid in (2, 4):
        with pytest.raises(CheckpointError, match="the next must be 3"):
            successor.commit(txid, [])
    with pytest.raises(CheckpointError, match="batch 2 of generation 3"):
        successor.commit(3, [rows(2, {b"a": b"9"}, generation=3)])


def test_an_earlier_driver_is_fenced_off_and_leaves_nothing(
    spark: SparkSession, table: SparkStateTable, location: str
) -> None:
    """C38: of two drivers the later one has it, from its opening on, whatever the first one still brings."""
    table.commit(0, [rows(0, {b"a": b"1"})])
    second = SparkStateTable(spark, location)
    second.open(1)
    with pytest.raises(
        FencedError, match="generation 1 has written to it, and this driver is of generation 0"
    ):
        table.commit(1, [rows(1, {b"a": b"lost"})])
    with pytest.raises(FencedError):
        table.open(0)
    with pytest.raises(FencedError):
        SparkStateTable(spark, location).open(1)
    second.commit(1, [rows(1, {b"a": b"2"}, generation=1)])
    assert state(second) == {b"a": b"2"}
    assert spark.read.format("delta").load(location).where("value = cast('lost' as binary)").count() == 0


@pytest.mark.long  # an earlier driver is fenced off above
def test_what_an_earlier_driver_commits_while_another_opens_is_known(
    spark: SparkSession, table: SparkStateTable, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C38, C44: after the second one has looked, and before it has written; so no batch is committed twice."""
    second = SparkStateTable(spark, location)
    look, looked = second._look, []

    def look_early() -> Any:
        found = look()
        if not looked:
            looked.append(found)
            table.commit(0, [rows(0, {b"a": b"1"})])
        return found

    monkeypatch.setattr(second, "_look", look_early)
    second.open(1)
    assert (second.last_txid, state(second)) == (0, {b"a": b"1"})
    third = SparkStateTable(spark, location)
    third.open(2)
    assert third.last_txid == 0


@pytest.mark.parametrize("landed", [True, pytest.param(False, marks=pytest.mark.long)])
def test_what_a_commit_raised_does_not_say_whether_it_happened(
    landed: bool, table: SparkStateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C44: the table is asked; what is there is committed, what is not can be committed again."""
    from py4j.protocol import Py4JError

    write = SparkStateTable._write

    def fail(self: SparkStateTable, *arguments: Any) -> bool:
        if landed:
            write(self, *arguments)
        raise Py4JError("the connection broke")

    table.commit(0, [rows(0, {b"a": b"1"})])
    monkeypatch.setattr(SparkStateTable, "_write", fail)
    if landed:
        table.commit(1, [rows(1, {b"a": b"2"})])
    else:
        with pytest.raises(CheckpointError, match="the connection broke"):
            table.commit(1, [rows(1, {b"a": b"2"})])
        monkeypatch.undo()
        with pytest.raises(CheckpointError, match="open it"):
            table.commit(1, [rows(1, {b"a": b"2"})])
        table.open(0)
        table.commit(1, [rows(1, {b"a": b"2"})])
    assert (table.last_txid, state(table)) == (1, {b"a": b"2"})


@pytest.mark.long
def test_compaction_changes_nothing_that_is_retained(
    spark: SparkSession, table: SparkStateTable, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C36: one row a key, and those of the batches that can still be asked for; Spark's own entries do no harm."""
    monkeypatch.setattr(spark_state_table, "_COMPACT_AFTER", 3)
    table._compact_after = 3
    table.announce(0, {b"spout/0": b"meta"})
    for txid in range(4):
        table.commit(
            txid, [rows(txid, {b"a": b"%d" % txid, b"%d" % txid: b"x", b"gone": b"y"})], {b"n": b"1"}
        )
    table.commit(4, [rows(4, {b"gone": None})])
    before = state(table, 3), state(table)
    table.compact(0)
    assert (table.oldest_txid, state(table, 3), state(table)) == (3, *before)
    with pytest.raises(CheckpointError, match="has the batches 3 to 4, but not batch 2"):
        state(table, 2)
    # a, 0 to 3, gone and n as of batch 3, and that gone is gone
    assert spark.read.format("delta").load(location).count() == 8
    spark.sql(f"OPTIMIZE delta.`{location}`")
    successor = SparkStateTable(spark, location)
    successor.open(1)
    successor.commit(5, [rows(5, {b"a": b"5"}, generation=1)])
    assert state(successor)[b"a"] == b"5"
    assert successor.metadata() == {b"n": b"1"}


def test_tables_that_are_not_ours_are_refused(
    spark: SparkSession, table: SparkStateTable, location: str, tmp_path: Path
) -> None:
    """C36: a newer version's, one that delta-rs writes, and one that somebody else has written to."""
    table.commit(0, [rows(0, {b"a": b"1"})])
    with pytest.raises(CheckpointError, match=r"was written by Spark \(stormspark\.state\.table"):
        StateTable(tmp_path / "state").open(1)
    other = StateTable(tmp_path / "other")
    other.open(0)
    other.commit(0, [write_changes(other.location, [], generation=0, txid=0)])
    with pytest.raises(CheckpointError, match="not a state table that Spark has written"):
        SparkStateTable(spark, Path(other.location).as_uri()).open(1)
    newer = json.dumps({"stormspark": {"format": 99, "surprise": 1}})
    one = spark.read.format("delta").load(location)
    one.write.format("delta").mode("append").option("userMetadata", newer).save(location)
    with pytest.raises(CheckpointError, match="newer stormspark"):
        SparkStateTable(spark, location).open(1)
    one.write.format("delta").mode("append").save(location)
    with pytest.raises(CheckpointError, match="changed by somebody else"):
        SparkStateTable(spark, location).open(1)


@pytest.mark.long  # the table that delta-rs writes is read in test_state_table.py
def test_people_read_it_as_any_other(
    spark: SparkSession, table: SparkStateTable, location: str, tmp_path: Path
) -> None:
    """C36: by delta-rs where that reaches it, else by Spark."""
    known = described({"count": ComponentState(2, "storm")})
    for txid, value in enumerate([1, 2]):
        items = {encode_key("a"): pickle.dumps(value), encode_key("b"): None if txid else pickle.dumps("x")}
        table.commit(txid, [rows(txid, items)], known)
    reader = SparkStateTable(spark, location)
    for as_of, expected in ((None, [(1, "a", 2)]), (1, [(1, "a", 2)]), (0, [(1, "a", 1), (1, "b", "x")])):
        for found in (find_state(str(tmp_path / "state"), "count", as_of), state_in(reader, "count", as_of)):
            assert [tuple(entry) for batch in found.batches() for entry in batch] == expected
            assert list(found.of_task(0).batches()) == []
    with pytest.raises(CheckpointError, match="no state of 'total'"):
        find_state(str(tmp_path / "state"), "total")


def test_what_it_needs_is_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C36: Delta in the session; and no recordings, which workers write beside the table."""
    monkeypatch.setattr(spark_state_table, "reads_delta", lambda session: False)
    with pytest.raises(UnsupportedEnvironmentError, match=r"start Spark with --packages io\.delta"):
        SparkStateTable(spark, "hdfs://name/state")
    conf = {"stormspark.state.table": "spark", "stormspark.record.inputs": True}
    with pytest.raises(UnsupportedEnvironmentError, match=r"stormspark\.record\.inputs"):
        submit(topology("recorded"), spark, conf=conf, checkpoint=tmp_path)


def test_a_file_that_is_cut_is_reported(tmp_path: Path) -> None:
    """C36: what a worker was sent of its state is whole, or the worker does not begin."""
    (tmp_path / "state").write_bytes(b"\xff\xff\xff\xff\x10\x00")
    with pytest.raises(CheckpointError, match="that the driver has sent can't be read"):
        list(HandedState(str(tmp_path / "state"), "hdfs://name/state").restore("count", 0))
