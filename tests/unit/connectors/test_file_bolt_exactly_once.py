"""FileBolt where batches are transactions: what is committed is on the disk; what came again may be there twice."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import TopologyBuilder, Tuple
from stormspark.connectors import CountSyncPolicy, FileBolt, FileSpout
from stormspark.connectors.file_bolt_storage import LocalFile
from stormspark.errors import ComponentError
from stormspark.local import submit
from tests.unit.connectors.exactly_once_components import Numbers
from tests.unit.worker.durable_workers import DurableWorkers


def number(n: int) -> tuple[int]:
    return (n,)


def by_number(tup: Tuple) -> str:
    return f"n={tup['n'] % 2}"


def by_line(tup: Tuple) -> str:
    return f"n={int(tup[0]) % 2}"


def beside_a_file(tup: Tuple) -> str:
    return "file" if tup["n"] == 7 else "folder"


def workers(folder: Path, change: Callable[[FileBolt], object] = id, /, **conf: Any) -> DurableWorkers:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(number, ("n",), 10))
    bolt = FileBolt(folder / "out").with_sync_policy(CountSyncPolicy(1_000_000))
    change(bolt)
    builder.set_bolt("sink", bolt).shuffle_grouping("numbers")
    return DurableWorkers(builder.create_topology("to-files"), folder / "state", conf)


def numbers_in(folder: Path) -> list[int]:
    return sorted(int(line) for file in folder.glob("out/**/*.*") for line in file.read_text().split())


def test_a_batch_is_synced_before_it_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K10, C44: and where that fails it comes again."""
    sync, failures = LocalFile.sync, [3]

    def failing(self: LocalFile) -> None:
        if failures[0]:
            failures[0] -= 1
            raise OSError("no space left")
        sync(self)

    monkeypatch.setattr(LocalFile, "sync", failing)
    now = workers(tmp_path)
    for batch in range(3):
        now.run_batch()
        assert set(numbers_in(tmp_path)) == set(range(10 * (batch + 1)))
    now.close()
    assert now.commits.last == 2 and failures == [0]


def test_a_disk_that_takes_nothing_commits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K10, C44: the reason is told."""

    def failing(self: LocalFile) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(LocalFile, "sync", failing)
    now = workers(tmp_path, **{"stormspark.max.attempts": 2})
    with pytest.raises(ComponentError, match=r"could not be written to .*: no space left"):
        now.run_batch()
    assert now.commits.last == -1


def one_open_file(bolt: FileBolt) -> None:
    bolt.with_partitioner(by_number).with_max_open_files(1)


def sync_after_each_tuple(bolt: FileBolt) -> None:
    bolt.with_sync_policy(CountSyncPolicy(1))


def only_the_save_syncs(bolt: FileBolt) -> None:
    pass


@pytest.mark.parametrize("change", [one_open_file, sync_after_each_tuple, only_the_save_syncs])
def test_a_failed_sync_fails_no_tuple(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[FileBolt], object]
) -> None:
    """K10, C44: whichever tuple comes when the storage is away, the batch fails for a cause outside."""

    def failing(self: LocalFile) -> None:
        raise OSError(errno.EIO, "the storage is away")

    monkeypatch.setattr(LocalFile, "sync", failing)
    assert_fails_outside(workers(tmp_path, change, **{"stormspark.max.attempts": 1}))


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE])
def test_a_file_that_the_storage_does_not_open_fails_no_tuple(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    """K10, C44: unless the file's own path is why it can't be opened."""

    def failing(self: LocalFile, path: Path, owner: str | None) -> None:
        raise OSError(reason, "the storage is away")

    now = workers(tmp_path, **{"stormspark.max.attempts": 1})
    monkeypatch.setattr(LocalFile, "__init__", failing)
    assert_fails_outside(now)


def assert_fails_outside(now: DurableWorkers) -> None:
    with pytest.raises(ComponentError, match="the storage is away"):
        now.run_batch()
    transaction = now._driver.transaction
    assert transaction is not None and transaction.aborted_outside
    [sink] = [task for task in now.workers[0].tasks.values() if task.component.id == "sink"]
    assert sink.counters.failed == 0 and sink.counters.restarts == 0


def test_a_row_is_no_dead_letter_because_the_storage_was_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K10, C44: the storage fails more often than a row may before it becomes a dead letter."""
    sync, failures = LocalFile.sync, [3 * 5]

    def failing(self: LocalFile) -> None:
        if failures[0]:
            failures[0] -= 1
            raise OSError(errno.EIO, "the storage is away")
        sync(self)

    monkeypatch.setattr(LocalFile, "sync", failing)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "numbers").write_text("0\n1\n2\n3\n")
    builder = TopologyBuilder()
    builder.set_spout("lines", FileSpout(tmp_path / "in", "text"))
    bolt = FileBolt(tmp_path / "out").with_partitioner(by_line).with_max_open_files(1)
    builder.set_bolt("sink", bolt).shuffle_grouping("lines")
    running = submit(builder.create_topology("lines-to-files"), conf={"stormspark.exactly.once": True})
    running.run_until_idle(30)
    running.stop()
    assert running.error is None and failures == [0]
    assert numbers_in(tmp_path) == [0, 1, 2, 3]


def test_storage_that_is_away_when_the_batch_begins_again_does_not_stop_the_topology(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K10, C44: the next attempt has a new instance, whose folder can't be made yet. At the very start that is an error."""
    mkdir, sync, failures = Path.mkdir, LocalFile.sync, [0]

    def away(self: Path, *arguments: Any, **options: Any) -> None:
        if failures[0] and self.name == "out":
            failures[0] -= 1
            raise OSError(errno.EIO, "the storage is away")
        mkdir(self, *arguments, **options)

    def failing(self: LocalFile) -> None:
        if failures[0]:
            raise OSError(errno.EIO, "the storage is away")
        sync(self)

    monkeypatch.setattr(Path, "mkdir", away)
    monkeypatch.setattr(LocalFile, "sync", failing)
    now = workers(tmp_path)
    now.run_batch()
    failures[0] = 4
    now.run_batch()
    now.close()
    assert failures == [0] and numbers_in(tmp_path) == list(range(20))
    failures[0] = 1
    with pytest.raises(ComponentError, match="the storage is away"):
        workers(tmp_path / "more")


def test_a_tuple_whose_file_can_not_be_made_fails_alone(tmp_path: Path) -> None:
    """K10, C44: its row is at fault, so the cause is not outside."""
    now = workers(
        tmp_path, lambda bolt: bolt.with_partitioner(beside_a_file), **{"stormspark.max.attempts": 1}
    )
    (tmp_path / "out" / "file").write_text("a file, where a folder is wanted")
    with pytest.raises(ComponentError, match="NotADirectoryError"):
        now.run_batch()
    transaction = now._driver.transaction
    assert transaction is not None and not transaction.aborted_outside
    [sink] = [task for task in now.workers[0].tasks.values() if task.component.id == "sink"]
    assert sink.counters.failed == 1
