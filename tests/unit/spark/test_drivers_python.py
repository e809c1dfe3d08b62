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

from stormspark.spark import drivers_python
from stormspark.spark.drivers_python import bring_python
from stormspark.spark.fence import this_machine
from stormspark.worker.host.lifeline import this_process
from stormspark.worker.host.messages import ProcessId


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
    bring_python(context("env/bin/python", tmp_path))
    left = python.read_text().replace(sys.executable, "/gone/python")
    python.write_text(left.replace(str(this_process().started), "1"))
    bring_python(context("env/bin/python", tmp_path))
    assert python.read_text().count(sys.executable) == 1 and "/gone" not in python.read_text()
    ends()
    assert python.parent.exists() and not python.exists(), "only what was made goes"


def test_what_a_user_unpacks_meanwhile_stays(tmp_path: Path, ends: Callable[[], None]) -> None:
    bring_python(context("./env/bin/python", tmp_path))
    python = tmp_path / "env/bin/python"
    (tmp_path / "env/lib").mkdir()
    python.write_text("#!/bin/sh\nexec python3\n")
    ends()
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["bin", "env", "lib", "python"]
    python.unlink()
    bring_python(context("./env/bin/python", tmp_path))
    ends()
    assert not python.exists() and (tmp_path / "env/lib").exists(), "only what was made goes"


@pytest.mark.usefixtures("ends")
def test_the_last_of_several_drivers_in_a_folder_removes_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    python, living = tmp_path / "env/bin/python", set[ProcessId]()
    monkeypatch.setattr(drivers_python, "is_alive", living.__contains__)
    drivers = [ProcessId("here", pid, 7) for pid in (1, 2, 3)]
    for driver in drivers:
        living.add(driver)
        monkeypatch.setattr(drivers_python, "this_process", lambda driver=driver: driver)
        monkeypatch.setattr(sys, "executable", "/bin/sh" if driver.pid < 3 else "/bin/ls")
        bring_python(context("./env/bin/python", tmp_path))
        bring_python(context("./env/bin/python", tmp_path))  # a second topology
        assert "exec /bin/sh" in python.read_text(), "the first one's"
        assert bool(caplog.messages) is (driver.pid == 3), "another Python is a warning"
    for driver in drivers:
        me = drivers_python._Driver(driver, this_machine())
        monkeypatch.setattr(drivers_python, "this_process", lambda: drivers[0]._replace(pid=4))
        drivers_python._remove(python, (), me)
        assert f"here {driver.pid} 7" in python.read_text(), "a fork ends"
        monkeypatch.setattr(drivers_python, "this_process", lambda driver=driver: driver)
        living.discard(driver)
        drivers_python._remove(python, (), me)
        assert python.exists() is bool(living)
    assert not list((tmp_path / "env/bin").iterdir())


@pytest.mark.parametrize("there", ["a link that leads nowhere", "a folder", "not a program"])
def test_what_can_not_be_started_stays_and_is_a_warning(
    tmp_path: Path, ends: Callable[[], None], there: str, caplog: pytest.LogCaptureFixture
) -> None:
    python = tmp_path / "python"
    if there == "a folder":
        python.mkdir()
    elif there == "not a program":
        python.write_text("text")
    else:
        python.symlink_to(tmp_path / "elsewhere")
    bring_python(context("./python", tmp_path))
    ends()
    assert os.listdir(tmp_path) == ["python"]
    assert "what is there can't be started as a program" in caplog.text


def test_what_this_user_may_not_read_is_left_alone(
    tmp_path: Path, ends: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("somebody's")
    python.chmod(0o711)

    def refuses(*_: Any) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuses)
        bring_python(context("./python", tmp_path))
    ends()
    assert python.read_text() == "somebody's"


@pytest.mark.usefixtures("ends")
def test_a_program_of_a_driver_elsewhere_stays_while_its_python_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder on several hosts, or a killed container's: nobody knows whether that driver lives."""
    python = tmp_path / "python"
    with monkeypatch.context() as there:
        there.setattr(drivers_python, "this_process", lambda: ProcessId("elsewhere", 1, 1))
        bring_python(context("./python", tmp_path))
        made = python.read_text()
    bring_python(context("./python", tmp_path))
    assert python.read_text() != made and "elsewhere 1 1" in python.read_text()
    python.write_text(made.replace(sys.executable, "/gone/python"))
    bring_python(context("./python", tmp_path))
    assert "elsewhere" not in python.read_text() and sys.executable in python.read_text()


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
