"""FileBolt where batches are transactions: what is committed is on the disk; what came again may be there twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.connectors import CountSyncPolicy, FileBolt
from stormspark.connectors.file_bolt_storage import LocalFile
from stormspark.errors import ComponentError
from tests.unit.connectors.exactly_once_components import Numbers
from tests.unit.worker.durable_workers import DurableWorkers


def number(n: int) -> tuple[int]:
    return (n,)


def workers(folder: Path, **conf: Any) -> DurableWorkers:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(number, ("n",), 10))
    bolt = FileBolt(folder / "out").with_sync_policy(CountSyncPolicy(1_000_000))
    builder.set_bolt("sink", bolt).shuffle_grouping("numbers")
    return DurableWorkers(builder.create_topology("to-files"), folder / "state", conf)


def numbers_in(folder: Path) -> list[int]:
    return sorted(int(line) for file in folder.glob("out/*") for line in file.read_text().split())


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
