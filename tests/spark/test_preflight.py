"""Executors that lack something: one message that names the setting, exit code 2, and no second attempt."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.spark import SparkTopology
from tests.maven_jars import cache_folder
from tests.spark.unshared_folder import python_without

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Start = Callable[..., SparkTopology]

ROOT = Path(__file__).parents[2]
FLOW = """
    from stormspark import BasicBolt, Fields, Spout, TopologyBuilder

    class Numbers(Spout):
        def declare_output_fields(self, declarer):
            declarer.declare(Fields("n"))

        def open(self, conf, context, collector):
            self.collector, self.n = collector, 0

        def next_tuple(self):
            if self.n < 100:
                self.n += 1
                self.collector.emit([self.n], message_id=self.n)

    class Double(BasicBolt):
        def declare_output_fields(self, declarer):
            declarer.declare(Fields("n"))

        def execute(self, tup, collector):
            collector.emit([tup["n"] * 2])

    def build():
        builder = TopologyBuilder()
        builder.set_spout("numbers", Numbers())
        builder.set_bolt("double", Double(), 2).shuffle_grouping("numbers")
        return builder.create_topology("in-flight", {"topology.workers": 2})
"""
CLUSTER = ["--master", "local-cluster[2,1,1024]", "-c", "spark.executor.memory=1024m", "--until-idle", "2"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a topology's file, ``in_flight.py``."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "in_flight.py").write_text(textwrap.dedent(FLOW))
    return folder


def refused(running: SparkTopology) -> str:
    assert running.wait(300)
    assert isinstance(running.error, UnsupportedEnvironmentError), running.error
    assert running.statistics().batches == 0
    return str(running.error)


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stormspark", "run", *map(str, arguments)]
    inherited = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    return subprocess.run(
        command,
        env=inherited | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )


def test_executors_without_python_or_the_users_module(
    spark: SparkSession, start: Start, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other in the same session, because the session is what takes long."""
    monkeypatch.syspath_prepend(str(project))
    topology = importlib.import_module("in_flight").build()
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    assert "can't run Python as /nowhere/python3 (No such file or directory): set PYSPARK_PYTHON" in refused(
        start(topology)
    )
    python = python_without(project, project.parent / "python")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    assert (
        f"does not find 'in_flight', which the topology's components come from: ship it, --py-files {project}/in_flight.py"
        in (refused(start(topology)))
    )


@pytest.mark.long
def test_modules_are_shipped_to_a_cluster_that_lacks_them(project: Path, tmp_path: Path) -> None:
    """``--py-files`` is what the message asks for. Without it the exit code is 2."""
    shipped = shutil.copy(project / "in_flight.py", tmp_path / "copy.py")
    python = python_without(project, tmp_path / "python")
    done = run(project / "in_flight.py", *CLUSTER, PYSPARK_PYTHON=python)
    assert done.returncode == 2, done.stderr
    assert "--py-files" in done.stderr.splitlines()[-1]
    assert "attempt 1" not in done.stderr
    archive = tmp_path / "modules"
    archive.mkdir()
    shutil.copy(shipped, archive / "in_flight.py")
    modules = shutil.make_archive(str(tmp_path / "modules"), "zip", archive)
    done = run(project / "in_flight.py", *CLUSTER, "--py-files", modules, PYSPARK_PYTHON=python)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_a_port_of_the_driver_that_executors_do_not_reach(project: Path, tmp_path: Path) -> None:
    """Spark itself uses socket files on this host; only stormspark needs the port."""
    temporary = tempfile.mkdtemp(prefix="port-", dir="/var/tmp")  # short enough for socket files
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nexec unshare -m -n sh -c \'mount -t tmpfs none {temporary} && exec "$@"\' sh {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    if subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode:
        os.rmdir(temporary)
        pytest.skip("no namespaces here")
    addresses = ["-c", "spark.driver.host=127.0.0.2", "-c", "spark.driver.bindAddress=0.0.0.0"]
    logs = ["-c", f"stormspark.log.dir={tmp_path / 'logs'}"]
    try:
        done = run(
            project / "in_flight.py",
            *CLUSTER,
            *addresses,
            *logs,
            PYSPARK_PYTHON=str(python),
            TMPDIR=temporary,
        )
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    assert done.returncode == 2, done.stderr
    assert "the driver can't be reached from host " in done.stderr.splitlines()[-1]
    assert (
        "Network is unreachable. Let this port through (stormspark.nimbus.port"
        in done.stderr.splitlines()[-1]
    )


@pytest.mark.long
def test_delta_is_brought_where_a_spout_reads_it_and_fetched_once(tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    from tests.spark_jars import connector_jars

    connector_jars()  # so that Maven has put Delta into the folder that is the repository here
    write_deltalake(str(tmp_path / "table"), pa.table({"n": list(range(100))}))
    file = tmp_path / "reads_delta.py"
    file.write_text(
        "from stormspark import TopologyBuilder\nfrom stormspark.connectors import DeltaSpout\n"
        "from stormspark.testing import TestWordCounter\n"
        "def build():\n    builder = TopologyBuilder()\n"
        f"    builder.set_spout('numbers', DeltaSpout({str(tmp_path / 'table')!r}, ['n']))\n"
        "    builder.set_bolt('count', TestWordCounter()).shuffle_grouping('numbers')\n"
        "    return builder.create_topology('reads-delta', {'topology.workers': 1})\n"
    )
    resolved = []
    for life in ("first", "second"):
        log = tmp_path / life
        done = run(
            file, "--trigger", "available-now", "--repositories", (cache_folder() / "maven").as_uri(),
            "-c", f"spark.jars.ivy={tmp_path / 'ivy'}", "-c", f"stormspark.log.dir={log}", "--json", log.with_suffix(".json"),
            XDG_CACHE_HOME=str(tmp_path / "cache"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        resolved.append(":: resolving dependencies ::" in (log / "spark.log").read_text())
        assert '"acked": 100' in log.with_suffix(".json").read_text()
    assert resolved == [True, False]
