"""FileBolt: records, names, syncs, rotations, and what it does when the disk says no."""

from __future__ import annotations

import errno
import fcntl
import os
import pickle
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.api import Tuple
from stormspark.connectors import (
    CountSyncPolicy,
    DefaultFileNameFormat,
    DelimitedRecordFormat,
    FileBolt,
    FileRotationPolicy,
    FileSizeRotationPolicy,
    JsonRecordFormat,
    MoveFileAction,
    NoRotationPolicy,
    TimedRotationPolicy,
)
from stormspark.connectors.file_bolt_storage import finish_abandoned
from stormspark.errors import InvalidTopologyError
from stormspark.testing import RecordingCollector, RecordingContext, make_context, make_tuple


class Task:
    """A prepared copy of a bolt."""

    def __init__(self, bolt: FileBolt, context: RecordingContext | None = None) -> None:
        self.bolt: FileBolt = pickle.loads(pickle.dumps(bolt))
        self.context = context or make_context("sink", self.bolt)
        self.collector = RecordingCollector(self.bolt)
        self.bolt.prepare({}, self.context, self.collector)

    def execute(self, *values: Any) -> Tuple:
        fields = ["n", "day"][: len(values)]
        tup = make_tuple(values, fields=fields)
        self.bolt.execute(tup)
        return tup

    def tick(self) -> None:
        self.bolt.execute(make_tuple((15,), component="__system", stream="__tick", task=-1))

    @property
    def acked(self) -> list[Any]:
        return [tup[0] for tup in self.collector.acked if not tup.is_tick]


def contents(folder: Path) -> dict[str, str]:
    """All files below a folder, the unfinished ones too."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def whole(folder: Path) -> list[str]:
    """The lines that readers see."""
    return "".join(text for name, text in contents(folder).items() if "_" not in name).splitlines()


def test_tuples_are_acked_when_their_sync_is_done_and_files_appear_whole(tmp_path: Path) -> None:
    """K10: CountSyncPolicy, the default name, an unfinished file that readers skip."""
    task = Task(FileBolt(tmp_path).with_sync_policy(CountSyncPolicy(3)))
    for n in range(5):
        task.execute(n, "x")
    assert task.acked == [0, 1, 2]
    assert contents(tmp_path) == {"_sink.sink-1-0-0.txt.inprogress": "0,x\n1,x\n2,x\n"}
    task.bolt.cleanup()
    assert task.acked == [0, 1, 2, 3, 4]
    assert contents(tmp_path) == {"sink-1-0-0.txt": "0,x\n1,x\n2,x\n3,x\n4,x\n"}


def test_a_tick_forces_a_sync(tmp_path: Path) -> None:
    """K10, C9: every 15 seconds unless told otherwise."""
    bolt = FileBolt(tmp_path)
    assert bolt.get_component_configuration() == {"topology.tick.tuple.freq.secs": 15}
    bolt.with_tick_tuple_interval_seconds(2)
    assert bolt.get_component_configuration() == {"topology.tick.tuple.freq.secs": 2}
    assert bolt.with_tick_tuple_interval_seconds(0).get_component_configuration() == {}
    task = Task(bolt)
    task.tick()
    task.execute(1)
    assert task.acked == []
    task.tick()
    assert task.acked == [1] and len(task.collector.acked) == 3


def test_rotation_by_size(tmp_path: Path) -> None:
    """K10: the file's number and time are in its name; actions get what is done, and may fail."""
    done: list[str] = []
    task = Task(
        FileBolt(tmp_path)
        .with_rotation_policy(FileSizeRotationPolicy(0.01, "KB"))
        .with_file_name_format(DefaultFileNameFormat("part-", ".csv"))
    )
    task.bolt._actions = [lambda path: 1 / 0, done.append]
    for n in range(7):
        task.execute(f"{n:03}")
        task.context.advance_time(1)
    assert contents(tmp_path) == {
        "part-sink-1-0-0.csv": "000\n001\n002\n",
        "part-sink-1-1-3000.csv": "003\n004\n005\n",
        "_sink.part-sink-1-2-6000.csv.inprogress": "",
    }
    assert task.acked == [f"{n:03}" for n in range(6)], "what a file has is safe before it is done"
    assert done == [str(tmp_path / name) for name in ("part-sink-1-0-0.csv", "part-sink-1-1-3000.csv")]
    assert [type(error) for error in task.collector.errors] == [ZeroDivisionError] * 2


