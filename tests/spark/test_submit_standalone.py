"""`stormspark submit` to a standalone cluster of Spark: a project arrives at the executors and runs there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.standalone import Standalone, standalone

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

STEPS = """
    from stormspark import BasicBolt, Fields
    from stormspark.testing import FixedTupleSpout

    class Length(BasicBolt):
        def execute(self, tup, collector):
            collector.emit((len(tup["word"]),))
        def declare_output_fields(self, declarer):
            declarer.declare(Fields("length"))

    def words():
        return FixedTupleSpout([("eins",), ("zwölf",)], Fields("word"))
"""
FLOW = """
    from stormspark import TopologyBuilder
    from zähler.schritte import Length, words

    def build():
        builder = TopologyBuilder()
        builder.set_spout("words", words())
        builder.set_bolt("length", Length()).shuffle_grouping("words")
        return builder.create_topology("Wörter und Längen")
"""
FLUX = """
    name: "Wörter und Längen"
    spouts:
      - {id: words, className: stormspark.testing.TestWordSpout, constructorArgs: [4]}
    bolts:
      - {id: length, className: "zähler.schritte.Length"}
    streams:
      - {from: words, to: length, grouping: {type: SHUFFLE}}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Standalone]:
    """Its hosts have a Python with stormspark, and nothing of any project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        with standalone(tmp_path_factory.mktemp("cluster") / "spark") as cluster:
            cluster.add_worker("one", cores=2)
            yield cluster


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def stormspark_file(folder: Path) -> str:
    written(folder / "zähler" / "__init__.py", "")
    written(folder / "zähler" / "schritte.py", STEPS)
    written(folder / "flow.py", FLOW)
    return "flow.py:build"


def streamparse_project(folder: Path) -> str:
    shutil.copytree(EXAMPLES / "streamparse_project", folder, dirs_exist_ok=True)
    return "topologies/web_requests.py"


def heronpy_file(folder: Path) -> str:
    shutil.copy(EXAMPLES / "heronpy_topology.py", folder)
    return "heronpy_topology.py:temperatures"


def flux_file(folder: Path) -> str:
    stormspark_file(folder)
    written(folder / "topologie.yaml", FLUX)
    return "topologie.yaml"


@pytest.mark.parametrize("kind", [stormspark_file, streamparse_project, heronpy_file, flux_file])
def test_a_project_runs_on_executors_that_have_nothing_of_it(cluster, tmp_path, kind):
    folder = tmp_path / "ein Projekt, für alle"
    folder.mkdir()
    target = kind(folder)
    done = submitted(folder, target, cluster.url, tmp_path)
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    assert "spark-submit" in done.stdout and "acked" in said, said


def submitted(folder: Path, target: str, master: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable, "-m", "stormspark", "submit", target, "--master", master, "--workers", "1",
            "--until-idle", "2", "--executor-memory", "512m", "--total-executor-cores", "1",
            "--staging", str(folder.parent / "bühne eins"), "-c", f"stormspark.log.dir={tmp_path / 'logs'}",
        ],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
