"""What the driver writes into the acker's journal: each change set once, whatever becomes of a commit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pytest

from stormspark.acker.records import Change, Record
from stormspark.checkpoint.acker_journal import AckerJournal, LocalJournalFiles
from stormspark.errors import CheckpointError, FencedError
from stormspark.spark.acker_writer import AckerWriter
from stormspark.worker.sources.acker_log import ACKER_SCHEMA, change_table


class Report(NamedTuple):
    worker: int
    incarnation: int
    acker: tuple[tuple[int, bytes], ...]


def report(*sets: tuple[int, int], worker: int = 0, incarnation: int = 1) -> Any:
    """With (number, root of the record that is opened)."""
    told = []
    for number, root in sets:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, ACKER_SCHEMA) as stream:
            stream.write_table(change_table("spout", 1, [Change(Record(root, 5, 99), 7, "id", b"row")]))
        told.append((number, sink.getvalue().to_pybytes()))
    return cast("Any", Report(worker, incarnation, tuple(told)))


class Files(LocalJournalFiles):
    """``full``: nothing is written; ``silent``: it is written and that is not heard; ``gone``: nothing is read either; ``twice``:
    it is written, and by itself the file system tries that again; ``slow``: it is written with the next one.
    """

    trouble = ""
    slow: tuple[int, bytes] | None = None

    def read(self, number: int) -> bytes:
        if self.trouble == "gone":
            raise OSError("gone")
        return super().read(number)

    def add(self, number: int, data: bytes) -> None:
        if self.trouble in ("full", "gone"):
            raise OSError(self.trouble)
        if self.trouble == "slow":
            self.slow = number, data
            raise OSError("slow")
        if self.slow is not None:
            slow, self.slow = self.slow, None
            super().add(*slow)
            if self.trouble == "silent":
                raise OSError("silent")
        super().add(number, data)
        if self.trouble == "silent":
            raise OSError("silent")
        if self.trouble == "twice":
            super().add(number, data)

    def roots(self) -> list[int]:
        """What is in the journal, but for what moves the time."""
        tables = [
            pa.ipc.open_stream(LocalJournalFiles.read(self, number)).read_all() for number in self.numbers()
        ]
        return [root for table in tables for root in table["root"].to_pylist() if root]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "journal")


def writer(files: Files, generation: int = 0) -> AckerWriter:
    return AckerWriter(AckerJournal(files, ACKER_SCHEMA, 10.0, generation))


def fails(writer: AckerWriter, reports: Iterable[Any], attempt: int, match: str) -> None:
    with pytest.raises(OSError, match=match):
        writer.write(reports, attempt, attempt)


def tried(writer: AckerWriter) -> int:
    """As a round is told."""
    writer.settle()
    return writer.tried


def test_each_change_set_is_written_once_by_number_and_life(files: Files) -> None:
    one = writer(files)
    assert not one.write([report(), report(worker=1)], 0, 0)
    assert one.write([report((1, 10)), report((1, 20), worker=1)], 1, 1)
    assert one.write([report((1, 10), (2, 11)), report((1, 20), worker=1)], 2, 2)
    assert not one.write([report((1, 10), (2, 11))], 3, 3)
    assert one.write([report((1, 30), incarnation=2)], 4, 4)
    assert files.roots() == [10, 20, 11, 30]


def test_on_a_full_disk_nothing_was_tried(files: Files) -> None:
    """Workers may say what was not written in other words: it is in nobody's journal."""
    one = writer(files)
    assert tried(one) == -1
    one.write([report((1, 10))], 3, 3)
    assert tried(one) == 3
    files.trouble = "full"
    for attempt in 4, 5:
        fails(one, [report((attempt, 11))], attempt, "full")
        assert tried(one) == 3
    files.trouble = ""
    one.write([report((6, 11))], 6, 6)
    assert tried(one) == 6 and files.roots() == [10, 11]


def test_what_may_be_written_was_tried_until_the_journal_says(files: Files) -> None:
    one = writer(files)
    for trouble, attempt in ("gone", 1), ("silent", 2):
        files.trouble = trouble
        fails(one, [report((attempt, 10 * attempt))], attempt, trouble)
        files.trouble = "gone"
        assert tried(one) == attempt
        files.trouble = ""
        assert tried(one) == (2 if trouble == "silent" else -1)
    assert not one.write([report((1, 10), (2, 20))], 3, 3), "a number is written after all before it"
    assert files.roots() == [20]


def test_records_are_closed_once(files: Files) -> None:
    one = writer(files)
    one.close([Record(7, 1, 5)])
    files.trouble = "silent"
    fails(one, [], 1, "silent")
    files.trouble = ""
    one.close([Record(7, 1, 5), Record(8, 1, 5)])
    assert tried(one) == 1
    assert one.write([], 2, 2)
    assert not one.write([], 3, 3)
    assert files.roots() == [7, 8] or sorted(files.roots()) == [7, 7, 8]


def test_a_file_that_can_not_be_read_is_reported(files: Files) -> None:
    """Half a file of somebody else's: neither is it written over, nor taken for this driver's."""
    one = writer(files)
    one.write([report((1, 10))], 1, 1)
    (files.folder / "2.arrow").write_bytes(b"half")
    with pytest.raises(CheckpointError, match=r"file 2 of the durable acker's journal .* can't be read: "):
        one.write([report((2, 11))], 2, 2)
    assert tried(one) == 2
    (files.folder / "2.arrow").unlink()
    assert one.write([report((2, 11))], 3, 3)
    assert files.roots() == [10, 11]


def test_a_later_driver_ends_this_one(files: Files) -> None:
    one, other = writer(files), writer(files, 1)
    other.write([report((1, 20))], 0, 0)
    with pytest.raises(FencedError):
        one.write([report((1, 10))], 0, 0)


def test_a_file_system_that_tries_again_by_itself_is_no_other_driver(files: Files) -> None:
    """NFS says of a link that it is there already where it has made it and the answer was lost."""
    one = writer(files)
    files.trouble = "twice"
    assert one.write([report((1, 10))], 1, 1)
    assert one.write([report((1, 10), (2, 11))], 2, 2)
    assert tried(one) == 2 and files.roots() == [10, 11]


@pytest.mark.parametrize("heard", [True, False])
def test_a_commit_that_is_there_after_it_was_looked_for_ends_this_driver(
    files: Files, *, heard: bool
) -> None:
    """Workers have told what it says in other words since, so it is not taken for the next commit, nor written beside that."""
    one = writer(files)
    files.trouble = "slow"
    fails(one, [report((1, 10))], 1, "slow")
    assert tried(one) == -1
    files.trouble = "" if heard else "silent"
    if not heard:
        fails(one, [report((2, 11))], 2, "silent")
        files.trouble = ""
        assert tried(one) == -1, "the commit that was tried last is not there"
    with pytest.raises(FencedError, match=r"received its file 1 late: .* start the topology again"):
        one.write([report((2, 11))], 3, 3)
    assert writer(files, 1).write([report((1, 20))], 0, 0), "the next driver goes on from there"
    assert files.roots() == [10, 20]


def test_reads_from_other_threads_change_nothing(tmp_path: Path) -> None:
    """People look at a topology from other threads, also in the middle of a commit."""

    class Asked(Files):
        def add(self, number: int, data: bytes) -> None:
            asked.append(one.tried)
            super().add(number, data)
            asked.append(one.tried)

    asked: list[int] = []
    files = Asked(tmp_path / "journal")
    one = writer(files)
    assert one.write([report((1, 10))], 4, 4)
    assert asked == [4, 4] and files.roots() == [10]
