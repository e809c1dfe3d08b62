"""Where a worker goes that is told of a working directory, and what paths mean afterwards."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stormspark import working_folder
from stormspark.working_folder import SHIPPED_PROJECT, about_relative_path, from_start, go_to, working_in


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(working_folder._Process, "start", None)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.chdir(tmp_path)


def test_a_worker_goes_to_the_folder_that_the_driver_names(tmp_path):
    (tmp_path / "src").mkdir()
    assert go_to(str(tmp_path / "src")) is None
    assert os.getcwd() == str(tmp_path / "src")
    assert from_start("logs") == str(tmp_path / "logs")
    assert from_start("/logs") == "/logs"
    assert sys.path[0] == str(tmp_path)


def test_on_another_host_the_shipped_folder_takes_its_place(tmp_path):
    (tmp_path / "src").mkdir()
    assert go_to("/not/here/src") is None
    assert os.getcwd() == str(tmp_path / "src")


def test_without_the_folder_the_worker_stays_and_says_so(tmp_path):
    problem = go_to("/not/here/src")
    assert problem is not None
    assert "neither /not/here/src nor" in problem
    assert os.getcwd() == str(tmp_path)
    assert from_start("logs") == "logs"


def test_no_folder_means_to_stay(tmp_path):
    with working_in(None):
        assert os.getcwd() == str(tmp_path)


def test_a_relative_path_that_is_not_found_gets_a_hint(tmp_path):
    with pytest.raises(FileNotFoundError) as found:
        Path("data/words.txt").read_text()
    assert about_relative_path(found.value) == (
        f"relative paths start in {tmp_path}; call it in the project's folder, or set stormspark.working.dir"
    )


@pytest.mark.parametrize(
    "look",
    [
        lambda: Path("/no/such/file").read_text(),
        lambda: subprocess.run(["no-such-program"], check=False),
        lambda: dict[str, int]()["words.txt"],
        lambda: (_ for _ in ()).throw(FileNotFoundError("no such table")),
    ],
    ids=["absolute", "a program", "no file", "no name"],
)
def test_other_errors_get_no_hint_about_paths(look):
    with pytest.raises((OSError, KeyError)) as found:
        for _ in look():
            pass
    assert about_relative_path(found.value) == ""


@pytest.mark.parametrize("folder", ["/home/me/flow/src", f"/container/{SHIPPED_PROJECT}/src"])
def test_an_executor_finds_the_folder_in_the_project_that_was_shipped(tmp_path, folder):
    (tmp_path / SHIPPED_PROJECT / "src").mkdir(parents=True)
    assert go_to(folder) is None
    assert os.getcwd() == str(tmp_path / SHIPPED_PROJECT / "src")
