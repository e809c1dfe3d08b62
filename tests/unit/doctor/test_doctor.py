"""`stormspark.doctor`: what keeps a topology from running is found, and each result says what to do."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark import doctor, private_files
from stormspark.cli import main
from stormspark.doctor import LEAST, LEAST_SPARK, Result, Status
from stormspark.doctor.python import BELOW
from stormspark.doctor.spark import DELTA_RANGE, SPARK_RANGE
from stormspark.extras import EXTRAS
from tests.no_home import without_home
from tests.own_mounts import require_mounts, require_network

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


def test_a_java_that_writes_in_another_encoding(tmp_path: Path) -> None:
    java = a_java(tmp_path, "") / "bin" / "java"
    java.write_bytes(
        b"#!/bin/sh\necho 'Picked up JAVA_TOOL_OPTIONS: -Dn=\xfc\nopenjdk version \"17.0.9\"' >&2\n"
    )
    assert doctor.check_java({"JAVA_HOME": str(tmp_path)}).status is Status.OK


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
        for advice in (result.advice, on_path.advice):  # no advice to get a PySpark that is too old
            assert ("pip install 'pyspark==4.1.4'" in advice) == ("4.1.4" in jar) and "3.5.1" not in advice


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
    if wrong is None:
        has_delta = any("delta-spark" in jar for jar in jars)
        assert result.status is (Status.OK if has_delta else Status.NOTE)
        assert has_delta or "has no jar of Delta" in result.found


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        (f'exec {sys.executable} "$@"', Status.OK, "(Python "),
        ("echo 2.7", Status.FAILED, "is Python 2.7, but this program runs Python 3."),
        (
            "echo 'libpython3.12.so.1.0: no such file' >&2; exit 127",
            Status.FAILED,
            "does not start (libpython3.12",
        ),
        ("exit 3", Status.FAILED, "does not start (exit code 3)"),
    ],
)
def test_the_python_of_executors(tmp_path: Path, script: str, status: Status, words: str) -> None:
    """That of PYSPARK_PYTHON. A relative path is one that an archive brings."""
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    for environment in (
        {"PYSPARK_PYTHON": str(python)},
        {"PYSPARK_PYTHON": "python3", "PATH": str(tmp_path)},
    ):
        result = doctor.check_executors_python(environment)
        assert result is not None and result.status is status and words in result.found
    assert doctor.check_executors_python({"PYSPARK_PYTHON": "./env/bin/python"}) is None
    assert doctor.check_executors_python({}) is None


def test_packages_that_are_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """The advice names them alone: anything else may be the cluster's own, and there for a reason."""
    versions = {"numpy": "1.26.4", "pandas": None, "rich": "13.7.0"}
    monkeypatch.setattr("stormspark.doctor.python.version_of", versions.get)
    assert doctor.check_packages(("numpy", "pandas", "rich")) == Result(
        "packages",
        Status.FAILED,
        "too old: numpy 1.26.4 (at least 2.1 is needed)",
        "pip install --upgrade 'numpy>=2.1'",
    )
    monkeypatch.setitem(sys.modules, "yaml", None)
    result = doctor.check_packages(("numpy", "pyyaml"))
    assert result.found.endswith("; missing: pyyaml")
    assert result.advice == "pip install --upgrade 'numpy>=2.1' 'pyyaml>=6.0'"


@pytest.mark.parametrize(
    ("name", "on_spark", "locally"),
    [
        ("pandas", Status.FAILED, Status.WARNING),
        ("deltalake", Status.FAILED, Status.WARNING),
        ("pyarrow", Status.FAILED, Status.WARNING),
        ("cloudpickle", Status.FAILED, Status.FAILED),
        ("redis", Status.WARNING, Status.WARNING),
    ],
)
def test_who_needs_a_package(
    monkeypatch: pytest.MonkeyPatch, name: str, on_spark: Status, locally: Status
) -> None:
    monkeypatch.setattr("stormspark.doctor.python.version_of", lambda _: "0.4")
    assert doctor.check_packages((name,)).status is on_spark
    assert doctor.check_packages((name,), on_spark=False).status is locally


