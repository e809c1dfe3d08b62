"""`stormspark.doctor`: what keeps a topology from running is found, and each result says what to do."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark import doctor
from stormspark.cli import main
from stormspark.doctor import Result, Status

ROOT = Path(__file__).parents[3]


def a_java(folder: Path, says: str, ends_with: int = 0) -> Path:
    """Make a program that speaks as ``java -version`` does, and return its JAVA_HOME."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {ends_with}\n")
    java.chmod(0o755)
    return folder


def a_spark(folder: Path, *jars: str) -> Path:
    """Make the folder of a Spark with these jars, and return it."""
    for name in ("bin/spark-submit", *(f"jars/{jar}" for jar in jars)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch(0o755)
    return folder


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ('openjdk version "11.0.2" 2019-01-15', Status.FAILED),
        ('java version "1.8.0_292"', Status.FAILED),
        ('openjdk version "17.0.9" 2023-10-17', Status.OK),
        ('openjdk version "21" 2023-09-19', Status.OK),
        ("Error: could not find libjava.so", Status.FAILED),
    ],
)
def test_java(tmp_path: Path, says: str, status: Status) -> None:
    """An old one, new ones, and one that is broken."""
    result = doctor.check_java({"JAVA_HOME": str(a_java(tmp_path, says))})
    assert result.status is status
    assert bool(result.advice) is (status is Status.FAILED)


def test_there_is_no_java_or_one_for_another_processor(tmp_path: Path) -> None:
    """Also if JAVA_HOME is wrong, and another Java is on the PATH."""
    assert "none on the PATH" in doctor.check_java({"PATH": str(tmp_path)}).found
    java = a_java(tmp_path / "other", "") / "bin" / "java"
    java.write_bytes(b"\x7fELF" + bytes(60))
    java.chmod(0o755)
    result = doctor.check_java({"JAVA_HOME": str(tmp_path / "other")})
    assert result.status is Status.FAILED and "can't run (Exec format error)" in result.found


@pytest.mark.parametrize(
    ("jar", "status"),
    [
        ("spark-core_2.13-4.2.0.jar", Status.OK),
        ("spark-core_2.13-4.2.1.jar", Status.OK),
        ("spark-core_2.12-3.5.1.jar", Status.FAILED),
        ("spark-core_2.13-4.1.4.jar", Status.FAILED),
    ],
)
def test_two_sparks(tmp_path: Path, jar: str, status: Status) -> None:
    """SPARK_HOME against PySpark, and without it the spark-submit on the PATH, which only warns."""
    home = a_spark(tmp_path / "spark", jar)
    result = doctor.check_spark_home("4.2.0", {"SPARK_HOME": str(home)})
    assert result.status is status
    on_path = doctor.check_spark_home("4.2.0", {"PATH": str(home / "bin")})
    assert on_path.status is (Status.OK if status is Status.OK else Status.WARNING)
    if status is Status.FAILED:
        assert "but this program has PySpark 4.2.0" in result.found and result.advice.startswith("unset it")


@pytest.mark.parametrize(
    ("jars", "wrong"),
    [
        ((), None),
        (("delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar"), None),
        (("io.delta_delta-spark_4.2_2.13-4.4.0.jar", "io.delta_delta-storage-4.4.0.jar"), None),
        (("spark-sql-kafka-0-10_2.13-4.2.0.jar",), None),
        (("delta-spark_4.1_2.13-4.1.0.jar", "delta-storage-4.1.0.jar"), "is for Spark 4.1"),
        (("delta-spark_2.13-4.0.0.jar", "delta-storage-4.0.0.jar"), "is for Spark 4.0"),
        (("delta-spark_4.2_2.12-4.4.0.jar", "delta-storage-4.4.0.jar"), "is for Scala 2.12, and not 2.13"),
        (("delta-spark_4.2_2.13-4.4.0.jar",), "delta-storage-*.jar is missing"),
        (("spark-sql-kafka-0-10_2.12-3.5.1.jar",), "is for Spark 3.5"),
    ],
)
def test_jars(tmp_path: Path, jars: tuple[str, ...], wrong: str | None) -> None:
    """Those of Delta and Kafka in the folder of a Spark 4.2."""
    result = doctor.check_jars(a_spark(tmp_path, "spark-core_2.13-4.2.0.jar", *jars))
    assert (result.status is Status.FAILED) is (wrong is not None)
    assert wrong is None or (wrong in result.found and result.advice)


def test_packages_that_are_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """And those of an older delta-spark beside a newer PySpark."""
    versions = {"numpy": "1.26.4", "pandas": None, "rich": "13.7.0"}
    monkeypatch.setattr("stormspark.doctor.python.version_of", versions.get)
    assert doctor.check_packages(("numpy", "pandas", "rich")) == Result(
        "packages",
        Status.FAILED,
        "too old: numpy 1.26.4 (at least 2.1 is needed)",
        "pip install --upgrade 'stormspark[all]'",
    )


