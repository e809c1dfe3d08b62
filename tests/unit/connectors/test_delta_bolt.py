"""DeltaBolt: what is committed when, what fails alone, several writers, commits whose answer is lost."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from stormspark.api import Tuple
from stormspark.connectors import CountSyncPolicy, DeltaBolt
from stormspark.errors import InvalidTopologyError, UnsupportedEnvironmentError
from stormspark.testing import RecordingCollector, make_context, make_tuple

ROOT = Path(__file__).parents[3]
SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64())])


class Task:
    """A prepared copy of a bolt."""

    def __init__(self, bolt: DeltaBolt, index: int = 0) -> None:
        self.bolt: DeltaBolt = pickle.loads(pickle.dumps(bolt))
        self.context = make_context("sink", self.bolt, parallelism=4, index=index)
        self.collector = RecordingCollector(self.bolt)
        self.bolt.prepare({}, self.context, self.collector)

    def execute(self, *values: Any, fields: tuple[str, ...] = ("word", "n")) -> Tuple:
        tup = make_tuple(values, fields=fields)
        self.bolt.execute(tup)
        return tup

    @property
    def acked(self) -> list[tuple[Any, ...]]:
        return [tup.values for tup in self.collector.acked]


def rows(path: Path) -> list[tuple[Any, ...]]:
    table = deltalake.DeltaTable(path).to_pyarrow_table()
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def versions(path: Path) -> int:
    return deltalake.DeltaTable(path).version()


def test_tuples_are_acked_after_their_commit(tmp_path: Path) -> None:
    """By count, by time, and at the end; nothing is committed where nothing waits."""
    path = tmp_path / "t"
    task = Task(DeltaBolt(path, sync_policy=CountSyncPolicy(3), interval_secs=2))
    for n in range(4):
        task.execute("a", n)
        assert len(task.acked) == (3 if n >= 2 else 0)
    assert rows(path) == [("a", 0), ("a", 1), ("a", 2)]
    task.context.advance_time(2)
    assert len(task.acked) == 4 == len(rows(path))
    before = versions(path)
    task.context.advance_time(20)
    assert versions(path) == before
    task.execute("b", 5)
    task.bolt.cleanup()
    assert len(task.acked) == 5 == len(rows(path)) and not task.collector.errors


def test_the_table_is_made_of_the_first_tuples_or_of_a_schema(tmp_path: Path) -> None:
    """Types of all that Delta knows; partitions; a table that is there decides."""
    at = datetime(2024, 1, 2, tzinfo=UTC)
    task = Task(DeltaBolt(tmp_path / "inferred"))
    task.execute(1, 2.5, at, [1], {"x": "y"}, Decimal("1.50"), fields=("a", "b", "at", "list", "map", "d"))
    task.bolt.flush()
    assert rows(tmp_path / "inferred") == [(1, 2.5, at, [1], {"x": "y"}, Decimal("1.50"))]
    bolt = DeltaBolt(tmp_path / "given", schema=SCHEMA, partition_by=["word"])
    task = Task(bolt)
    task.execute(7, "b", fields=("n", "word"))
    task.bolt.flush()
    table = deltalake.DeltaTable(tmp_path / "given")
    assert table.metadata().partition_columns == ["word"] and table.schema().fields[1].type.type == "long"
    task = Task(DeltaBolt(tmp_path / "given"))
    task.execute(8, fields=("n",))
    task.bolt.flush()
    assert sorted(rows(tmp_path / "given"), key=repr) == [("b", 7), (None, 8)]


def test_a_tuple_that_does_not_fit_fails_alone(tmp_path: Path) -> None:
    """With the reason; the others are committed."""
    task = Task(DeltaBolt(tmp_path / "t", schema=SCHEMA))
    task.execute("a", 1)
    unfit = [
        task.execute("b", "two"),
        task.execute("c", 3, 4, fields=("word", "n", "more")),
        task.execute(5, 5),
        task.execute("d", 2**63),
        task.execute("d", 1.5),
    ]
    task.execute("e", None)
    task.bolt.flush()
    assert task.acked == [("a", 1), ("e", None)] and rows(tmp_path / "t") == [("a", 1), ("e", None)]
    assert task.collector.failed == unfit
    where = f"does not fit the table {tmp_path / 't'}: "
    assert task.collector.reasons == [
        where + "field 'n' is 'two', but the column's type is int64",
        where + "field 'more' is not a column of it; its columns are word, n",
        where + "field 'word' is 5, but the column's type is string",
        where + "field 'n' is 9223372036854775808, but the column's type is int64",
        where + "field 'n' is 1.5, but the column's type is int64",
    ]
    task.execute("x", "y")
    task.bolt.flush()
    assert versions(tmp_path / "t") == 1, "nothing fits, nothing is committed"


@pytest.mark.parametrize("merge_on", [[], ["n"]])
@pytest.mark.parametrize(
    ("kind", "bad", "why"),
    [
        (pa.string(), "", "null in a partition, which must not be null"),
        (pa.date32(), 2_932_897, "beyond the years 1 to 9999"),
        (pa.decimal128(6, 2), Decimal("-1.5"), "negative, which delta-rs can't read in a partition"),
    ],
    ids=["text", "date", "decimal"],
)
def test_a_partition_that_nobody_could_read_fails_alone(
    tmp_path: Path, kind: pa.DataType, bad: Any, why: str, merge_on: list[str]
) -> None:
    """One such row, and delta-rs reads nothing of the table any more, nor does the bolt."""
    schema = pa.schema([pa.field("word", kind, nullable=False), ("n", pa.int64())])
    task = Task(DeltaBolt(tmp_path / "t", schema=schema, partition_by=["word"], merge_on=merge_on))
    good = "a" if bad == "" else 1
    task.execute(good, 1)
    unfit = task.execute(bad, 2)
    task.execute(good, 3)
    task.bolt.flush()
    assert task.collector.failed == [unfit] and why in str(task.collector.reasons[0])
    assert deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table().column("n").to_pylist() == [1, 3]


def test_rows_that_the_table_refuses_fail_alone(tmp_path: Path) -> None:
    """Columns that may not be null, and CHECK constraints."""
    schema = pa.schema([pa.field("word", pa.string(), nullable=False), ("n", pa.int64())])
    Task(DeltaBolt(tmp_path / "t", schema=schema)).bolt.flush()
    deltalake.DeltaTable.create(tmp_path / "t", schema).alter.add_constraint({"positive": "n > 0"})
    task = Task(DeltaBolt(tmp_path / "t"))
    for n in range(1, 8):
        task.execute("a", n)
    null, negative = task.execute(None, 1), task.execute("a", -5)
    task.bolt.flush()
    assert rows(tmp_path / "t") == [("a", n) for n in range(1, 8)] and len(task.acked) == 7
    assert task.collector.failed == [null, negative]
    assert "field 'word' is None, which the table does not allow" in str(task.collector.reasons[0])
    assert "refuses it" in str(task.collector.reasons[1])


def test_a_type_that_can_not_be_inferred_is_reported(tmp_path: Path) -> None:
    """Instead of guessing one for ever."""
    task = Task(DeltaBolt(tmp_path / "t", retry_count=1))
    task.execute("a", None)
    task.bolt.flush()
    assert (
        "the type of field 'n' is unknown, because it is None in all of the first 1 tuples: give a schema"
        in str(task.collector.reasons[0])
    )
    task.execute("a", 1)
    task.bolt.flush()
    assert task.acked == [("a", 1)]


class Flaky:
    """Stands before `deltalake`: its write raises, before it writes or after it has."""

    def __init__(self, before: int = 0, after: int = 0) -> None:
        self.before, self.after = before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(deltalake, name)

    def write_deltalake(self, *args: Any, **options: Any) -> None:
        if self.before:
            self.before -= 1
            raise OSError("no answer")
        deltalake.write_deltalake(*args, **options)
        if self.after:
            self.after -= 1
            raise OSError("the answer was lost")


def test_a_commit_whose_answer_is_lost_is_not_done_twice(tmp_path: Path) -> None:
    """Delta's own transaction numbers tell."""
    task = Task(DeltaBolt(tmp_path / "t"))
    task.bolt._sink._delta = Flaky(before=1, after=1)
    for n in range(3):
        task.execute("a", n)
    unfit = task.execute("a", "no number")
    task.bolt.flush()
    assert rows(tmp_path / "t") == [("a", 0), ("a", 1), ("a", 2)] and len(task.acked) == 3
    assert task.collector.failed == [unfit]
    assert [str(error).rpartition(", ")[2] for error in task.collector.errors if "attempt" in str(error)] == [
        "attempt 1 of 3: no answer"
    ]


