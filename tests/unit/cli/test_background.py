"""A driver in the background, and one that is started again when it dies (``--detach``, ``--supervise``)."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark.cli import background, main
from stormspark.cli.background import handed_over, supervised
from stormspark.operations import registry
from stormspark.operations.client import Client
from stormspark.operations.registry import SUPERVISED_BY, Registration, entries
from stormspark.worker.host.lifeline import this_process
from tests.unit.operations.test_drivers import TOPOLOGY, a_name, command, forget, status
from tests.waiting import wait_for


class Program:
    """A program that notes its starts, and ends in the ways that are listed, one after another."""

    def __init__(self, folder: Path, *ends: str) -> None:
        self.starts = folder / "starts"
        lines = "; ".join(f"({number} == seen) and {end}" for number, end in enumerate(ends))
        text = (
            f"import os, signal, sys\nfrom pathlib import Path\nstarts = Path({str(self.starts)!r})\n"
            f"seen = len(starts.read_text()) if starts.exists() else 0\nstarts.write_text('x' * (seen + 1))\n"
            f"assert os.environ['STORMSPARK_ROLE'] == 'driver'\n{lines}\n"
        )
        (folder / "program.py").write_text(text)
        self.command = [sys.executable, str(folder / "program.py")]
        self.waits: list[float] = []
        self.now = 0.0

    def sleep(self, secs: float) -> None:
        self.now += secs
        if self.waits:
            self.waits[-1] += secs

    def supervised(self, monkeypatch: pytest.MonkeyPatch) -> int:
        monkeypatch.setenv("STORMSPARK_ROLE", "")
        if "STORMSPARK_STARTED_AS" not in os.environ:
            monkeypatch.setenv("STORMSPARK_STARTED_AS", "a test")
        return supervised(self.command, sleep=self.sleep, clock=lambda: self.now)

    @property
    def count(self) -> int:
        return len(self.starts.read_text())


KILLED = "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ends", "code", "starts"),
    [
        ([], 0, 1),
        (["sys.exit(3)"], 3, 1),
        (["sys.exit(2)"], 2, 1),
        (["sys.exit(143)"], 143, 1),
        ([KILLED, "sys.exit(1)", "sys.exit(2)"], 0, 4),
    ],
)
def test_what_died_is_started_again_and_what_ended_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: list[str], code: int, starts: int
) -> None:
    program = Program(tmp_path, *ends)
    assert program.supervised(monkeypatch) == code
    assert program.count == starts


@pytest.mark.slow
def test_a_supervisor_supervises_its_driver_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a kill of some other topology that was started from here would end this process."""
    before = dict(os.environ)
    program = Program(tmp_path, f"os.environ[{SUPERVISED_BY!r}].split()[0] == '{os.getpid()}' or sys.exit(2)")
    assert program.supervised(monkeypatch) == 0
    assert SUPERVISED_BY not in {*os.environ} - {*before}


def test_a_program_that_a_driver_starts_is_not_supervised_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SUPERVISED_BY, f"{os.getpid()} {this_process().started}")
    assert handed_over(detach=False, supervise=False) is None
    assert SUPERVISED_BY not in os.environ


@pytest.mark.slow
def test_the_waits_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(background, "_LONGEST_WAIT", 4.0)
    assert Program(tmp_path, KILLED, *["sys.exit(1)"] * 3).supervised(monkeypatch) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == (
        "the driver was killed by signal 9: it is started again in 1 s "
        f"(deaths in a row: 1; `kill {os.getpid()}` ends this)"
    )
    assert [line.partition("again in ")[2].partition(" s")[0] for line in said] == ["1", "2", "4", "4"]


@pytest.mark.slow
def test_a_signal_while_it_waits_ends_the_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(tmp_path, KILLED)
    monkeypatch.setattr(program, "sleep", lambda secs: os.kill(os.getpid(), signal.SIGTERM))
    assert program.supervised(monkeypatch) == 143
    assert program.count == 1


@pytest.mark.slow
def test_what_was_killed_by_a_command_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(tmp_path, KILLED)
    monkeypatch.setenv("STORMSPARK_STARTED_AS", "this one")
    with tempfile.TemporaryDirectory(dir="/tmp") as made:  # sockets have short names
        monkeypatch.setattr(registry, "registry_folder", lambda: Path(made, "registry"))
        registration = Registration("words")
        registration.enter("words-1-1", "local", 0.0, None, None)
        registration.note_kill()
        assert program.supervised(monkeypatch) == 137
    assert program.count == 1


@pytest.mark.slow
def test_a_kill_between_two_drivers_ends_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has died, and the next one does not live yet."""
    program = Program(tmp_path, KILLED)
    said: list[str] = []
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        monkeypatch.setattr(registry, "registry_folder", lambda: Path(made, "registry"))

        def sleep(secs: float) -> None:
            if not said:
                registration = Registration("words")
                registration.enter("words-1-1", "local", 0.0, None, None)
                entry = registration.entry
                entry.file.write_text(json.dumps({**vars(entry), "started": entry.started - 1}))
                said.append(CliRunner().invoke(main, ["kill", "words"]).output)
            program.sleep(secs)

        monkeypatch.setenv(SUPERVISED_BY, f"{os.getpid()} {this_process().started}")
        assert supervised(program.command, sleep=sleep, clock=lambda: program.now) == 143
    assert said == [
        f"words-1-1 had lost its driver already: it is off the list now, and its supervisor, process {os.getpid()}, starts it no "
        "more\n"
    ]
    assert program.count == 1


def test_a_driver_on_the_cluster_is_not_supervised_here(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text("")
    arguments = [
        "submit",
        str(tmp_path / "words.py"),
        "--master",
        "yarn",
        "--deploy-mode",
        "cluster",
        "--detach",
    ]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, "waitAppCompletion=false" in result.output) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]
)
def test_a_driver_in_the_background(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = a_name()
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.py").write_text(TOPOLOGY.replace("NAME", name))
    options = [] if engine == "local" else ["--checkpoint", str(tmp_path / "checkpoint")]
    try:
        said = command("run", f"{name}.py", "--engine", engine, "--detach", "--supervise", *options)
        assert f"{name} runs: id {name}-" in said
        before = next(one for one in entries() if one.topology == name)
        assert not Client(before).ask("GET", "readiness")["waitsFor"]
        os.kill(before.pid, signal.SIGKILL)
        wait_for(
            lambda: any(one.lives and one.pid != before.pid for one in entries() if one.topology == name), 120
        )
        command("kill", name, "-w", "0")
        wait_for(lambda: status(name)["status"] == "gone", 120)
        output = Path(next(line for line in said.splitlines() if line.startswith("output: "))[8:])
        assert "the driver was killed by signal 9: it is started again in 1 s" in output.read_text()
    finally:
        for one in entries():
            if one.topology == name and one.lives:
                os.kill(one.pid, signal.SIGTERM)
        forget(name)


@pytest.mark.slow
def test_a_driver_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.py").write_text("def build():\n    raise ValueError('no broker')\n")
    said = command("run", "words.py", "--engine", "local", "--detach", "--supervise", code=2)
    assert "no broker" in said
    assert "the topology did not start, with exit code 2" in said
