"""Spark's JVM for tests: it lives for a minute, so it compiles fast rather than well, and finds its classes parsed.

    python -m tests.quick_jvm     writes the archives of classes; `make test` does it once

It saves half of the CPU of a test that starts Spark. An archive that does not fit Java or the class path is not used.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

__all__ = ["CONNECTORS", "PLAIN", "options"]

#: Archives, by class path: Spark's own with ours, and that with `tests.spark_jars.connector_conf`.
PLAIN, CONNECTORS = "plain", "connectors"
_ARCHIVES = Path(__file__).parents[1] / "build" / "classes"
#: Java keeps only 48 MB for code that it compiles fast. The JVM of a whole run needs more: it has the classes of all queries.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
#: ``-Xlog`` is the log of the JVM itself: it would say on standard output that an archive does not fit. An archive that is mapped
#: where it was written needs no relocation.
_UNMOVED = "-Xlog:disable -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"


def options(class_path: str) -> str:
    """For a driver with that class path, and for its executors, where they are processes of their own."""
    archive = _ARCHIVES / f"{class_path}.jsa"
    quick = f"{_QUICK} {_UNMOVED} -XX:SharedArchiveFile={archive}" if archive.exists() else _QUICK
    return f'{quick} "-Dspark.executor.extraJavaOptions={quick}"'


def _write(class_path: str) -> None:
    """Have a JVM run what topologies need of it; it writes the archive when it ends."""
    new, archive = _ARCHIVES / f"{class_path}.new", _ARCHIVES / f"{class_path}.jsa"
    archive.unlink(missing_ok=True)  # one that is read is not written
    run = [sys.executable, "-m", "tests.quick_jvm", class_path]
    subprocess.run(run, check=True, env=os.environ | {"SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={new}"})
    new.replace(archive)


def _run(conf: Mapping[str, str], folder: Path) -> None:
    from pyspark import SparkContext

    from stormspark import Fields, TopologyBuilder
    from stormspark.spark import local_session, submit
    from stormspark.testing import IdentityBolt, TestWordSpout

    spark = local_session(2, {**conf, "stormspark.log.dir": folder})
    if conf:
        spark.range(10).write.format("delta").save(f"{folder}/delta")
        spark.read.format("delta").load(f"{folder}/delta").collect()
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), 2)
    builder.set_bolt("end", IdentityBolt(Fields("word")), 2).fields_grouping("words", Fields("word"))
    running = submit(
        builder.create_topology("words", {"topology.workers": 1}), spark, checkpoint=folder / "checkpoint"
    )
    while running.statistics().batches < 3 and not running.wait(0.1):
        time.sleep(0.1)
    running.stop()
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()  # which ends it
    gateway.proc.wait()


def main(arguments: list[str]) -> None:
    """Without an argument both archives; with the name of one, what its JVM has to run."""
    from tests.spark_jars import connector_conf

    if arguments:
        with tempfile.TemporaryDirectory() as folder:
            _run(connector_conf() if arguments == [CONNECTORS] else {}, Path(folder))
        return
    _ARCHIVES.mkdir(parents=True, exist_ok=True)
    for class_path in (PLAIN, CONNECTORS):
        _write(class_path)


if __name__ == "__main__":
    main(sys.argv[1:])
