"""A driver that `stormspark run` starts, and commands from another process (J1, J2, J4)."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from stormspark.operations.registry import entries
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

TOPOLOGY = """
import logging
import time
from stormspark import BasicBolt, Fields, Spout, TopologyBuilder

log = logging.getLogger("my.bolt")

class Numbers(Spout):
    def open(self, conf, context, collector):
        self.collector, self.number = collector, 0
    def next_tuple(self):
        self.number += 1
        self.collector.emit((self.number,), message_id=self.number)
        time.sleep(0.01)
    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))

class Pass(BasicBolt):
    def execute(self, tup, collector):
        log.debug("passes a number")
        if tup[0] == 3:
            raise ValueError("three")
    def declare_output_fields(self, declarer):
        pass

def build():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("pass", Pass(), parallelism=2).shuffle_grouping("numbers")
    return builder.create_topology("NAME")
"""


def command(*arguments: str, code: int = 0) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "stormspark", *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == code, ran.stderr
    return ran.stdout if code == 0 else ran.stderr


def status(name: str) -> dict[str, str]:
    listed = json.loads(command("list", "--json"))["topologies"]
    return next((one for one in listed if one["name"] == name), {"status": "gone"})


on_both_engines = pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]
)


@contextlib.contextmanager
def driver_of(name: str, folder: Path, engine: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a driver in another process, and wait until it can be found. It is killed at the end."""
    (folder / f"{name}.py").write_text(TOPOLOGY.replace("NAME", name))
    output = folder / f"{name}.output"
    arguments = ["run", f"{name}.py", "--engine", engine, "--workers", "2", *options]
    with output.open("w") as opened:
        driver = subprocess.Popen(
            [sys.executable, "-m", "stormspark", *arguments], cwd=folder, stdout=opened, stderr=opened
        )
    try:
        wait_for(lambda: driver.poll() is not None or any(one.topology == name for one in entries()), 120)
        assert driver.poll() is None, output.read_text()
        yield driver
    finally:
        driver.kill()
        driver.wait()
        forget(name)


def forget(name: str) -> None:
    for one in entries():
        if one.topology == name and not one.lives:
            one.forget()


def a_name() -> str:
    return f"numbers_{uuid.uuid4().hex[:8]}"


@on_both_engines
def test_from_inactive_to_killed(engine: str, tmp_path: Path) -> None:
    name, figures = a_name(), tmp_path / "figures.json"
    output = tmp_path / f"{name}.output"
    with driver_of(name, tmp_path, engine, "--inactive", "--json", str(figures)) as driver:
        assert status(name)["status"] == "INACTIVE"
        command("activate", name)
        assert status(name)["status"] == "ACTIVE"
        command("kill", name, "-w", "1")
        assert driver.wait(120) == 0, output.read_text()
    assert status(name)["status"] == "gone"
    assert "was killed by a command: its spouts are deactivated, and it ends in 1 s" in output.read_text()
    numbers = json.loads(figures.read_text())["components"]["numbers"]
    assert numbers["emitted"] == numbers["acked"] + numbers["failed"]


@on_both_engines
def test_commands_reach_the_workers_of_one_of_two_topologies(engine: str, tmp_path: Path) -> None:
    name, other = a_name(), a_name()
    with driver_of(name, tmp_path, engine), driver_of(other, tmp_path, "local"):
        wait_for(lambda: "ValueError: three" in command("errors", name, "pass"), 120)
        assert f"{name}.py:" in command("errors", name)
        command("log-level", name, "-l", "my.bolt=DEBUG:300")
        wait_for(lambda: "DEBUG my.bolt: passes a number" in command("tail", name, "pass", "-n", "30"), 60)
        assert "DEBUG" not in command("tail", other, "pass", "-n", "1000")
        assert command("log-level", name, "-r", "my.bolt") == "no command has set the level of a logger\n"
        if engine == "local":
            assert "workers are no processes" in command("restart", name, code=2)
        else:
            before = command("monitor", name, "-m", "numbers", "--times", "1")
            assert command("restart", name, "1").endswith("starts anew\n")
            wait_for(lambda: command("monitor", name, "-m", "numbers", "--times", "1") != before, 120)
        assert status(name)["status"] == status(other)["status"] == "ACTIVE"


def test_a_driver_that_was_killed_takes_no_commands(tmp_path: Path) -> None:
    name = a_name()
    with driver_of(name, tmp_path, "local") as driver:
        driver.kill()
        driver.wait()
        assert status(name)["status"] == "DEAD"
        for line in (
            ["errors", name],
            ["monitor", name],
            ["restart", name],
            ["log-level", name],
            ["deactivate", name],
        ):
            assert "does not run any more" in command(*line, code=2)
        command("kill", name)
    assert status(name)["status"] == "gone"


@pytest.mark.spark
@pytest.mark.long
def test_commands_through_the_checkpoint(tmp_path: Path) -> None:
    name, checkpoint = a_name(), str(tmp_path / "checkpoint")
    by_folder = ("--checkpoint", checkpoint)
    with driver_of(name, tmp_path, "spark", "--checkpoint", checkpoint) as driver:
        assert name in command("list", *by_folder)
        assert "is inactive" in command("deactivate", name, *by_folder)
        assert json.loads(command("list", "--json", *by_folder))["topologies"][0]["status"] == "INACTIVE"
        assert command("log-level", "-l", "my.bolt=DEBUG", *by_folder).startswith("logger")
        assert "not to 'other'" in command("kill", "other", *by_folder, code=2)
        assert "is killed" in command("kill", "-w", "0", *by_folder)
        assert driver.wait(120) == 0
    assert "no driver uses the checkpoint folder" in command("activate", *by_folder, code=2)
    assert list((tmp_path / "checkpoint" / "stormspark" / "commands").iterdir()) == []
    with driver_of(name, tmp_path, "spark", "--checkpoint", checkpoint) as driver:
        driver.kill()
        driver.wait()
        assert "as after kill -9" in command("kill", *by_folder, code=2)
