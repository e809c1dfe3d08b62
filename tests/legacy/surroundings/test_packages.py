"""A topology's file in a package is a module of the package, for both programs, on both engines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
PROGRAMS = {
    "stormspark": [str(Path(sys.executable).with_name("stormspark"))],
    "python -m stormspark": [sys.executable, "-m", "stormspark"],
}

BOLTS = """
from stormspark import BasicBolt, Fields, Spout

class Numbers(Spout):
    def open(self, conf, context, collector):
        self.collector, self.n = collector, 0

    def next_tuple(self):
        if self.n < 10:
            self.n += 1
            self.collector.emit((self.n,), message_id=self.n)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))

class Sink(BasicBolt):
    def execute(self, tup, collector):
        pass
"""

TOPOLOGY = """
{imports}
from stormspark import TopologyBuilder

class Own(Sink):
    pass

def build():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("sink", Own()).shuffle_grouping("numbers")
    return builder.create_topology("packaged")
"""

#: All the ways in which files in packages import their neighbours. `queue.py` is beside the file, but must not hide Python's own.
IMPORTS = """
import queue
queue.Queue
from acme.flow.bolts import Numbers, Sink
from .bolts import Numbers, Sink
from ..flow.bolts import Numbers, Sink
from bolts import Numbers, Sink
from here import Numbers, Sink
"""
RELATIVE = "from ..flow.bolts import Numbers, Sink"


def project(folder: Path, imports: str, *, is_package: bool = True) -> Path:
    """Write the project, and return the topology's file."""
    package = folder / "project" / "acme" / "flow"
    package.mkdir(parents=True)
    if is_package:
        (package / "__init__.py").touch()
        (package.parent / "__init__.py").touch()
    (package / "bolts.py").write_text(BOLTS)
    (package / "queue.py").write_text("raise ImportError('the wrong queue')")
    (folder / "here.py").write_text(BOLTS)
    file = package / "topology.py"
    file.write_text(TOPOLOGY.format(imports=imports))
    return file


def run(program: str, file: Path, cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAMS[program], *options[:1], str(file), *options[1:]],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("program", list(PROGRAMS))
def test_both_programs_find_the_modules_of_a_package(program, tmp_path):
    done = run(program, project(tmp_path, IMPORTS), tmp_path, "explain", "--format", "text")
    assert done.returncode == 0, done.stderr
    assert "sink" in done.stdout


@pytest.mark.slow
def test_relative_imports_need_no_init_file(tmp_path):
    file = project(tmp_path, RELATIVE, is_package=False)
    done = run("stormspark", file, tmp_path, "explain", "--format", "text")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]
)
def test_workers_import_the_package_as_well(engine, tmp_path):
    file = project(tmp_path, RELATIVE)
    done = run("stormspark", file, tmp_path, "run", "--engine", engine, "--until-idle", "1", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["components"]["numbers"]["acked"] == 10


@pytest.mark.slow
def test_an_error_of_the_package_is_shown_with_its_line(tmp_path):
    file = project(tmp_path, RELATIVE)
    (file.parent / "__init__.py").write_text("import no_such_module\n")
    done = run("stormspark", file, tmp_path, "explain")
    assert done.returncode == 2
    assert f"{file.parent / '__init__.py'}:1" in done.stderr


@pytest.mark.slow
def test_a_package_whose_name_is_taken_is_named(tmp_path):
    file = project(tmp_path, RELATIVE)
    file.parent.parent.rename(file.parent.parent.with_name("click"))
    done = run("stormspark", tmp_path / "project" / "click" / "flow" / "topology.py", tmp_path, "explain")
    assert done.returncode == 2
    assert "'click' is taken by" in done.stderr
    assert "rename the folder click" in done.stderr
