"""Signals to ``stormspark run`` on Spark: to the process and to its whole group, before the topology runs and afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.spark.processes import ending_with_the_test
from tests.waiting import wait_for, wait_until_gone

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPOLOGY = """
from tests.spark.endless import numbers

def build():
    return numbers("interrupted")
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A temporary folder for the program. Its path is short, because it is part of the paths of sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def start(tmp_path: Path, temporary: Path) -> Iterator[Start]:
    def start(*, ignores_sigint: bool = False) -> subprocess.Popen[str]:
        # A shell starts a program in the background like this if it has no job control.
        shell = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")
        return runs.start(
            TOPOLOGY,
            "--json",
            str(tmp_path / "figures.json"),
            before=shell if ignores_sigint else (),
            start_new_session=True,
            env=os.environ
            | {
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "TMPDIR": str(temporary),
                "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={temporary}",
            },
        )

    with ending_with_the_test(tmp_path) as runs:
        yield start


@pytest.mark.parametrize(
    ("number", "to_group", "at", "code"),
    [
        (signal.SIGINT, True, "shell", 130),
        (signal.SIGTERM, False, "java", 143),
        pytest.param(signal.SIGTERM, True, "shell", 143, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, False, "java", 130, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, False, "gateway", 130, marks=pytest.mark.long),
    ],
)
def test_a_start_that_is_interrupted_leaves_nothing_behind(
    start: Start, temporary: Path, number: int, to_group: bool, at: str, code: int
) -> None:
    process = start(ignores_sigint=number == signal.SIGINT)
    driver = psutil.Process(process.pid)
    assert process.stdout is not None
    while "starting interrupted on spark" not in process.stdout.readline():
        assert process.poll() is None

    def jvm_has_begun() -> bool:
        # `require_java` starts a java, too. Only the JVM has a session of its own.
        found = [one for one in driver.children() if os.getsid(one.pid) == one.pid]
        if not found or (at != "shell" and "java" not in found[0].name()):
            return False
        # Py4J is asked as soon as its port is open.
        return at != "gateway" or any(one.status == psutil.CONN_LISTEN for one in found[0].net_connections())

    wait_for(jvm_has_begun)
    family = driver.children(recursive=True)
    (os.killpg if to_group else os.kill)(process.pid, number)
    output, _ = process.communicate()
    assert process.returncode == code, output
    assert f"interrupted by {signal.Signals(number).name} before the topology ran" in output
    assert "Traceback" not in output
    wait_until_gone(family)
    assert os.listdir(temporary) == []


def test_a_group_that_gets_sigterm_works_off_what_is_under_way(
    start: Start, temporary: Path, tmp_path: Path
) -> None:
    """Supervisors such as ``timeout`` send SIGTERM to the group, and Spark's JVM must not get it."""
    process = start()
    family = psutil.Process(process.pid).children
    assert process.stdout is not None
    lines = [""]
    while "acked 0" in lines[-1] or "acked" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], "\n".join(lines)
    children = family(recursive=True)
    os.killpg(process.pid, signal.SIGTERM)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    numbers = json.loads((tmp_path / "figures.json").read_text())["components"]["numbers"]
    assert numbers["emitted"] == numbers["acked"] > 0
    wait_until_gone(children)
    assert os.listdir(temporary) == []
