"""The durable acker's table: what is in a commit, what a new driver reads out of it, what is tidied away."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from stormspark.acker.records import Change, Record
from stormspark.checkpoint.acker_table import AckerTable
from stormspark.worker.acker_log import ACKER_SCHEMA, change_table


def table(folder: Path, delay: float = 10.0) -> AckerTable:
    return AckerTable(str(folder / "acker" / "log"), ACKER_SCHEMA, delay)


def some(root: int, at: int = 5) -> pa.Table:
    return change_table(
        "spout", 3, [Change(Record(root, at, 99), 7, "('t', 0)", b"row"), Change(Record(root + 1, at, 98))]
    )


def rows(folder: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = DeltaTable(str(folder / "acker" / "log")).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: (row["root"], str(row["component"])))  # type: ignore[no-any-return, arg-type]


def test_a_commit_has_the_changes_and_a_row_that_moves_the_watermark(tmp_path: Path) -> None:
    log = table(tmp_path)
    assert (log.exists, log.version, log.last_time) == (False, -1, None)
    log.append(some(1), 25_000_000, "app", 1)
    assert [
        (r["root"], r["component"], r["task"], r["batch"], r["row"], r["epoch"]) for r in rows(tmp_path)
    ] == [
        (0, None, None, None, None, 2),
        (1, "spout", 3, 7, b"row", 2),
        (2, None, None, None, None, 2),
    ]
    assert log.last_time == 25_000_000


def test_another_driver_finds_the_time_the_delay_and_what_was_written(tmp_path: Path) -> None:
    """The delay stays what it was when the table was made: what is old follows from it."""
    log = table(tmp_path)
    log.append(some(1), 1_000_000, "app", 1)
    log.append(some(3), 2_000_000, "app", 2)
    again = table(tmp_path, delay=3.0)
    assert (again.last_time, again.delay) == (2_000_000, 10.0)
    assert [again.has("app", n) for n in (1, 2, 3)] == [True, True, False]
    assert not again.has("other", 1)


def test_epochs_that_were_read_are_removed_with_their_files(tmp_path: Path) -> None:
    log = table(tmp_path)
    for n in range(6):  # a commit an epoch
        log.append(some(10 * n), n * 10_000_000, "app", n + 1)
    assert log.tidy(read_up_to=0) == 0
    assert log.tidy(read_up_to=3) == 3
    assert log.tidy(read_up_to=3) == 0
    assert {row["epoch"] for row in rows(tmp_path)} == {3, 4, 5}
    assert len(list((tmp_path / "acker" / "log").glob("epoch=*/*.parquet"))) == 3
    assert len(list((tmp_path / "acker" / "log").glob("epoch=*"))) == 3
    log.append(some(70), 60_000_000, "app", 7)
    assert table(tmp_path).last_time == 60_000_000


def test_what_can_not_be_written_is_not_there(tmp_path: Path) -> None:
    log = table(tmp_path)
    log.append(some(1), 1, "app", 1)
    with pytest.raises(Exception, match="root"):
        log.append(some(1).drop_columns(["root"]), 2, "app", 2)
    assert not log.has("app", 2)
    log.append(some(3), 2, "app", 2)
    assert log.has("app", 2)
