"""The state table is an ordinary Delta table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import max as newest_of
from pyspark.sql.functions import struct

from stormspark.checkpoint.state_compaction import FAN_IN
from stormspark.checkpoint.state_table import StateTable, TaskChanges, write_changes

pytestmark = pytest.mark.spark


def test_spark_reads_the_state_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C36: what other tools see is what was committed, through compactions and a checkpoint of the log."""
    monkeypatch.setattr("stormspark.checkpoint.state_table._LOG_EVERY", FAN_IN)
    location = str(tmp_path / "state")
    table = StateTable(location, retain_txids=0)
    table.open(0)
    for txid in range(FAN_IN + 2):
        items = [(b"a", b"%d" % txid), (b"b", None if txid % 2 else b"x")]
        table.commit(
            txid, [write_changes(location, [TaskChanges("count", 1, items)], generation=0, txid=txid)]
        )
    while table.compact(1):
        pass
    assert list(Path(location).glob("_delta_log/*.checkpoint.parquet"))
    last = spark.read.format("delta").load(location)
    assert [field.simpleString() for field in last.schema.fields] == [
        "component:string",
        "task:int",
        "kind:string",
        "key:binary",
        "value:binary",
        "txid:bigint",
    ]
    newest = last.groupBy("component", "task", "key").agg(newest_of(struct("txid", "value"))).collect()
    theirs = {bytes(row[2]): bytes(row[3]["value"]) for row in newest if row[3]["value"] is not None}
    ours = {row["key"]: row["value"] for row in table.as_arrow("count").read_all().to_pylist()}
    assert theirs == ours == {b"a": b"%d" % (FAN_IN + 1)}
