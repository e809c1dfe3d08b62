"""FileSpout without Spark: what is read, once, in which order, and how much of it at a time."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stormspark import BasicBolt, Fields, TopologyBuilder
from stormspark.api import ExponentialBackoff, SourceProgress
from stormspark.connectors import FileSpout
from stormspark.connectors.local_files import LocalFiles
from stormspark.connectors.schema_text import read_schema
from stormspark.errors import ComponentError, FailedException, InvalidTopologyError
from stormspark.local import LocalCluster, submit


def put(folder: Path, name: str, text: str, at: int | None = None) -> None:
    """A file, there as a whole; ``at`` is when it was changed, in seconds."""
    hidden = folder / f".{name}"
    hidden.write_text(text)
    if at is not None:
        os.utime(hidden, (at, at))
    hidden.rename(folder / name)


def rows(source: LocalFiles) -> list[tuple[Any, ...]]:
    return [row for _, some in source.poll() for row in some]


def test_files_are_read_once_by_time_of_change_then_by_name(tmp_path: Path) -> None:
    """Also those that come later; hidden ones, folders and half written ones are not seen."""
    put(tmp_path, "b", "b1\nb2", at=100)
    put(tmp_path, "a", "a1\r\n\na3\n", at=100)
    put(tmp_path, "z", "z1\n", at=50)
    for hidden in ("_x", ".x"):
        (tmp_path / hidden).write_text("no\n")
    (tmp_path / "folder").mkdir()
    source = LocalFiles(str(tmp_path), "text", None, {})
    assert rows(source) == [("z1",), ("a1",), ("",), ("a3",), ("b1",), ("b2",)]
    assert rows(source) == []
    put(tmp_path, "later", "l\n", at=10)
    (tmp_path / "_x").rename(tmp_path / "x")
    assert rows(source) == [("l",), ("no",)]
    assert rows(source) == []
    source.close()


def test_a_file_is_read_in_pieces_and_not_while_many_wait(tmp_path: Path) -> None:
    """Bounded memory: whatever a file's size."""
    put(tmp_path, "a", "".join(f"{n}\n" for n in range(10_000)), at=1)
    put(tmp_path, "b", "last\n", at=2)
    source = LocalFiles(str(tmp_path), "text", None, {})
    sizes, partitions = [], []
    for _ in range(3):
        for partition, some in source.poll():
            sizes.append(len(some))
            partitions.append(partition)
        source.told(SourceProgress(4096))
        assert list(source.poll()) == []
        source.told(SourceProgress(4095))
    assert sizes == [4096, 4096, 1808, 1] and partitions == [0, 0, 0, 1]


def test_json_csv_and_parquet_by_schema(tmp_path: Path) -> None:
    """What does not fit its column is None, as Spark has it; what a parquet file does not have, too."""
    schema = "id long, price decimal(6,2), `is ok` boolean, at timestamp, day date, name string"
    at, day = datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC), date(2024, 2, 3)
    full = (7, Decimal("1.50"), True, at, day, "x")
    for kind in ("json", "csv", "parquet"):
        (tmp_path / kind).mkdir()
    records = [
        {
            "id": 7,
            "price": 1.5,
            "is ok": True,
            "at": "2024-02-03T04:05:06Z",
            "day": "2024-02-03",
            "name": "x",
        },
        {"id": "7", "price": "much", "is ok": 1, "at": "then", "day": 3, "name": 5, "more": 1},
    ]
    text = "".join(json.dumps(record) + "\n" for record in records) + "\nno json\n"
    with gzip.open(tmp_path / "json" / "a.json.gz", "wt") as file:
        file.write(text)
    nothing = (None,) * 6
    expected = [full, (None, None, None, None, None, "5"), nothing]
    assert rows(LocalFiles(str(tmp_path / "json"), "json", schema, {})) == expected
    put(
        tmp_path / "csv",
        "a.csv",
        "id;price;ok;at;day;name\n7;1.5;true;2024-02-03T04:05:06Z;2024-02-03;x\n1e9;;maybe\n\n",
    )
    source = LocalFiles(str(tmp_path / "csv"), "csv", schema, {"header": True, "sep": ";"})
    assert rows(source) == [full, nothing]
    table = pa.table({"name": ["x", None], "id": [7, 8], "other": [1, 2], "at": [at, None]})
    pq.write_table(table, tmp_path / "parquet" / "a.parquet")
    found = rows(LocalFiles(str(tmp_path / "parquet"), "parquet", schema, {}))
    assert found == [(7, None, None, at, None, "x"), (8, None, None, None, None, None)]


