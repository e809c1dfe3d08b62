"""A driver that `stormspark run` starts, and commands from another process (J1, J2, J4)."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from stormspark.operations.registry import entries
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

TOPOLOGY = """
import time
from stormspark import BasicBolt, Fields, Spout, TopologyBuilder

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


def command(*arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "stormspark", *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def status(name: str) -> dict[str, str]:
    listed = json.loads(command("list", "--json"))["topologies"]
    return next((one for one in listed if one["name"] == name), {"status": "gone"})


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]
)
def test_from_inactive_to_killed(engine: str, tmp_path: Path) -> None:
    name = f"numbers-{uuid.uuid4().hex[:8]}"
    (tmp_path / "counting.py").write_text(TOPOLOGY.replace("NAME", name))
    figures = tmp_path / "figures.json"
    arguments = [
        "run",
        "counting.py",
        "--engine",
        engine,
        "--workers",
        "2",
        "--inactive",
        "--json",
        str(figures),
    ]
    with (tmp_path / "output").open("w") as output:
        driver = subprocess.Popen(
            [sys.executable, "-m", "stormspark", *arguments], cwd=tmp_path, stdout=output, stderr=output
        )
    try:
        wait_for(
            lambda: [one for one in entries() if one.topology == name], 120, (tmp_path / "output").read_text
        )
        assert status(name)["status"] == "INACTIVE"
        command("activate", name)
        assert status(name)["status"] == "ACTIVE"
        command("kill", name, "-w", "1")
        assert driver.wait(120) == 0, (tmp_path / "output").read_text()
    finally:
        driver.kill()
        driver.wait()
    assert status(name)["status"] == "gone"
    assert (
        "was killed by a command: its spouts are deactivated, and it ends in 1 s"
        in (tmp_path / "output").read_text()
    )
    numbers = json.loads(figures.read_text())["components"]["numbers"]
    assert numbers["emitted"] == numbers["acked"] + numbers["failed"]
