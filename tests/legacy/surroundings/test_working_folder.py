"""Components of a streamparse project find the project's files, wherever the command is called (I3)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from stormspark.cli.load import load_topology
from tests.legacy.streamparse.running import command

TOPOLOGY = """
import json
from streamparse import Grouping, ShellBolt, Topology
from components import Lines, Lookup

with open("topologies/parallelism.json") as file:
    PAR = json.load(file)

class Where(Topology):
    lines = Lines.spec()
    lookup = Lookup.spec(inputs=[lines], par=PAR["lookup"])
    child = ShellBolt.spec(command={python!r}, script="child.py", inputs=[lines], outputs=["line"])
"""

COMPONENTS = """
import os
import threading
from streamparse import Bolt, Spout


class Lines(Spout):
    outputs = ["line"]

    def initialize(self, conf, context):
        self.lines = [line.strip() for line in open("data/lines.txt")]

    def next_tuple(self):
        if self.lines:
            line = self.lines.pop()
            self.emit([line], tup_id=line)

class Lookup(Bolt):
    def initialize(self, conf, context):
        self.known = set(open("words.txt").read().split())

    def process(self, tup):
        print("known" if tup.values.line in self.known else "unknown", tup.values.line)
        thread = threading.Thread(target=print, args=("a thread got", tup.values.line))
        thread.start()
        thread.join()
        self.logger.info("cwd %s", os.path.basename(os.getcwd()))
"""

CHILD = """
import json, os, sys

def read():
    text = ""
    while (line := sys.stdin.readline()) != "end\\n":
        text += line
    return json.loads(text)

def send(message):
    print(json.dumps(message) + "\\nend", flush=True)

read()
send({"pid": os.getpid()})
open("words.txt").close()
while True:
    tup = read()
    if tup.get("stream") == "__heartbeat":
        send({"command": "sync"})
    elif isinstance(tup, dict) and "id" in tup:
        send({"command": "log", "msg": "child saw " + tup["tuple"][0], "level": 2})
        send({"command": "ack", "id": tup["id"]})
"""


@pytest.fixture
def project(tmp_path):
    """Return the topology's file of a project whose components open files of the project by relative paths."""
    folder = tmp_path / "project"
    (folder / "src" / "data").mkdir(parents=True)
    (folder / "topologies").mkdir()
    (folder / "config.json").write_text('{"envs": {}}')
    (folder / "topologies" / "parallelism.json").write_text('{"lookup": 1}')
    (folder / "src" / "words.txt").write_text("cow moon")
    (folder / "src" / "data" / "lines.txt").write_text("cow\ndog\n")
    (folder / "src" / "child.py").write_text(CHILD)
    (folder / "src" / "components.py").write_text(COMPONENTS)
    file = folder / "topologies" / "where.py"
    file.write_text(TOPOLOGY.format(python=sys.executable))
    return file


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_relative_paths_of_a_project_work_from_elsewhere(engine, project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command(
        "run", Path("project", "topologies", "where.py"), "--engine", engine, "--until-idle", 1, "--json", "figures.json",
        "-c", "stormspark.log.dir=logs", "--workers", 1,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(Path("figures.json").read_text())["components"]["lines"]["acked"] == 2
    log = Path("logs", "lookup-0.log").read_text()
    assert "stdout: known cow" in log
    assert "stdout: unknown dog" in log
    assert "stdout: a thread got cow" in log
    assert "pystorm.component.lookup: cwd src" in log
    child = Path("logs", "child-0.log").read_text()
    assert "child saw cow" in child
    assert not (project.parents[1] / "src" / "logs").exists()
    if engine == "local":
        assert "known cow\n" in done.stdout
        assert "lookup[0] INFO cwd src\n" in done.stderr
        assert "child[0] INFO child saw dog\n" in done.stderr


def test_loading_leaves_the_working_directory_as_it_was(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    topology = load_topology("project/topologies/where.py")
    for name in ("components", "where"):
        sys.modules.pop(name, None)
    assert topology.conf["stormspark.working.dir"] == str(project.parents[1] / "src")
    assert Path.cwd() == tmp_path


def test_a_file_of_no_project_stays_where_the_command_is_called(tmp_path, monkeypatch):
    folder = tmp_path / "somewhere" / "deep"
    folder.mkdir(parents=True)
    (folder / "alone.py").write_text(ALONE)
    (tmp_path / "words.txt").write_text("cow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    topology = load_topology("somewhere/deep/alone.py")
    sys.modules.pop("alone", None)
    assert "stormspark.working.dir" not in topology.conf


ALONE = """
from streamparse import Spout, Topology

class Words(Spout):
    outputs = ["word"]
    with open("words.txt") as file:
        words = file.read().split()

class Alone(Topology):
    words = Words.spec()
"""