def test_decimals_have_their_digits() -> None:
    """Rounded half up as Spark does; what is too large is None."""
    kinds = ("decimal", "decimal(5)", "decimal(6, 2)")
    columns = [column for kind in kinds for column in read_schema(f"x {kind}")]
    assert [column.of_text("12345.675") for column in columns] == [Decimal(12346), Decimal(12346), None]
    assert [str(column.of_text("1.675")) for column in columns] == ["2", "2", "1.68"]


@pytest.mark.parametrize(
    ("path", "format", "schema", "options", "error"),
    [
        (".", "orc", "n long", {}, "of the formats text, json, csv, parquet, got 'orc'"),
        (".", "json", "n array<long>", {}, "has 'n array<long>', whose type"),
        (".", "json", "n long, m map<string,long>", {}, "has 'm map<string,long>', whose type"),
        (".", "csv", "n long", {"multiLine": True}, "option 'multiLine' .* it knows delimiter, header"),
        ("s3://bucket/in", "text", None, {}, "of this host, got s3://bucket/in"),
        ("/no/such/folder", "text", None, {}, "finds no file or folder /no/such/folder"),
    ],
)
def test_a_source_that_only_spark_can_read_is_reported(
    path: str, format: str, schema: str | None, options: dict[str, Any], error: str
) -> None:
    """When the topology starts, with the user's line."""
    builder = TopologyBuilder()
    builder.set_spout("files", FileSpout(path, format, schema=schema, fields=["n"], options=options))
    with pytest.raises(InvalidTopologyError, match=rf"test_local_files\.py:\d+: spout 'files': .*{error}"):
        submit(builder.create_topology("refused"))


class Note(BasicBolt):
    """Notes who got which line; fails some the first time."""

    seen: list[tuple[int, str]]
    failed: Counter[str]

    def prepare(self, conf: Any, context: Any) -> None:
        self.task = context.this_task_index

    def execute(self, tup: Any, collector: Any) -> None:
        if tup["line"].endswith("7") and not Note.failed[tup["line"]]:
            Note.failed[tup["line"]] += 1
            raise FailedException("the first time")
        Note.seen.append((tup.source_task, tup["line"]))


def topology(folder: Path, spouts: int = 1) -> Any:
    Note.seen, Note.failed = [], Counter()
    builder = TopologyBuilder()
    retry = ExponentialBackoff(initial_delay=0.2)
    builder.set_spout("files", FileSpout(folder, retry=retry), spouts)
    builder.set_bolt("note", Note(), 2).fields_grouping("files", Fields("line"))
    return builder.create_topology("files")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_a_topology_over_files_on_the_local_engine(tmp_path: Path, workers: int) -> None:
    """W13: each file to one task, in order, files shared out over tasks; what fails is emitted again; new files come."""
    for name in "abc":
        put(tmp_path, name, "".join(f"{name}{n}\n" for n in range(5000)), at=1)
    running = submit(topology(tmp_path, spouts=2), conf={"topology.workers": workers})
    try:
        running.run_until_idle()
        put(tmp_path, "d", "d1\n")
        running.run_until_idle()
    finally:
        running.stop()
    assert Counter(line for _, line in Note.seen) == Counter(
        [*(f"{name}{n}" for name in "abc" for n in range(5000)), "d1"]
    )
    tasks = {name: {task for task, line in Note.seen if line[0] == name} for name in "abcd"}
    assert all(len(found) == 1 for found in tasks.values())
    assert tasks["a"] == tasks["c"] != tasks["b"] == tasks["d"]
    statistics = running.statistics().components["files"]
    assert (statistics.acked, statistics.pending, statistics.queued) == (15_001, 0, 0)
    assert statistics.failed == sum(Note.failed.values()) == 1500


def test_files_on_a_simulated_clock(tmp_path: Path) -> None:
    """J25: nothing is read but by the test's batches; retries wait for the test's time; an inactive spout reads nothing."""
    put(tmp_path, "a", "1\n7\n")
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("files", {}, topology(tmp_path), active=False)
        running.run_batch()
        assert Note.seen == []
        running.activate()
        running.run_batch()
        assert [line for _, line in Note.seen] == ["1"]
        cluster.advance_time(1)
        running.run_until_idle()
        assert [line for _, line in Note.seen] == ["1", "7"]


def test_a_source_that_raises_ends_the_topology_with_its_spout_named(tmp_path: Path) -> None:
    """Here a parquet file that is none."""
    put(tmp_path, "a.parquet", "no parquet")
    builder = TopologyBuilder()
    builder.set_spout("files", FileSpout(tmp_path, "parquet", schema="n long", fields=["n"]))
    running = submit(builder.create_topology("broken"))
    assert running.wait(20)
    assert isinstance(running.error, ComponentError)
    assert "spout 'files': its source raised ArrowInvalid" in str(running.error)
