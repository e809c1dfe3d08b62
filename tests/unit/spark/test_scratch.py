"""Temporary folders of runs that were killed are removed by the next one, and those of others never."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stormspark.spark import scratch


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Paths of sockets are short.
    folder = Path(os.path.join("/tmp", f"s{os.getpid()}"))
    folder.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


def made(*, listens: bool, hours: float = 2.0, host: str | None = None) -> tuple[Path, socket.socket]:
    folder, _ = scratch.scratch_folder()
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(folder / "nimbus"))
    if listens:
        sock.listen(1)
    if host is not None:
        (folder / "host").write_text(host)
    (folder / "checkpoint").mkdir()
    then = time.time() - hours * 3600
    os.utime(folder / "host", (then, then))
    return folder, sock


def test_what_a_dead_run_left_is_removed(temporary: Path) -> None:
    dead, sock = made(listens=False)
    sock.close()
    mine, _ = scratch.scratch_folder()
    assert not dead.exists() and sorted(temporary.iterdir()) == [mine]
    assert mine.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "case",
    [
        {"listens": True},
        {"listens": False, "hours": 0.5},
        {"listens": False, "host": "another-host with another start"},
    ],
    ids=str,
)
def test_what_may_live_stays(temporary: Path, case: dict[str, object]) -> None:
    """A driver that listens, one that begins, and one on another host with the same folder."""
    other, sock = made(**case)  # type: ignore[arg-type]
    scratch.scratch_folder()
    sock.close()
    assert (other / "checkpoint").exists()


def test_the_folder_of_a_driver_between_two_layouts_stays(temporary: Path) -> None:
    """J3: it has no nimbus then."""
    other, remove = scratch.scratch_folder()
    then = time.time() - 7200
    os.utime(other / "host", (then, then))
    scratch.scratch_folder()
    assert other.exists()
    remove()
    assert not other.exists()


def test_what_is_not_ours_stays(temporary: Path) -> None:
    """Logs, a folder that others can write to, and a link; none has to be a folder of a run."""
    logs = temporary / "stormspark-logs-me"
    logs.mkdir(mode=0o700)
    shared, sock = made(listens=False)
    sock.close()
    shared.chmod(0o777)
    link = temporary / "stormspark-link"
    link.symlink_to(logs)
    scratch.scratch_folder()
    assert logs.exists() and shared.exists() and link.is_symlink()
