"""A plain script beside its modules: workers find them where the driver does, and prints go to the tasks' logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

MODULE = """
from stormspark import BasicBolt, Fields, Spout

class Numbers(Spout):
    def open(self, conf, context, collector):
        self.collector, self.n = collector, 0

    def next_tuple(self):
        if self.n < 100:
            self.n += 1
            self.collector.emit((self.n,), message_id=self.n)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))

class Print(BasicBolt):
    def execute(self, tup, collector):
        print("seen", tup["n"])
"""

SCRIPT = """
import sys
from components_of_the_script import Numbers, Print
from stormspark import TopologyBuilder
from stormspark.spark import submit

builder = TopologyBuilder()
builder.set_spout("numbers", Numbers())
builder.set_bolt("print", Print(), 2).shuffle_grouping("numbers")
running = submit(builder.create_topology("script"), conf={"topology.workers": 2, "stormspark.log.dir": sys.argv[1]})
while running.statistics().components["numbers"].acked < 100 and not running.wait(0.1):
    pass
running.stop()
assert running.error is None, running.error
"""


def test_workers_find_the_modules_beside_a_script(tmp_path: Path) -> None:
    (tmp_path / "components_of_the_script.py").write_text(MODULE)
    (tmp_path / "script.py").write_text(SCRIPT)
    root = Path(__file__).parents[2]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "logs")],
        cwd=elsewhere,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    logs = [path.read_text() for path in sorted((tmp_path / "logs").glob("print-*.log"))]
    assert [log.count("INFO stdout: seen") for log in logs] == [50, 50]


TOPOLOGY = """
from components_of_the_script import Numbers, Print
from stormspark import TopologyBuilder

class Here(Print):
    pass

def build():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("print", Here()).shuffle_grouping("numbers")
    return builder.create_topology("namesake", {"topology.workers": 1})
"""


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.long)])
def test_a_namesake_in_the_working_directory_is_not_the_topologys_file(tmp_path: Path, engine: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "components_of_the_script.py").write_text(MODULE)
    (own / "topology.py").write_text(TOPOLOGY)
    (tmp_path / "topology.py").write_text("raise ImportError('the wrong topology.py')")
    done = subprocess.run(
        [
            sys.executable, "-m", "stormspark", "run", "own/topology.py",
            "--engine", engine, "--until-idle", "1", "--json", "-",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["components"]["numbers"]["acked"] == 100
