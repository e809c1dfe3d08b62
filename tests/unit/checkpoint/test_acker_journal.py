"""The durable acker's journal: what is in a commit, what a new driver finds, who may write, what is deleted."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from stormspark.acker.records import Change, Record
from stormspark.checkpoint.acker_journal import AckerJournal, LocalJournalFiles
from stormspark.errors import CheckpointError, FencedError
from stormspark.worker.sources.acker_log import ACKER_SCHEMA, change_table


def journal(folder: Path, delay: float = 10.0, generation: int = 0) -> AckerJournal:
    return AckerJournal(LocalJournalFiles(folder / "journal"), ACKER_SCHEMA, delay, generation)


def some(root: int, at: int = 5) -> pa.Table:
    return change_table(
        "spout", 3, [Change(Record(root, at, 99), 7, "('t', 0)", b"row"), Change(Record(root + 1, at, 98))]
    )


def rows(folder: Path, number: int) -> list[dict[str, object]]:
    data = LocalJournalFiles(folder / "journal").read(number)
    found: list[dict[str, object]] = pa.ipc.open_stream(data).read_all().to_pylist()
    return found


def test_a_commit_has_the_changes_and_a_row_that_moves_the_watermark(tmp_path: Path) -> None:
    one = journal(tmp_path)
    assert (one.first, one.last, one.last_time) == (1, 0, None)
    assert not (tmp_path / "journal").exists(), "who has nothing to say makes no folder"
    one.append(some(1), 25_000_000)
    assert [(r["root"], r["component"], r["task"], r["batch"], r["row"]) for r in rows(tmp_path, 1)] == [
        (1, "spout", 3, 7, b"row"),
        (2, None, None, None, None),
        (0, None, None, None, None),
    ]
    assert (one.first, one.last) == (1, 1)
    assert [path.name for path in (tmp_path / "journal").iterdir()] == ["1.arrow"]


def test_another_driver_finds_the_time_the_delay_and_what_was_written(tmp_path: Path) -> None:
    """The delay stays what it was with the first commit: what is old follows from it."""
    one = journal(tmp_path)
    one.append(some(1), 1_000_000)
    one.append(some(3), 2_000_000)
    again = journal(tmp_path, delay=3.0, generation=1)
    assert (again.last_time, again.delay, again.first, again.last) == (2_000_000, 10.0, 1, 2)
    again.append(some(5), 3_000_000)
    assert again.last == 3


def test_what_was_read_is_deleted_but_not_the_newest_commit(tmp_path: Path) -> None:
    one = journal(tmp_path)
    for n in range(1, 7):
        one.append(some(10 * n), n * 10_000_000)
    assert [one.forget(up_to) for up_to in (0, 3, 3, 100)] == [0, 3, 0, 2]
    assert (one.first, one.last) == (6, 6)
    again = journal(tmp_path, generation=1)
    assert (again.first, again.last, again.last_time) == (6, 6, 60_000_000)
    again.append(some(70), 70_000_000)
    assert (again.first, again.last) == (6, 7)


def test_of_two_drivers_the_later_one_goes_on(tmp_path: Path) -> None:
    """The earlier one, which hangs somewhere, is told with its next commit; what it had written before is kept."""
    one, two = journal(tmp_path), journal(tmp_path, generation=1)
    one.append(some(1), 1)
    two.append(some(3), 2)  # after what the earlier one has written meanwhile
    assert two.last == 2
    with pytest.raises(
        FencedError, match="a driver of generation 1 has written to it, and this driver is of generation 0"
    ):
        one.append(some(5), 3)
    two.append(some(5), 3)
    assert [rows(tmp_path, n)[0]["root"] for n in (1, 2, 3)] == [1, 3, 5]


class Unreliable(LocalJournalFiles):
    """Raises before or after it has written."""

    trouble: str | None = None

    def add(self, number: int, data: bytes) -> None:
        if self.trouble == "before":
            raise OSError(errno.ENOSPC, "no space left on device")
        super().add(number, data)
        if self.trouble == "after":
            raise OSError(errno.EIO, "the answer was lost")


@pytest.mark.parametrize("trouble", ["before", "after"])
def test_a_commit_that_raised_is_there_or_not_and_that_is_found_out(tmp_path: Path, trouble: str) -> None:
    files = Unreliable(tmp_path)
    one = AckerJournal(files, ACKER_SCHEMA, 10.0, 0)
    one.append(some(1), 1)
    files.trouble = trouble
    with pytest.raises(OSError, match=r"space|lost"):
        one.append(some(3), 2)
    files.trouble = None
    assert one.settle() is (trouble == "after")
    assert one.last == (2 if trouble == "after" else 1)
    one.append(some(5), 3)
    numbers = files.numbers()
    roots = [pa.ipc.open_stream(files.read(n)).read_all()["root"][0].as_py() for n in numbers]
    assert roots == ([1, 3, 5] if trouble == "after" else [1, 5])


def test_a_driver_that_dies_while_it_writes_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(source: object, target: object) -> None:
        raise KeyboardInterrupt

    one = journal(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "link", die)
        patched.setattr(Path, "unlink", lambda self, missing_ok=False: None)
        with pytest.raises(KeyboardInterrupt):
            one.append(some(1), 1)
    assert len(list((tmp_path / "journal").iterdir())) == 1
    again = journal(tmp_path, generation=1)
    assert again.last == 0
    assert not list((tmp_path / "journal").iterdir())


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FUSE and others have none; a number is still given once."""

    def link(source: object, target: object) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(os, "link", link)
    one, two = journal(tmp_path), journal(tmp_path, generation=1)
    two.append(some(1), 1)
    with pytest.raises(FencedError):
        one.append(some(3), 2)
    two.append(some(5), 3)
    assert [path.name for path in sorted((tmp_path / "journal").iterdir())] == ["1.arrow", "2.arrow"]


def test_a_journal_that_is_damaged_is_refused_by_name(tmp_path: Path) -> None:
    journal(tmp_path).append(some(1), 1)
    file = tmp_path / "journal" / "1.arrow"
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(
        CheckpointError, match=f"the durable acker's journal {tmp_path}/journal can't be read"
    ):
        journal(tmp_path, generation=1)


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("stormspark.checkpoint.acker_journal._FORMAT", 2)
        journal(tmp_path).append(some(1), 1)
    with pytest.raises(CheckpointError, match="a newer stormspark"):
        journal(tmp_path, generation=1)
