"""DeltaBolt that merges by key, in topologies whose batches are no transactions: each tuple at least once, the newest stays."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from stormspark.connectors import CountSyncPolicy, DeltaBolt
from stormspark.errors import InvalidTopologyError
from tests.unit.connectors.test_delta_bolt import SCHEMA, Task, rows

GONE = ("word", "n", "gone")


@pytest.mark.slow
def test_the_newest_of_a_key_stays_and_all_are_acked(tmp_path: Path) -> None:
    """Within a commit and over commits, held against a dictionary."""
    choice = random.Random(8)
    task = Task(
        DeltaBolt(tmp_path / "t", schema=SCHEMA, merge_on=["word"], delete_on="gone",
                  sync_policy=CountSyncPolicy(7))
    )  # fmt: skip
    expected: dict[str, int] = {}
    for n in range(200):
        word, gone = f"w{choice.randrange(10)}", choice.random() < 0.3
        task.execute(word, n, gone, fields=GONE)
        expected.pop(word, None)
        if not gone:
            expected[word] = n
    task.bolt.flush()
    assert rows(tmp_path / "t") == sorted(expected.items())
    assert len(task.acked) == 200 and not task.collector.failed


def test_a_row_is_replaced_as_a_whole_and_keys_differ_if_any_column_does(tmp_path: Path) -> None:
    """Names that SQL would take for something else; a column that a tuple does not have becomes null."""
    schema = pa.schema([("Key", pa.string()), ("order by", pa.int64()), ('a"b', pa.float64())])
    task = Task(DeltaBolt(tmp_path / "t", schema=schema, merge_on=["Key", "order by"]))
    for values in ("x", 1, 0.5), ("x", 2, 1.5), ("y", 1, 2.5):
        task.execute(*values, fields=tuple(schema.names))
    task.bolt.flush()
    task.execute("x", 2, fields=("Key", "order by"))
    task.bolt.flush()
    assert rows(tmp_path / "t") == [("x", 1, 0.5), ("x", 2, None), ("y", 1, 2.5)]


def test_a_table_is_made_of_the_tuples_without_what_says_that_a_row_is_gone(tmp_path: Path) -> None:
    """Unless the table has such a column."""
    task = Task(DeltaBolt(tmp_path / "t", merge_on="word", delete_on="gone"))
    task.execute("a", 1, None, fields=GONE)
    task.execute("b", 2, True, fields=GONE)
    unfit = [task.execute(None, 3, False, fields=GONE), task.execute("c", 3, "perhaps", fields=GONE)]
    task.bolt.flush()
    assert task.collector.failed == unfit
    assert rows(tmp_path / "t") == [("a", 1)]
    assert deltalake.DeltaTable(tmp_path / "t").schema().to_arrow().names == ["word", "n"]


@pytest.mark.slow
def test_tasks_that_merge_at_the_same_time_win_one_after_the_other(tmp_path: Path) -> None:
    """A merge that met another one is done again."""
    tasks = [Task(DeltaBolt(tmp_path / "t", schema=SCHEMA, merge_on="word"), index) for index in range(3)]
    Task(DeltaBolt(tmp_path / "t", schema=SCHEMA)).bolt._sink.open_or_make()

    def run(index: int) -> None:
        for n in range(5):
            tasks[index].execute(f"w{index}", n)
            tasks[index].bolt.flush()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(tmp_path / "t") == [("w0", 4), ("w1", 4), ("w2", 4)]
    assert all(len(task.acked) == 5 for task in tasks)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"merge_on": ["other"], "schema": SCHEMA}, "merge_on names 'other', which is not a column of its schema \\(word, n\\)"),
        ({"delete_on": "gone"}, "merge_on names no key"),
    ],
)  # fmt: skip
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], why: str) -> None:
    """Options that contradict the schema or each other are rejected (J5)."""
    with pytest.raises(InvalidTopologyError, match=why):
        DeltaBolt("/nowhere", **options)


def test_a_table_without_the_key_is_refused(tmp_path: Path) -> None:
    """An existing table without the key column is rejected, with the columns that it has (J5)."""
    deltalake.DeltaTable.create(tmp_path / "t", SCHEMA)
    with pytest.raises(
        InvalidTopologyError, match="no column 'other', which merge_on names; its columns are word, n"
    ):
        Task(DeltaBolt(tmp_path / "t", merge_on="other"))


def test_a_key_of_lists_is_refused(tmp_path: Path) -> None:
    """Before anything runs, where it is known; else with the table."""
    schema = pa.schema([("word", pa.list_(pa.string())), ("n", pa.int64())])
    why = r"merge_on names 'word' of type list<.*: string>, but a key must consist of plain values"
    with pytest.raises(InvalidTopologyError, match=why):
        DeltaBolt(tmp_path / "t", schema=schema, merge_on="word")
    deltalake.DeltaTable.create(tmp_path / "t", schema)
    with pytest.raises(InvalidTopologyError, match=why):
        Task(DeltaBolt(tmp_path / "t", merge_on="word"))