def test_rotation_by_time_and_moving_what_is_done(tmp_path: Path) -> None:
    """K10: all open files; a file that would be empty is not made."""
    task = Task(
        FileBolt(tmp_path / "out")
        .with_rotation_policy(TimedRotationPolicy(60))
        .add_rotation_action(MoveFileAction(str(tmp_path / "done")))
        .with_partitioner(lambda_by_day)
    )
    task.execute(1, "mon")
    task.execute(2, "tue")
    task.context.advance_time(59)
    assert not (tmp_path / "done").exists()
    task.context.advance_time(600)
    assert contents(tmp_path) == {"done/sink-1-0-0.txt": "1,mon\n", "done/sink-1-1-0.txt": "2,tue\n"}
    assert task.acked == [1, 2]
    with pytest.raises(FileExistsError):
        MoveFileAction(str(tmp_path / "done"))(str(tmp_path / "out" / "sink-1-0-0.txt"))


def lambda_by_day(tup: Tuple) -> str:
    return f"day={tup['day']}"


def test_partitions_and_the_most_open_files(tmp_path: Path) -> None:
    """K10: a file more ends the one that was longest without a tuple."""
    bolt = FileBolt(tmp_path).with_partitioner(lambda_by_day).with_max_open_files(2)
    task = Task(bolt.with_rotation_policy(NoRotationPolicy()))
    for n, day in enumerate(["mon", "tue", "mon", "wed", "tue"]):
        task.execute(n, day)
        task.context.advance_time(1)
    task.bolt.cleanup()
    assert contents(tmp_path) == {
        "day=mon/sink-1-0-0.txt": "0,mon\n2,mon\n",
        "day=tue/sink-1-1-1000.txt": "1,tue\n",
        "day=tue/sink-1-3-4000.txt": "4,tue\n",
        "day=wed/sink-1-2-3000.txt": "3,wed\n",
    }
    with pytest.raises(InvalidTopologyError, match="at least one open file"):
        bolt.with_max_open_files(0)


def test_records_are_formatted(tmp_path: Path) -> None:
    """K10: delimited, JSON, or by a function; one that can't be made fails its tuple alone."""
    tup = make_tuple(("é", 2), fields=["a", "b"])
    assert DelimitedRecordFormat("\t", "\r\n", ["b", "a"])(tup) == "2\té\r\n"
    assert JsonRecordFormat()(tup) == '{"a": "é", "b": 2}\n' and JsonRecordFormat(["b"])(tup) == '{"b": 2}\n'
    task = Task(FileBolt(tmp_path).with_record_format(JsonRecordFormat()))
    task.execute(1)
    bad = task.execute({1, 2})
    task.execute(2)
    assert task.collector.failed == [bad] and "TypeError: Object of type set" in str(task.collector.reasons)
    task.bolt.cleanup()
    assert whole(tmp_path) == ['{"n": 1}', '{"n": 2}'] and task.acked == [1, 2]


def test_a_partitioner_can_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    """Values come from outside."""
    task = Task(FileBolt(tmp_path / "out").with_partitioner(lambda_by_value))
    tup = task.execute("../../elsewhere")
    assert task.collector.failed == [tup] and "is outside of" in str(task.collector.reasons[0])


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_tuple_whose_folder_can_have_no_such_name_fails_alone(tmp_path: Path, name: str) -> None:
    """Values come from outside, and may have characters that no path can have (K10)."""
    task = Task(FileBolt(tmp_path / "out").with_partitioner(lambda_by_value).with_record_format(as_repr))
    unfit, fit = task.execute(name), task.execute("b")
    assert task.collector.failed == [unfit] and str(task.collector.reasons[0]).startswith(
        "ValueError: the partitioner returned "
    )
    task.bolt.cleanup()
    assert task.collector.acked == [fit]


def lambda_by_value(tup: Tuple) -> str:
    return str(tup[0])


def as_repr(tup: Tuple) -> str:
    return ascii(tup[0]) + "\n"


def test_final_names_from_the_beginning_as_hdfs_bolt_has_them(tmp_path: Path) -> None:
    """With `in_progress=False` a file has its final name from the first tuple on, as with HdfsBolt (K10)."""
    task = Task(FileBolt(tmp_path, in_progress=False).with_sync_policy(CountSyncPolicy(1)))
    task.execute(1)
    assert contents(tmp_path) == {"sink-1-0-0.txt": "1\n"}
    task.execute(2)
    task.bolt.cleanup()
    assert contents(tmp_path) == {"sink-1-0-0.txt": "1\n2\n"}