def test_a_commit_that_fails_for_good_fails_its_tuples(tmp_path: Path) -> None:
    """With the reason; the next ones may go well."""
    task = Task(DeltaBolt(tmp_path / "t", retry_count=2))
    task.bolt._sink._delta = Flaky(before=2)
    task.execute("a", 1)
    task.execute("a", 2)
    task.bolt.flush()
    assert task.collector.reasons == [f"could not be appended to {tmp_path / 't'}: no answer"] * 2
    task.execute("a", 3)
    task.bolt.flush()
    assert rows(tmp_path / "t") == [("a", 3)]


def test_a_table_that_others_change_or_make_anew(tmp_path: Path) -> None:
    """A new column is null here; a table that is gone is made again; a column that is gone fails what has it."""
    path = tmp_path / "t"
    task = Task(DeltaBolt(path))
    task.execute("a", 1)
    task.bolt.flush()
    more = deltalake.Field("more", deltalake.schema.PrimitiveType("double"))
    deltalake.DeltaTable(path).alter.add_columns([more])
    task.execute("b", 2)
    task.bolt.flush()
    assert rows(path) == [("a", 1, None), ("b", 2, None)]
    os.rename(path, tmp_path / "old")
    task.execute("c", 3)
    task.bolt.flush()
    assert rows(path) == [("c", 3)]
    deltalake.write_deltalake(path, pa.table({"word": ["z"]}), mode="overwrite", schema_mode="overwrite")
    tup = task.execute("d", 4)
    task.bolt.flush()
    assert task.collector.failed == [tup]
    assert "field 'n' is not a column of it; its columns are word" in str(task.collector.reasons)


