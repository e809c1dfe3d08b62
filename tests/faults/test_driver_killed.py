"""kill -9 of the driver, its Python or its JVM: nothing is left over, and the next driver goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_for, wait_until_gone, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def driver(tmp_path):
    """A driver that has run a batch: its process; whatever is left of it in the end is killed."""
    name = f"driver-{os.getpid()}-{tmp_path.name}"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.driver", str(tmp_path), name],
            cwd=ROOT, env=environment, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        wait_for(
            lambda: (tmp_path / "runs").exists() or process.poll() is not None,
            message="the driver's first batch",
        )
        assert process.poll() is None, (tmp_path / "output").read_text()
        yield process, name
    finally:
        for left in [*_family(process), *worker_processes(name).values()]:
            left.kill()
        process.wait()


def _family(process: subprocess.Popen) -> list[psutil.Process]:
    try:
        me = psutil.Process(process.pid)
        return [me, *me.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


@pytest.mark.parametrize("what", [pytest.param("python", marks=pytest.mark.long), "jvm"])
def test_nothing_is_left_over(driver, tmp_path, what):
    process, name = driver
    family = _family(process)
    workers = list(worker_processes(name).values())
    assert len(workers) == 2
    jvm = next(one for one in family if one.name() == "java")
    os.kill(process.pid if what == "python" else jvm.pid, signal.SIGKILL)
    wait_until_gone(workers)
    wait_until_gone(family)
    assert not list(tmp_path.glob("stormspark-*/nimbus")), "the sockets are gone too"
    if what == "jvm":
        assert "Spark's JVM has ended" in (tmp_path / "output").read_text()