def test_delta_for_another_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package of Delta says which PySpark it is for."""
    monkeypatch.setattr(
        "stormspark.doctor.spark.metadata.requires",
        lambda name: ["pyspark<4.1,>=4.0.1", "importlib_metadata"],
    )
    result = doctor.check_spark()
    assert result.status is Status.WARNING and "is for another one (pyspark<4.1,>=4.0.1)" in result.found
    monkeypatch.setattr("stormspark.doctor.spark.metadata.requires", lambda name: ["pyspark<5,>=4.0"])
    assert doctor.check_spark().status is Status.OK


def test_there_is_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local engine needs none. A Spark in SPARK_HOME may have the PySpark that is missing."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    result = doctor.check_spark()
    assert result.status is Status.FAILED
    assert str(result).startswith(
        "the Spark engine needs pyspark: pip install 'stormspark[spark]', or let this Python see"
    )
    assert "/opt/spark/python" in result.advice
    assert doctor.check_spark(is_needed=False).status is Status.NOTE


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        ((1024, resource.RLIM_INFINITY), Status.OK),
        ((1024, 1_048_576), Status.OK),
        ((1024, 1024), Status.WARNING),
        ((64, 64), Status.FAILED),
    ],
)
def test_descriptors(limits: tuple[int, int], status: Status) -> None:
    """The hard limit counts."""
    assert doctor.check_descriptors(limits).status is status


def test_folders_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that is not there, a checkpoint below a file, a TMPDIR that is gone, and one with a long name."""
    assert doctor.check_home({"HOME": str(tmp_path / "nobody")}).status is Status.WARNING
    (tmp_path / "file").touch()
    told = doctor.check_checkpoint(str(tmp_path / "file" / "flow"))
    assert told is not None and told.status is Status.FAILED and "is a file" in told.found
    assert doctor.check_checkpoint("s3://bucket/flow") is None
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert doctor.check_temporary().status is Status.WARNING
    long = tmp_path / ("x" * 60)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert "is a long name" in doctor.check_temporary().found


def told(*options: str, environment: Mapping[str, str] | None = None) -> dict[str, dict[str, str]]:
    """Run ``stormspark doctor --json`` here, and return the results by the names of the checks."""
    done = CliRunner().invoke(main, ["doctor", "--json", *options], env=environment)
    results = json.loads(done.output)
    assert done.exit_code == int(any(one["status"] == "failed" for one in results))
    return {one["check"]: one for one in results}


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a Java 11 it ends with 1, and the local engine does without Java."""
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path, 'openjdk version "11.0.2"')))
    assert told("--engine", "spark")["Java"]["status"] == "failed"
    assert "Java" not in told("--engine", "local", "--checkpoint", str(tmp_path))
    shown = CliRunner().invoke(main, ["doctor"])
    assert shown.exit_code == 1
    assert "FAILED  Java" in shown.output and "-> install a Java 17 runtime" in shown.output.replace(
        "\n", " "
    ).replace("  ", " ")
    assert "1 of " in shown.output
    refused = CliRunner().invoke(main, ["doctor", "--engine", "local", "--master", "yarn"])
    assert refused.exit_code == 2 and "--master needs --engine spark" in refused.output


def in_own_mounts(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell in mounts of its own, with the folder as $0 and this Python as $1."""
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("mounts of one's own are not allowed here")
    return subprocess.run(
        ["unshare", "-m", "sh", "-ec", script, str(folder), sys.executable],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


_DOCTOR = '"$1" -m stormspark doctor --engine local --json'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prepare", "check", "words"),
    [
        (
            'mount -t tmpfs -o size=64k none "$0"; dd if=/dev/zero of="$0"/all bs=64k count=1 2>/dev/null; TMPDIR="$0"',
            None,
            "",
        ),
        ('mount -t tmpfs -o size=1m none "$0"; TMPDIR="$0"', "disk", "1 MB free"),
        ('mount -t tmpfs -o size=1m,nr_inodes=20000 none "$0"; TMPDIR="$0"', "disk", "MB free"),
    ],
    ids=["full", "tiny", "tiny with files left"],
)
def test_a_disk_without_space(tmp_path: Path, prepare: str, check: str | None, words: str) -> None:
    """Python takes another temporary folder if nothing can be written to that of TMPDIR, and Java does not."""
    done = in_own_mounts(f"{prepare} {_DOCTOR}", tmp_path)
    results = {one["check"]: one for one in json.loads(done.stdout)}
    if check is None:
        assert results["temporary folder"]["status"] == "warning", results
        assert "so Python takes" in results["temporary folder"]["found"]
    else:
        assert done.returncode == 1
        assert results[check]["status"] == "failed" and words in results[check]["found"]


@pytest.mark.slow
def test_a_home_and_a_checkpoint_on_a_read_only_disk(tmp_path: Path) -> None:
    """Also for root, who may write everywhere else."""
    doctor_there = 'HOME="$0" "$1" -m stormspark doctor --checkpoint "$0"/flow --json'
    script = f'mount -t tmpfs none "$0"; mount -o remount,ro "$0"; {doctor_there}'
    done = in_own_mounts(script, tmp_path)
    results = {one["check"]: one for one in json.loads(done.stdout)}
    assert (
        "Read-only file system" in results["checkpoint"]["found"]
        and results["checkpoint"]["status"] == "failed"
    )
    assert "Read-only file system" in results["home"]["found"] and results["home"]["status"] == "warning"
    assert "spark.jars.ivy" in results["home"]["advice"]


@pytest.mark.slow
def test_a_host_without_its_loopback_interface(tmp_path: Path) -> None:
    """As in a new network namespace."""
    if subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True).returncode:
        pytest.skip("networks of one's own are not allowed here")
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-m", "stormspark", "doctor", "--engine", "local", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    results = {one["check"]: one for one in json.loads(done.stdout)}
    assert results["ports"]["status"] == "failed" and "ip link set lo up" in results["ports"]["advice"]