def test_the_oldest_versions_are_those_of_the_package() -> None:
    """What pip would install, and what the checks ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name: asked
        for name, asked in project["optional-dependencies"].items()
        if name not in {"all", "bench", "dev"}
    }
    asked = [*project["dependencies"], *(one for of_one in extras.values() for one in of_one)]
    ranges = {one for one in asked if not one.startswith("stormspark[")}
    assert {SPARK_RANGE, DELTA_RANGE} <= ranges
    assert SPARK_RANGE.startswith(f"pyspark>={'.'.join(map(str, LEAST_SPARK))},")
    least = {(name, version) for name, version in re.findall(r"([\w-]+)>=([\d.]+)", " ".join(ranges))}
    assert least == {*LEAST.items(), *re.findall(r"([\w-]+)>=([\d.]+)", f"{SPARK_RANGE} {DELTA_RANGE}")}
    below = dict(re.findall(r"([\w-]+)>=[\d.]+,<([\d.]+)", " ".join(extras["spark"])))
    assert {name: bound for name, bound in below.items() if name in LEAST} == BELOW


def test_no_advice_replaces_a_pyspark_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra `spark` has a PySpark of its own. Without one, it is the right advice."""
    monkeypatch.setattr(
        "stormspark.doctor.python.first_missing",
        lambda modules: None if modules in (["pyspark"], ["py4j"]) else modules[0],
    )
    result = doctor.check_extras()
    assert "spark]" not in result.advice and result.advice and "not: arrow, " in result.found
    assert "installed: spark" in result.found
    monkeypatch.setattr(
        "stormspark.doctor.python.first_missing",
        lambda modules: modules[0] if EXTRAS.get(modules[0], "spark") == "spark" else None,
    )
    assert "pip install 'stormspark[spark]'" in doctor.check_extras().advice
    monkeypatch.setattr("stormspark.doctor.spark.version_of", lambda name: None)
    monkeypatch.setattr("stormspark.doctor.spark.metadata.requires", lambda name: ["pyspark<4.1,>=4.0.1"])
    advice = doctor.check_spark().advice
    assert advice.startswith("pip install --upgrade --no-deps delta-spark") and "pyspark" not in advice


@pytest.mark.parametrize(
    ("version", "status", "words"),
    [
        ("3.5.2", Status.FAILED, "needs Spark 4.0 or later, but PySpark is 3.5.2"),
        ("4.0.1", Status.OK, "PySpark 4.0.1"),
        ("4.1.0", Status.OK, "PySpark 4.1.0"),
        ("4.2.0.dev3", Status.OK, "PySpark 4.2.0.dev3"),
        ("4.2.7", Status.OK, "PySpark 4.2.7"),
        ("4.3.0", Status.NOTE, "newer than those that stormspark was tried with"),
        ("5.0", Status.NOTE, "newer than those that stormspark was tried with"),
        ("of an unknown version", Status.OK, "of an unknown version"),
    ],
)
def test_which_spark(monkeypatch: pytest.MonkeyPatch, version: str, status: Status, words: str) -> None:
    """A session of an older one is refused, so it is in the way."""
    monkeypatch.setattr("stormspark.doctor.spark.pyspark_found", lambda: (Path("/opt/pyspark"), version))
    monkeypatch.setattr("stormspark.doctor.spark.version_of", lambda name: None)
    monkeypatch.setattr("stormspark.doctor.spark._delta_for_another", lambda version: None)
    result = doctor.check_spark()
    assert result.status is status and words in result.found
    assert "stormspark[" not in result.advice


def test_an_old_pyspark_hides_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the folder of a cluster's old Spark were on PYTHONPATH. The new one is installed, so pip would do nothing."""
    monkeypatch.setattr("stormspark.doctor.spark.pyspark_found", lambda: (Path("/opt/old/pyspark"), "3.5.2"))
    monkeypatch.setattr("stormspark.doctor.spark.version_of", lambda name: "4.2.0")
    result = doctor.check_spark()
    assert result.status is Status.FAILED and "hides the installed PySpark 4.2.0" in result.found
    assert result.advice == "take that folder off PYTHONPATH"
    monkeypatch.setattr("stormspark.doctor.spark.version_of", lambda name: "3.5.1")
    assert "pip install --upgrade" in doctor.check_spark().advice


