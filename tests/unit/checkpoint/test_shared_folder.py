"""A path is one folder for hosts that share it, and another on each for those that don't; who writes there has to know."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from stormspark.checkpoint.shared_folder import SharedFolder, show_that_it_is_seen
from stormspark.checkpoint.state_table import StateTable, TaskChanges, write_changes
from stormspark.checkpoint.tidying import Tidying
from stormspark.errors import CheckpointError, FencedError


def test_a_worker_that_sees_the_folder(tmp_path: Path) -> None:
    shared = SharedFolder(tmp_path, "do without")
    for _ in range(3):
        assert shared.problem_with(show_that_it_is_seen(shared.place)) is None
    shared.close()
    assert not list(tmp_path.iterdir())


def test_a_host_without_the_folder(tmp_path: Path) -> None:
    shared = SharedFolder(tmp_path / "driver", "do without")
    elsewhere = shared.place.replace("/driver/", "/worker/")
    with pytest.raises(OSError, match="token"):
        show_that_it_is_seen(elsewhere)
    said = str(shared.error("worker 1 on b", "[Errno 2] ..."))
    assert said.startswith(f"worker 1 on b does not see the folder {tmp_path}/driver of the driver on ")
    assert said.endswith("or do without")
    assert "\n" not in said


def test_a_host_with_a_copy_of_the_folder(tmp_path: Path) -> None:
    """It reads what the driver has written, once upon a time, and what it writes stays there."""
    shared = SharedFolder(tmp_path / "driver", "do without")
    shutil.copytree(tmp_path / "driver", tmp_path / "worker")
    shown = show_that_it_is_seen(shared.place.replace("/driver/", "/worker/"))
    assert shared.problem_with(shown) == "the driver does not see what was written there"


def test_the_folder_of_an_earlier_driver_proves_nothing(tmp_path: Path) -> None:
    old = SharedFolder(tmp_path, "do without")
    shown = show_that_it_is_seen(old.place)
    new = SharedFolder(tmp_path, "do without")
    assert [path.name for path in tmp_path.iterdir()] == [Path(new.place).name], (
        "it was killed, so nobody tidied up"
    )
    assert new.problem_with(shown) is not None
    assert new.problem_with("../" + Path(old.place).name + "/" + shown) is not None, "names only"
    assert new.problem_with("") is not None


def test_a_guest_touches_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    """A folder of the user may be called as a token is, and two guests do not know each other."""
    mine = tmp_path / "seen-users" / "file"
    mine.parent.mkdir()
    mine.touch()
    first, second = (SharedFolder(tmp_path, "do without", as_guest=True) for _ in range(2))
    assert first.problem_with(show_that_it_is_seen(first.place)) is None
    for one in (first, second):
        one.close()
    assert mine.exists() and [path.name for path in tmp_path.iterdir()] == ["seen-users"]


def test_a_guest_removes_the_folders_that_it_had_to_make(tmp_path: Path) -> None:
    """Unless somebody has put something into one of them."""
    for others in ((), ("a/mine",)):
        shared = SharedFolder(tmp_path / "a" / "b" / "c", "do without", as_guest=True)
        for name in others:
            (tmp_path / name).touch()
        shared.close()
        assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == (
            ["a", "a/mine"] if others else []
        )


def test_a_guest_who_may_not_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        SharedFolder(tmp_path / "a" / "b", "do without", as_guest=True)
    assert not list(tmp_path.iterdir())


def changed(location: Path, txid: int) -> object:
    return write_changes(
        str(location), [TaskChanges("count", 0, [(b"k", b"%d" % txid)])], generation=0, txid=txid
    )


def test_a_batch_whose_file_the_driver_does_not_see_is_not_committed(tmp_path: Path) -> None:
    table = StateTable(tmp_path / "driver")
    table.open(0)
    table.commit(0, [changed(tmp_path / "driver", 0)])  # type: ignore[list-item]
    StateTable(tmp_path / "worker").open(0)
    elsewhere = changed(tmp_path / "worker", 1)
    with pytest.raises(
        CheckpointError, match=r"written for batch 1, is missing .* let all hosts share the folder"
    ):
        table.commit(1, [elsewhere])  # type: ignore[list-item]
    assert table.last_txid == 0
    table.commit(1, [changed(tmp_path / "driver", 1)])  # type: ignore[list-item]
    assert [row["value"] for rows in table.restore("count", 0) for row in rows.to_pylist()] == [b"1"]


def test_a_batch_whose_file_was_cut_is_not_committed(tmp_path: Path) -> None:
    table = StateTable(tmp_path)
    table.open(0)
    file = changed(tmp_path, 0)
    path = tmp_path / file.path  # type: ignore[attr-defined]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"has \d+ bytes instead of \d+ where the driver looks"):
        table.commit(0, [file])  # type: ignore[list-item]
    assert table.last_txid == -1


def test_tidying_that_fails_again_and_again_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Once or twice is nothing; a disk that is read-only for ever is told ever more seldom."""
    tidying = Tidying("the state table t")
    told = []
    with caplog.at_level(logging.WARNING):
        for n in range(1, 101):
            with tidying.attempt():
                raise (OSError, CheckpointError, FencedError)[n % 3](f"read-only {n}")  # type: ignore[operator]
            told += [n for _ in caplog.records]
            caplog.clear()
        assert told == [10, 20, 40, 80]
        with tidying.attempt():
            pass
        assert [record.message for record in caplog.records] == ["the state table t could be tidied again"]
        caplog.clear()
        for n in range(9):
            with tidying.attempt():
                raise OSError(n)
        with tidying.attempt():
            pass
        assert not caplog.records
    with pytest.raises(ZeroDivisionError), tidying.attempt():
        raise ZeroDivisionError
