"""What a worker process does before it knows anything but its `Launch`."""

from __future__ import annotations

import io
import pickle
import socket
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stormspark import private_files
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.private_files import FolderClaim
from stormspark.tuple_path import PURE
from stormspark.worker.host import launch as launching
from stormspark.worker.host import process
from stormspark.worker.host.launch import Launch, own_folder, remove_folders
from stormspark.worker.host.link import Endpoint

started: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the user ``spark``, whose driver is alice's."""
    started.clear()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(private_files, "user_name", lambda uid=None: "spark")
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)
    monkeypatch.setattr(process, "become_watched", lambda order, output, folder: None)
    monkeypatch.setattr(process, "worker_folder", lambda order: tmp_path / "worker-0-abc")

    def start(*told: Any) -> SimpleNamespace:
        started.append(told)
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr(process, "WorkerProcess", start)


def run(monkeypatch: pytest.MonkeyPatch, log_folder: str | None) -> Launch:
    order = Launch("words", 0, 0, 0, 0, Endpoint("", None), b"key", None, log_folder)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pickle.dumps(order))))
    process.main()
    return order


def test_its_logs_are_by_default_in_a_folder_of_its_own_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of the driver's: that one is refused to it, or, where the worker comes first, to the driver."""
    order = run(monkeypatch, None)
    assert started == [(order, tmp_path / "stormspark-logs-spark" / "words", tmp_path / "worker-0-abc")]
    assert (tmp_path / "stormspark-logs-spark" / "words").stat().st_mode & 0o777 == 0o700


def test_its_logs_are_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = run(monkeypatch, str(tmp_path / "logs"))
    assert started == [(order, tmp_path / "logs", tmp_path / "worker-0-abc")]
    assert not (tmp_path / "stormspark-logs-spark").exists()


def test_a_folder_that_can_not_be_used_is_reported_with_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stormspark-logs-spark").symlink_to(tmp_path)
    with pytest.raises(
        SystemExit, match=f"on host {socket.gethostname()}: .*stormspark-logs-spark is a link"
    ):
        run(monkeypatch, None)
    assert started == []


@pytest.mark.parametrize("sources", [False, True])
def test_it_runs_the_sources_where_the_driver_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: bool
) -> None:
    """Its host knows nothing of the driver's environment."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho {PURE}=${PURE} > {tmp_path / 'told'}\nprintf up\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.delenv(PURE, raising=False)
    told = Launch("words", 0, 0, 0, 0, Endpoint("", None), b"key", None, None, sources=sources)  # type: ignore[arg-type]
    launching.start(told, 60)
    assert (tmp_path / "told").read_text().strip() == f"{PURE}={'1' if sources else ''}"


def test_without_a_folder_for_its_socket_it_says_which_one_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its temporary folder is the one in which the container of YARN runs, because ``/tmp`` can't be written to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("container" * 10)))
    monkeypatch.setattr(private_files, "SHORT_FOLDER", str(tmp_path / "none"))
    with pytest.raises(UnsupportedEnvironmentError) as told:
        own_folder("worker-0-")
    assert str(told.value) == (
        f"a socket needs a folder on host {socket.gethostname()}, and none can be made in {tmp_path / 'none'} (No such file or "
        f"directory): set TMPDIR to a folder on a local disk, with a name of at most 50 characters"
    )

    monkeypatch.setattr(process, "worker_folder", lambda order: own_folder("worker-0-"))
    with pytest.raises(SystemExit, match="a socket needs a folder on host") as end:
        run(monkeypatch, str(tmp_path / "logs"))
    assert end.value.code == str(told.value), "in one line, without a traceback"


@pytest.mark.parametrize("lives", [True, False])
def test_a_worker_removes_the_folder_of_a_driver_that_was_killed_and_not_of_one_without_nimbus(
    tmp_path: Path, lives: bool
) -> None:
    """J3: between two layouts a driver has no nimbus. Its folder may have the checkpoint, and files of other workers."""
    drivers = own_folder("s-")
    (drivers / "checkpoint").mkdir()
    with socket.socket(socket.AF_UNIX) as nimbus:
        nimbus.bind(str(drivers / "nimbus"))
    claim = FolderClaim(drivers)
    if not lives:
        claim.close()
    own = own_folder("worker-0-", str(drivers))
    remove_folders(own, Endpoint(str(drivers / "nimbus")))
    assert not own.exists()
    assert (drivers / "checkpoint").exists() is (drivers / "nimbus").exists() is lives