def test_two_lives_that_begin_in_the_same_moment_have_files_of_their_own(tmp_path: Path) -> None:
    """K10: a name that ignores the time is refused."""
    for n in range(2):
        task = Task(FileBolt(tmp_path))
        task.execute(n)
        task.bolt.cleanup()
    assert contents(tmp_path) == {"sink-1-0-0.txt": "0\n", "sink-1-0-1.txt": "1\n"}
    task = Task(FileBolt(tmp_path).with_file_name_format(always_the_same))
    task.execute(1)
    task.bolt.cleanup()
    tup = task.execute(2)
    assert task.collector.failed == [tup] and "must return a new name" in str(task.collector.reasons)


def always_the_same(context: Any, rotation: int, timestamp: int) -> str:
    return "same.txt"


class SmallDisk:
    """No file may become larger than so many bytes: a write beyond is cut there, the next one raises, as on a full disk."""

    room = 1000

    def pwrite(self, descriptor: int, data: memoryview, at: int) -> int:
        if at >= self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data[: self.room - at]) if os.lseek(descriptor, at, 0) == at else 0


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> SmallDisk:
    disk = SmallDisk()
    monkeypatch.setattr(os, "pwrite", disk.pwrite)
    return disk


def test_a_failed_sync_fails_what_waits_and_leaves_no_half_record(
    tmp_path: Path, small_disk: SmallDisk
) -> None:
    """K10: tried so often, then all waiting tuples fail with the reason; the next tuple begins a new file."""
    task = Task(FileBolt(tmp_path).with_sync_policy(CountSyncPolicy(10)).with_retry_count(2))
    for n in range(10):
        task.execute(f"{n:030}")
    assert len(task.acked) == 10
    for n in range(10, 20):
        task.execute(f"{n:099}")
    assert [tup[0] for tup in task.collector.failed] == [f"{n:099}" for n in range(10, 20)]
    assert all(reason and "No space left" in reason for reason in task.collector.reasons)
    assert [str(e) for e in task.collector.errors] == [
        f"sync failed, attempt {n} of 2: [Errno 28] No space left on device" for n in (1, 2)
    ]
    assert whole(tmp_path) == [f"{n:030}" for n in range(10)], "the first file ends where its last sync did"
    for n in range(20, 30):
        task.execute(f"{n:030}")
    assert task.acked[10:] == [f"{n:030}" for n in range(20, 30)]


def test_a_sync_that_works_the_second_time_writes_nothing_twice(
    tmp_path: Path, small_disk: SmallDisk
) -> None:
    """When the disk is full at the first sync, the retry writes and acks each line once (K10)."""
    task = Task(FileBolt(tmp_path).with_retry_count(2))
    task.execute("a" * 600)
    task.execute("b" * 600)
    writer = next(iter(task.bolt._writers.values()))
    sync = writer.file.sync

    def sync_with_room() -> None:
        try:
            sync()
        except OSError:
            small_disk.room = 4000
            raise

    writer.file.sync = sync_with_room  # type: ignore[method-assign]
    task.tick()
    task.bolt.cleanup()
    assert whole(tmp_path) == ["a" * 600, "b" * 600] and len(task.acked) == 2 and not task.collector.failed


def test_a_file_that_can_not_be_made_fails_its_tuple_and_syncs_the_rest(tmp_path: Path) -> None:
    """K10: as HdfsBolt."""
    (tmp_path / "no").write_text("a file, where a folder is wanted")
    task = Task(FileBolt(tmp_path).with_partitioner(lambda_by_value))
    task.execute("yes")
    bad = task.execute("no")
    assert task.collector.failed == [bad] and task.acked == ["yes"]
    assert "NotADirectoryError" in str(task.collector.reasons)


def left_behind(folder: Path, text: str, name: str = "_sink.sink-9-0-0.txt.inprogress") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_later_life_ends_the_files_of_killed_ones_without_half_records(tmp_path: Path) -> None:
    """K10: of any task of the component; not of other components, and not those that somebody writes."""
    left_behind(tmp_path, "1\n2\n3")
    left_behind(tmp_path, "half", "_sink.sink-8-0-0.txt.inprogress")
    left_behind(tmp_path, "1\n", "_other.other-1-0-0.txt.inprogress")
    held = left_behind(tmp_path, "5\n", "_sink.sink-7-0-0.txt.inprogress")
    with held.open() as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        done: list[str] = []
        bolt = FileBolt(tmp_path).add_rotation_action(MoveFileAction(str(tmp_path / "done")))
        Task(bolt)
    assert not done
    assert contents(tmp_path) == {
        "_other.other-1-0-0.txt.inprogress": "1\n",
        "_sink.sink-7-0-0.txt.inprogress": "5\n",
        "done/sink-9-0-0.txt": "1\n2\n",
    }


