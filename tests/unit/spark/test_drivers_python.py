"""A relative path to Python that only executors have: the driver gets a program there."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stormspark.spark.drivers_python import bring_python


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What is done when the process ends."""
    registered: list[Any] = []
    monkeypatch.setattr(atexit, "register", lambda *call: registered.append(call))

    def end() -> None:
        while registered:
            function, *arguments = registered.pop()
            function(*arguments)

    return end


def context(python: str, folder: Path) -> Any:
    system = SimpleNamespace(getProperty={"user.dir": str(folder)}.__getitem__)
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
    return SimpleNamespace(pythonExec=python, _jvm=jvm)


def test_the_path_leads_to_this_programs_python_while_it_runs(
    tmp_path: Path, ends: Callable[[], None]
) -> None:
    bring_python(context("./env/bin/python", tmp_path))
    shown = [str(tmp_path / "env/bin/python"), "-c", "import sys; print(sys.prefix, sys.argv)", "a b"]
    assert subprocess.check_output(shown, text=True) == f"{sys.prefix} ['-c', 'a b']\n"
    ends()
    assert not list(tmp_path.iterdir())


def test_what_is_there_stays_and_what_a_killed_driver_left_is_renewed(
    tmp_path: Path, ends: Callable[[], None]
) -> None:
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    bring_python(context("env/bin/python", tmp_path))
    ends()
    assert python.is_symlink(), "the user has unpacked the environment"
    python.unlink()
    for _ in "a driver that is killed", "the next one":
        bring_python(context("env/bin/python", tmp_path))
        assert sys.executable in python.read_text()
    ends()
    assert python.parent.exists() and not python.exists(), "only what was made goes"


@pytest.mark.parametrize("python", ["python3", sys.executable])
def test_other_paths_need_nothing(python: str, tmp_path: Path) -> None:
    bring_python(context(python, tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_may_not_be_written_to_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "env").write_text("a file, and so no folder")
    bring_python(context("./env/bin/python", tmp_path))
    assert "Spark starts Python as ./env/bin/python on this host too" in caplog.text
    assert "Unpack the environment's archive" in caplog.text
    assert os.listdir(tmp_path) == ["env"]