WRITER = """
import sys
sys.path.insert(0, {root!r})
from tests.unit.connectors.test_delta_bolt import Task
from stormspark.connectors import CountSyncPolicy, DeltaBolt
task = Task(DeltaBolt({path!r}, sync_policy=CountSyncPolicy(20)), {index})
for n in range(400):
    task.execute(str({index}), n)
assert len(task.acked) == 400 and not task.collector.failed, task.collector.reasons[:1]
print(len(task.collector.errors))
"""


@pytest.mark.slow
def test_four_processes_make_one_table_and_append_at_the_same_time(tmp_path: Path) -> None:
    """All commits come through, and each row is there once."""
    path = tmp_path / "t"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER.format(root=str(ROOT), path=str(path), index=index)],
            stdout=subprocess.PIPE,
        )
        for index in range(4)
    ]
    for writer in writers:
        writer.communicate(timeout=300)
        assert writer.returncode == 0
    found = Counter(rows(path))
    assert found == Counter((str(index), n) for index in range(4) for n in range(400))


@pytest.mark.parametrize(
    ("bolt", "error"),
    [
        (lambda path: DeltaBolt(path, schema=SCHEMA, partition_by=["x"]), "'x', which is not a column"),
        (lambda path: DeltaBolt(path, interval_secs=0), "more than 0"),
        (
            lambda path: Task(DeltaBolt(path, partition_by=["word"])),
            r"is partitioned by \[\], not by \['word'\]",
        ),
        (
            lambda path: Task(DeltaBolt(path, schema=pa.schema([("x", pa.int64())]))),
            "has no column 'x', which schema names; its columns are word, n. Add the column",
        ),
    ],
)
def test_what_can_not_be_is_refused_before_anything_runs(bolt: Any, error: str, tmp_path: Path) -> None:
    """Bad input."""
    path = tmp_path / "t"
    deltalake.DeltaTable.create(path, SCHEMA)
    with pytest.raises(InvalidTopologyError, match=error):
        bolt(path)


def test_on_databricks_a_place_for_spark_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mounts of volumes can't give a file a name only if it is free (delta-rs, issue 2540)."""
    assert DeltaBolt("main.default.counts").table == "main.default.counts", "elsewhere it is a folder"
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "19.0")
    for table, place in (
        ("/Volumes/main/default/flows/counts", "in a volume"),
        ("dbfs:/Volumes/main/default/flows/counts", "in a volume"),
        ("file:///Volumes/main/default/flows/counts", "in a volume"),
        ("dbfs:/counts", "in DBFS"),
        ("/dbfs/counts", "in DBFS"),
        ("/Workspace/Users/me/counts", "in the workspace"),
        ("main.default.counts", "the name of a table"),
    ):
        with pytest.raises(
            InvalidTopologyError, match=f"{table} is {place}, to which only Spark can write: "
        ):
            DeltaBolt(table)
    for table in (
        "s3://bucket/counts",
        "abfss://c@a.dfs.core.windows.net/t",
        "/local_disk0/counts",
        "counts",
    ):
        assert DeltaBolt(table).table == table


def test_without_deltalake_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line."""
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(UnsupportedEnvironmentError, match=r"pip install 'stormspark\[delta\]'"):
        Task(DeltaBolt(tmp_path))