def test_without_an_end_of_records_nothing_is_cut(tmp_path: Path) -> None:
    """K10: a function's records may end anyhow."""
    left_behind(tmp_path, "1|2|3")
    Task(FileBolt(tmp_path).with_record_format(bytes_of))
    assert contents(tmp_path) == {"sink-9-0-0.txt": "1|2|3"}


def bytes_of(tup: Tuple) -> bytes:
    return f"{tup[0]}|".encode()


@given(
    st.lists(st.binary(max_size=5), max_size=4),
    st.sampled_from([b"\n", b"\r\n", b"<end>"]),
    st.integers(0, 200_000),
    st.integers(0, 70_000),
)
def test_a_torn_file_is_cut_after_its_last_whole_record(
    records: list[bytes], end: bytes, length: int, torn: int
) -> None:
    """K10: wherever the end of the record lies, also over the edge of a block."""
    folder = Path(tempfile.mkdtemp())
    text = b"".join(record + end for record in [*records, b"x" * length] if end not in record)
    (folder / "_sink.a.inprogress").write_bytes(text + b"y" * torn)
    expected = text
    assert list(finish_abandoned(folder, "sink", end)) == ([str(folder / "a")] if expected else [])
    assert not expected or (folder / "a").read_bytes() == expected
    shutil.rmtree(folder)


def test_an_instance_that_raised_leaves_its_files_to_the_next(tmp_path: Path) -> None:
    """K10, W22: what it had synced is seen, what it had not is gone."""
    context = make_context("sink", FileBolt(tmp_path))
    first = Task(FileBolt(tmp_path).with_sync_policy(CountSyncPolicy(2)), context)
    for n in range(3):
        first.execute(n)
    second = Task(FileBolt(tmp_path), context)
    assert contents(tmp_path) == {"sink-1-0-0.txt": "0\n1\n"}
    second.execute(2)
    second.bolt.cleanup()
    assert whole(tmp_path) == ["0", "1", "2"]


def test_other_file_systems_get_a_file_for_each_sync(tmp_path: Path) -> None:
    """K10: those of pyarrow, which sync whole files only."""
    filesystem = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    task = Task(FileBolt("out/deep", filesystem=filesystem).with_sync_policy(CountSyncPolicy(2)))
    for n in range(5):
        task.execute(n)
        task.context.advance_time(1)
    assert task.acked == [0, 1, 2, 3]
    task.bolt.cleanup()
    assert contents(tmp_path / "out" / "deep") == {
        "sink-1-0-0.txt": "0\n1\n",
        "sink-1-1-2000.txt": "2\n3\n",
        "sink-1-2-4000.txt": "4\n",
    }
    (tmp_path / "out" / "deep").chmod(0o500)
    if os.getuid():  # root may write everywhere
        task.execute(5)
        task.tick()
        assert len(task.collector.failed) == 1


def test_a_url_names_its_file_system(tmp_path: Path) -> None:
    """K10: withFsUrl."""
    task = Task(FileBolt(f"file://{tmp_path}/out"))
    task.execute(1)
    task.bolt.cleanup()
    assert whole(tmp_path / "out") == ["1"]
    with pytest.raises(ValueError, match="nonsense"):
        Task(FileBolt("nonsense://x/y"))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: CountSyncPolicy(0),
        lambda: FileSizeRotationPolicy(0),
        lambda: FileSizeRotationPolicy(1, "MiB"),
        lambda: TimedRotationPolicy(0),
    ],
)
def test_numbers_of_policies_are_checked(wrong: Any) -> None:
    """K10: when they are made."""
    with pytest.raises(InvalidTopologyError, match=r"Policy .* got"):
        wrong()


def test_policies_may_be_ones_own(tmp_path: Path) -> None:
    """K10: every file has a copy of its own of the rotation policy."""
    task = Task(FileBolt(tmp_path).with_rotation_policy(EveryThird()).with_partitioner(lambda_by_value))
    for value in "abababc":
        task.execute(value)
    assert sorted(name for name in contents(tmp_path) if "_" not in name) == [
        "a/sink-1-0-0.txt",
        "b/sink-1-1-0.txt",
    ]


class EveryThird(FileRotationPolicy):
    def __init__(self) -> None:
        self.seen = 0

    def mark(self, tup: Tuple, offset: int) -> bool:
        self.seen += 1
        return self.seen == 3
