"""``make legacy`` over projects that were written for this test: one runs, one can't be loaded, one fails while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.legacy.processes import stormspark
from tools.legacy.projects import candidates, checkouts, copied

ROOT = Path(__file__).parents[3]
FLUX = """
name: {name}
spouts:
  - {{id: words, className: org.apache.storm.testing.TestWordSpout}}
bolts:
  - id: shout
    className: org.apache.storm.flux.wrappers.bolts.FluxShellBolt
    constructorArgs: [[python3, {script}], [word]]
streams:
  - {{from: words, to: shout, grouping: {{type: SHUFFLE}}}}
"""
SHOUT = """
import storm
class Shout(storm.BasicBolt):
    def process(self, tup):
        storm.emit([tup.values[0].upper()])
Shout().run()
"""
PETREL = {
    "create.py": "import parts\ndef create(builder):\n    builder.setSpout('numbers', parts.Numbers(), 1)\n",
    "parts.py": """
from petrel import storm
from petrel.emitter import Spout
class Numbers(Spout):
    def __init__(self):
        super(Numbers, self).__init__(script=__file__)
    def declareOutputFields(self):
        return ["number"]
    def nextTuple(self):
        storm.emit([1])
def run():
    Numbers().run()
""",
}
SPOUT = "from streamparse import Spout\nimport no_such_module\nclass Words(Spout):\n    outputs = ['word']\n"
TOPOLOGY = "from streamparse import Topology\nfrom spouts import Words\nclass Words2(Topology):\n    words = Words.spec()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Checkouts; the names of the first three say what becomes of them."""
    for name, text in {
        **{f"sends/numbers/{name}": text for name, text in PETREL.items()},
        "fails/topology.yaml": FLUX.format(name="fails", script="lost.py"),
        "refused/config.json": "{}",
        "refused/topologies/words.py": TOPOLOGY,
        "refused/src/spouts.py": SPOUT,
        "runs/.git/config": "",
        "runs/multilang/resources/shout.py": SHOUT,
        "runs/resources/topology.yaml": FLUX.format(name="runs", script="shout.py"),
        "runs/topologies/old.clj": '(python-bolt-spec options {"words" :shuffle} "bolts.Count" ["word"])',
    }.items():
        file = tmp_path / "checkouts" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "checkouts"


@pytest.mark.slow  # starts the command line for each step of each project
def test_each_topology_has_its_outcome(folder: Path) -> None:
    """A failure is one line, and the next project is tried all the same."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.legacy", folder, "--no-spark", "--seconds", "1", "--json", "-"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    trials = {(one["project"], one["kind"]): one for one in json.loads(done.stdout)}
    fails, refused, runs = (
        trials[key]
        for key in [("fails", "Flux, multilang"), ("refused", "streamparse"), ("runs", "Flux, multilang")]
    )
    assert (fails["loads"], fails["local"], fails["spark"]) == ("yes", "no", "-")
    assert "topology.yaml:6: python3 lost.py: the script 'lost.py' is in none of these" in fails["errors"][0]
    assert (refused["loads"], refused["local"]) == ("no", "-")
    assert "no_such_module" in refused["errors"][0]
    assert (runs["loads"], runs["local"], runs["errors"]) == ("yes", "yes", [])
    assert runs["tuples"]["shout"]["executed"] > 0
    assert trials["sends", "Petrel"]["tuples"]["numbers"]["emitted"] > 0
    assert "; no file in virtualenvs requires it" in refused["errors"][0]
    assert ("runs", "streamparse, Clojure") in trials
    assert sorted(one.name for one in (folder / "runs").iterdir()) == [
        ".git",
        "multilang",
        "resources",
        "topologies",
    ]


@pytest.mark.slow  # starts the command line
def test_a_process_is_ended_at_its_limit(folder: Path, tmp_path: Path) -> None:
    """Also if it is asked to run for longer."""
    copy = copied(checkouts(folder)[2], tmp_path)
    assert list((copy / ".git").iterdir()) == []
    flux = next(one for one in candidates(copy, tmp_path) if one.kind.startswith("Flux"))
    done = stormspark(["run", *flux.arguments, "--engine", "local"], tmp_path, 1.5)
    assert done.code is None
