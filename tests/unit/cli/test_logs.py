"""Where the logs of a topology are, and what they end with (W8, A39)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark.cli import logs, main
from stormspark.cli.logs import log_files
from stormspark.errors import TopologyNotAliveError
from stormspark.operations import registry
from stormspark.operations.registry import Registration
from stormspark.worker.host.task_logs import file_name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(logs, "default_log_folder", lambda: tmp_path)
    monkeypatch.setattr(registry, "registry_folder", lambda: tmp_path / "registry")
    folder = tmp_path / "words"
    folder.mkdir(mode=0o700)
    for task in ("count[0]", "count[1]", "count[12]", "counter[0]", "a b[0]"):
        (folder / file_name(task)).write_text(f"first of {task}\nlast of {task}\n")
    (folder / "worker-0.log").write_text("the worker\n")
    return folder


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.output


def test_the_logs_of_a_component_are_those_of_its_tasks(folder: Path) -> None:
    assert [file.name for file in log_files(folder, "count")] == [
        "count-0.log",
        "count-1.log",
        "count-12.log",
    ]
    assert [file.name for file in log_files(folder, "count[12]")] == ["count-12.log"]
    assert [file.name for file in log_files(folder, "a b")] == [file_name("a b[0]")]
    assert len(log_files(folder, None)) == 6


def test_a_component_without_logs_here(folder: Path) -> None:
    with pytest.raises(
        TopologyNotAliveError, match=r"there is no log of split in .*there are a_b-0-.*count-0.log"
    ):
        log_files(folder, "split")
    assert run("tail", "words", "split")[0] == 2


def test_the_folder_of_an_ended_topology_and_its_files(folder: Path) -> None:
    code, said = run("logs", "words", "--json")
    assert code == 0
    assert json.loads(said)["folder"] == str(folder)
    assert json.loads(said)["files"]["worker-0.log"] == 11
    assert str(folder) in run("logs", "words")[1]


def test_a_driver_that_was_killed_and_whose_logs_are_gone(folder: Path) -> None:
    Registration("gone").enter("gone-1-1", "spark", time.time(), None, str(folder / "removed"))
    code, said = run("tail", "gone")
    assert (code, "removed with the logs of 'gone' is gone" in said) == (2, True)


@pytest.mark.parametrize("name", ["other", "../words", "words/../words"])
def test_other_names(folder: Path, name: str) -> None:
    assert run("logs", name)[0] == 2


def test_the_last_lines_are_shown(folder: Path) -> None:
    program = (
        "from pathlib import Path; from stormspark.cli import logs, main; from stormspark.operations import registry;"
        f"registry.registry_folder = lambda: Path({str(folder.parent / 'registry')!r});"
        f"logs.default_log_folder = lambda: Path({str(folder.parent)!r});"
        "main(['tail', 'words', 'count[1]', '-n', '1'])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "last of count[1]\n"


def test_two_topologies_of_one_name_are_told_apart_by_their_ids(folder: Path) -> None:
    for number in (1, 2):
        Registration("words").enter(f"words-{number}-1", "local", time.time(), None, str(folder))
    code, said = run("tail", "words")
    assert (code, "say which one by its id, one of words-1-1, words-2-1" in said) == (2, True)
    assert run("logs", "words-2-1")[0] == 0