def test_a_pyspark_without_its_py4j(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As if SPARK_HOME/python were on PYTHONPATH, and not the archive beside it."""
    monkeypatch.setitem(sys.modules, "py4j", None)
    monkeypatch.setattr("stormspark.doctor.spark.pyspark_found", lambda: (tmp_path / "pyspark", "4.2.0"))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "py4j-0.10.9.9-src.zip").touch()
    result = doctor.check_spark()
    assert result.status is Status.FAILED
    assert result.advice == f"put {tmp_path}/lib/py4j-0.10.9.9-src.zip on PYTHONPATH"


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


def test_there_is_no_pyspark_and_an_old_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The PySpark in such a SPARK_HOME would be the next mistake."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    home = a_spark(tmp_path / "spark", "spark-core_2.12-3.5.1.jar")
    monkeypatch.setenv("SPARK_HOME", str(home))
    advice = doctor.check_spark().advice
    assert "is Spark 3.5.1, which is too old" in advice and "PYTHONPATH" not in advice


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
        ((256, 256), Status.FAILED),
    ],
)
def test_descriptors(limits: tuple[int, int], status: Status) -> None:
    """The hard limit counts."""
    assert doctor.check_descriptors(limits).status is status


def test_folders_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that is not there, a checkpoint below a file, and a TMPDIR that is gone."""
    nobody = tmp_path / "nobody"
    assert "nobody is no folder" in doctor.check_home({"HOME": str(nobody)}, nobody).found
    (tmp_path / "file").touch()
    told = doctor.check_checkpoint(str(tmp_path / "file" / "flow"))
    assert told is not None and told.status is Status.FAILED and "is a file" in told.found
    for url in ("s3://bucket/flow", "dbfs:/Volumes/a/flow", "file:/flows/a", "hdfs:///a"):
        assert doctor.check_checkpoint(url) is None
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    told = doctor.check_temporary()
    assert told.status is Status.WARNING
    assert f"TMPDIR={tmp_path}/gone can't be written to (it is no folder), so /" in told.found


def test_a_temporary_folder_with_a_long_name_is_in_the_way_only_if_sockets_can_go_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers and Spark put their sockets into ``/tmp`` then. What is limited is the number of bytes."""
    long, short = tmp_path / ("ü" * 25), tmp_path / "short"
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(private_files, "SHORT_FOLDER", str(short))
    told = doctor.check_temporary()
    assert told.status is Status.FAILED
    assert f"and {short}, where they would go, can't be written to (No such file or directory)" in told.found
    assert told.advice == "set TMPDIR to a folder with a name of at most 50 characters"
    short.mkdir()
    told = doctor.check_temporary()
    assert told.status is Status.OK
    assert told.found == f"{long} (for sockets {short}, because that name is long)"


def test_temporary_files_go_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if /tmp were full. Python takes the next folder that it can write to, and in the end the one in which it was called."""
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr("stormspark.doctor.host._USUAL_TEMPORARY", str(tmp_path / "gone"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert (
        f"gone can't be written to (it is no folder), so {tmp_path} is taken"
        in doctor.check_temporary().found
    )
    monkeypatch.chdir(tmp_path)
    assert f"so {tmp_path}, which is the working directory, is taken" in doctor.check_temporary().found


@contextmanager
def nobody_may_enter(folder: Path) -> Iterator[Path]:
    """Make a folder that this user may not enter, and be nobody for a while if this user is root."""
    folder.mkdir()
    folder.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if user == 0:
            os.seteuid(0)
        folder.chmod(0o700)


def test_folders_of_somebody_else(tmp_path: Path) -> None:
    """Nobody can look whether something is there, and this is what is wrong."""
    with nobody_may_enter(tmp_path / "root") as folder:
        told = doctor.check_checkpoint(str(folder / "flows" / "a"))
        home = doctor.check_home({"HOME": str(folder / "me")}, folder / "me")
    assert told is not None and told.status is Status.FAILED and told.advice
    assert "can't be written to (Permission denied)" in told.found
    assert home.status is Status.WARNING and "can't be written to (Permission denied)" in home.found


def test_a_check_that_fails_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """All other results are told."""

    def breaks() -> Result:
        raise ZeroDivisionError

    monkeypatch.setattr("stormspark.doctor.check_disk", breaks)
    results = told("--engine", "local")
    assert results["disk"]["status"] == "failed"
    assert "could not be checked (ZeroDivisionError" in results["disk"]["found"]
    assert {"Python", "ports"} <= set(results)


def test_spark_does_not_start_if_the_checkpoint_can_not_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is told once, and not a second time by Spark. An error of Spark itself is a result."""
    started = []

    def starts(*_: object) -> Iterator[Result]:
        started.append(1)
        yield Result("executors", Status.OK, "all well")

    monkeypatch.setattr("stormspark.cli.doctor._of_executors", starts)
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "java", 'openjdk version "17.0.2"')))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    (tmp_path / "file").touch()
    results = told("--master", "local[2]", "--checkpoint", str(tmp_path / "file" / "flow"))
    assert not started and results["checkpoint"]["status"] == "failed"
    assert "Spark was not started" in results["executors"]["found"]
    assert "(checkpoint)" in results["executors"]["found"]
    assert told("--master", "local[2]", "--checkpoint", str(tmp_path))["executors"]["status"] == "ok"


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
    words = " ".join(shown.output.split())
    assert "FAILED Java" in words and "-> install a Java 17 runtime" in words
    assert re.search(r"^[1-9]\d* of \d+ checks failed", shown.output, re.MULTILINE)
    refused = CliRunner().invoke(main, ["doctor", "--engine", "local", "--master", "yarn"])
    assert refused.exit_code == 2 and "--master needs --engine spark" in refused.output


def in_own_mounts(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell in mounts of its own, with the folder as $0 and this Python as $1."""
    require_mounts()
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
    """Python takes another temporary folder if nothing can be written to that of TMPDIR."""
    done = in_own_mounts(f"{prepare} {_DOCTOR}", tmp_path)
    results = {one["check"]: one for one in json.loads(done.stdout)}
    if check is None:
        assert results["temporary folder"]["status"] == "warning", results
        assert "(No space left on device), so " in results["temporary folder"]["found"]
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
    assert "XDG_CACHE_HOME" in results["home"]["advice"]


@pytest.mark.slow
def test_a_host_without_its_loopback_interface(tmp_path: Path) -> None:
    """As in a new network namespace."""
    require_network()
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-m", "stormspark", "doctor", "--engine", "local", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    results = {one["check"]: one for one in json.loads(done.stdout)}
    assert results["ports"]["status"] == "failed" and "ip link set lo up" in results["ports"]["advice"]


def test_a_host_whose_name_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark does not start there, unless it is told an address, as `local_session` does for a local master."""

    def unknown(name: str) -> str:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "gethostbyname", unknown)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    told = doctor.check_host_name()
    assert told.status is Status.WARNING and "Spark only starts with a local master" in told.found
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.7")
    assert doctor.check_host_name().status is Status.OK


def test_a_host_whose_name_is_too_long_for_one_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux allows 64 characters, and a part of a name in the network has at most 63."""
    monkeypatch.setattr(socket, "gethostname", lambda: "h" * 64)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    assert "has no address" in doctor.check_host_name().found
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.7")
    assert doctor.check_host_name().status is Status.OK


def test_java_takes_another_home_than_home(tmp_path: Path) -> None:
    """In containers HOME often names another folder than ``/etc/passwd``."""
    home, gone = tmp_path / "home", tmp_path / "gone"
    home.mkdir()
    told = doctor.check_home({"HOME": str(home)}, gone)
    assert told.found == (
        f"{gone} is no folder, so Spark can't keep the jars that it fetches (Java takes the home of /etc/passwd, and not "
        f"HOME={home})"
    )
    told = doctor.check_home({"HOME": str(gone)}, home)
    assert told.status is Status.WARNING and told.found.startswith(
        f"HOME={gone} is no folder, so nothing notes"
    )
    assert doctor.check_home({"HOME": str(home)}, home) == Result("home", Status.OK, str(home))


def test_a_user_without_a_name_is_told_that_spark_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    without_home(monkeypatch)
    told = doctor.check_home()
    assert told.status is Status.FAILED and "who has no name on this host" in told.found
    assert "/etc/passwd" in told.advice
