"""Real separate executors, and applications started by spark-submit with their modules shipped by Spark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyspark
import pytest

from tests.spark.topologies import counted, expected_counts

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]

CLUSTER_DRIVER = """
import sys
from pathlib import Path
from stormspark.spark import local_session, submit
from tests.spark.topologies import FOLDER, word_count
from tests.waiting import wait_until_idle, worker_processes

folder = Path(sys.argv[1])
conf = {"stormspark.log.dir": str(folder / "logs"), "topology.workers": 2, FOLDER: str(folder)}
spark = local_session(2, conf | {"spark.executor.memory": "1024m"}, master="local-cluster[2,1,1024]")
running = submit(word_count(1000, "on-a-cluster"), spark, conf=conf)
wait_until_idle(running)
executors = {p.environ()["SPARK_EXECUTOR_DIRS"] for p in worker_processes("on-a-cluster").values()}
running.stop()
print("error", running.error)
print("executors", len(executors))
spark.stop()
"""


ARCHIVE_DRIVER = """
import importlib, shutil, sys
from stormspark.spark import local_session, submit
from tests.waiting import wait_until_idle

copy, archive, text, counts = sys.argv[1:]
sys.path.insert(0, copy)
topology = importlib.import_module("word_count").build()
shutil.rmtree(copy)  # the workers' only way to the module is the archive now
conf = {"topology.workers": 2, "wordcount.folder": text, "wordcount.output": counts}
cluster = {"spark.archives": archive + "#shipped", "spark.executorEnv.PYTHONPATH": "shipped"}
spark = local_session(2, conf | cluster | {"spark.executor.memory": "1024m"}, master="local-cluster[2,1,1024]")
running = submit(topology, spark, conf=conf)
wait_until_idle(running)
running.stop()
print("error", running.error)
spark.stop()
"""


def _run(command: list[str], folder: Path, timeout: float = 1000.0, **environment: str) -> str:
    """Run an application in a folder where nothing of ours can be imported by chance; its standard output."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.long  # in short it is in `test_network.py`, and `tests/faults/nothing_lost` kills executors
def test_a_cluster_of_two_separate_executors(tmp_path):
    said = _run([sys.executable, "-c", CLUSTER_DRIVER, str(tmp_path)], tmp_path, PYTHONPATH=str(ROOT))
    assert "error None" in said
    assert "executors 2" in said, "each worker lives beside an executor of its own"
    assert counted(tmp_path) == expected_counts(1000)


def _counts(folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for file in folder.glob("*.json"):
        counts.update(json.loads(file.read_text()))
    return counts


@pytest.mark.long
def test_modules_in_an_archive(tmp_path):
    text, copy = tmp_path / "text", tmp_path / "copy"
    text.mkdir()
    (text / "some.py").write_text("one two two\nthree three three\n" * 100)
    shutil.copytree(ROOT / "examples", copy)
    archive = shutil.make_archive(str(tmp_path / "examples"), "zip", copy)
    arguments = [str(copy), archive, str(text), str(tmp_path / "counts")]
    said = _run([sys.executable, "-c", ARCHIVE_DRIVER, *arguments], tmp_path, PYTHONPATH=str(ROOT))
    assert "error None" in said
    assert _counts(tmp_path / "counts") == {"one": 100, "two": 200, "three": 300}


def test_spark_submit_with_py_files(tmp_path):
    """The user's modules, and this package too, come as Spark ships them; nothing is on the workers' path
    otherwise.
    """
    text = tmp_path / "text"
    text.mkdir()
    (text / "some.py").write_text("one two two\nthree three three\n" * 100)
    modules = [
        shutil.make_archive(str(tmp_path / "stormspark"), "zip", ROOT, "stormspark"),
        shutil.make_archive(str(tmp_path / "examples"), "zip", ROOT / "examples"),
    ]
    spark_submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    said = _run(
        [
            spark_submit, "--master", "local[2]", "--conf", "spark.ui.enabled=false",
            "--py-files", ",".join(modules), str(ROOT / "jobs" / "word_count.py"),
            "--until-idle", "2", "topology.workers=2",
            f"wordcount.folder={text}", f"wordcount.output={tmp_path / 'counts'}",
        ],
        tmp_path,
        PYSPARK_PYTHON=sys.executable,
    )  # fmt: skip
    summary = json.loads(said.splitlines()[-1])
    assert summary["components"]["lines"]["acked"] == 200
    assert _counts(tmp_path / "counts") == {"one": 100, "two": 200, "three": 300}
