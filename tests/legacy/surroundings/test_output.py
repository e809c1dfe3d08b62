"""Every front-end's ways to log and to print end in the task's file, and on the terminal unless ``-q`` is given."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.legacy.streamparse.running import command

_ROOT = Path(__file__).parents[3]

STREAMPARSE = """
from streamparse import Bolt, Grouping, Spout, Topology

class Words(Spout):
    outputs = ["word"]

    def initialize(self, conf, context):
        self.words = ["cow"]

    def next_tuple(self):
        if self.words:
            self.emit([self.words.pop()], tup_id=1)

class Says(Bolt):
    def process(self, tup):
        print("printed", *tup.values)
        self.log("log %s" % tup.values[0])
        self.log("warned %s" % tup.values[0], level="warn")
        self.logger.info("logger %s", tup.values[0])
        self.logger.debug("too quiet")

class Saying(Topology):
    words = Words.spec()
    says = Says.spec(inputs=[words])
"""
HERONPY = """
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.spout.spout import Spout
from heronpy.api.stream import Grouping
from heronpy.api.topology import Topology

class Words(Spout):
    outputs = ["word"]

    def initialize(self, config, context):
        self.words = ["cow"]

    def next_tuple(self):
        if self.words:
            self.emit([self.words.pop()], tup_id=1)

class Says(Bolt):
    def process(self, tup):
        print("printed", *tup.values)
        self.log("log %s" % tup.values[0])
        self.log("warned %s" % tup.values[0], level="warn")
        self.logger.info("logger %s", tup.values[0])

class Saying(Topology):
    words = Words.spec()
    says = Says.spec(inputs={words: Grouping.SHUFFLE})
"""
FLUX = """
name: saying
config: {topology.acker.executors: 0}
spouts:
- {id: words, className: stormspark.testing.TestWordSpout, constructorArgs: [1]}
bolts:
- {id: says, className: org.apache.storm.flux.wrappers.bolts.LogInfoBolt}
streams:
- {from: words, to: says, grouping: {type: SHUFFLE}}
"""
KINDS = {
    "streamparse": ("saying.py", STREAMPARSE, ["says[0] INFO log cow", "says[0] WARNING warned cow", "says[0] INFO logger cow"]),
    "heronpy": ("saying.py", HERONPY, ["says[0] INFO log cow", "says[0] WARNING warned cow", "says[0] INFO logger cow"]),
    "flux": ("saying.yaml", FLUX, ["says[0] INFO Tuple(words["]),
}  # fmt: skip


def write(folder, kind):
    name, text, shown = KINDS[kind]
    (folder / name).write_text(text)
    return folder / name, shown


def run(file, folder, *options):
    logs = ("-c", f"stormspark.log.dir={folder / 'logs'}")
    return command("run", file, "--engine", "local", "--until-idle", 0.5, *logs, *options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_what_components_say_is_in_their_files_and_on_the_terminal(kind, tmp_path):
    file, shown = write(tmp_path, kind)
    done = run(file, tmp_path)
    assert done.returncode == 0, done.stderr
    for line in shown:
        assert line in done.stderr
        assert re.sub(r"^says\[0\] \w+ ", "", line) in (tmp_path / "logs" / "says-0.log").read_text()
    if kind != "flux":
        assert done.stdout.startswith("printed cow\n")
        assert "stdout: printed cow" in (tmp_path / "logs" / "says-0.log").read_text()
    assert f"logs: {tmp_path / 'logs'}" in done.stderr


@pytest.mark.slow
def test_quiet_leaves_it_in_the_files(tmp_path):
    file, _ = write(tmp_path, "streamparse")
    done = run(file, tmp_path, "-q")
    assert done.returncode == 0, done.stderr
    assert "cow" not in done.stdout + done.stderr
    assert (tmp_path / "logs" / "says-0.log").read_text().count("cow") == 4


@pytest.mark.slow
def test_lines_stand_above_the_progress_line_of_a_terminal(tmp_path):
    file, shown = write(tmp_path, "streamparse")
    terminal, program = pty.openpty()
    running = subprocess.Popen(
        [
            sys.executable, "-m", "stormspark", "run", str(file), "--engine", "local", "--until-idle", "0.5",
            "-c", f"stormspark.log.dir={tmp_path / 'logs'}",
        ],
        stdin=subprocess.DEVNULL, stdout=program, stderr=program,
        env=os.environ | {"PYTHONPATH": str(_ROOT), "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(program)
    seen = b""
    while True:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the program has ended
            break
    os.close(terminal)
    assert running.wait() == 0
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\r", seen.decode()).replace("\r\n", "\n").split("\n")
    # Each line begins where the progress line was erased.
    ends = [line.rpartition("\r")[2] for line in lines]
    for line in ["printed cow", *shown]:
        assert ends.count(line) == 1
