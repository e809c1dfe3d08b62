"""What a topology can't run on is refused in one line that says what to do. None of this starts Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyspark
from pyspark.sql import SparkSession

from stormspark.doctor import Result, Status
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.spark import session
from stormspark.spark.defaults import spark_defaults
from stormspark.spark.session import (
    _said_at_its_end,
    check_session,
    local_session,
    require_java,
    require_spark_home,
    say_where_the_jvm_logs,
    without_effect,
)


def refusal(call, *arguments):
    with pytest.raises(UnsupportedEnvironmentError) as refused:
        call(*arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_no_java(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is none on the PATH: install a Java 17 runtime" in refusal(require_java)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert "there is none at JAVA_HOME=/nowhere: install" in refusal(require_java)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_292", "nonsense"])
def test_a_java_that_is_too_old(monkeypatch, tmp_path, version):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert f"Spark needs Java 17 or later, but {java} is" in refusal(require_java)


def test_too_few_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java would say that it can't load a file of its own."""
    monkeypatch.setattr("stormspark.spark.session.check_java", lambda: Result("Java", Status.OK, ""))
    monkeypatch.setattr("stormspark.doctor.host.resource.getrlimit", lambda which: (64, 64))
    told = refusal(lambda: local_session(1))
    assert (
        "may have 64 file descriptors, which is too few for a driver with a worker: raise the hard limit"
        in told
    )


def test_a_spark_home_that_is_none_or_another_release(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert "has no bin/spark-submit: unset it" in refusal(require_spark_home)
    for name, version in (("bin/spark-submit", ""), ("jars/spark-core_2.13-3.5.1.jar", "3.5.1")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch(0o755)
        if not version:
            require_spark_home()  # a build of one's own may have no such jar
    assert f"SPARK_HOME={tmp_path} is Spark 3.5.1, but this program has PySpark 4." in refusal(
        require_spark_home
    )
    monkeypatch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
    require_spark_home()


def test_what_spark_submit_says_before_its_jvm_runs(monkeypatch, tmp_path):
    log = tmp_path / "spark.log"
    log.write_text("Error: Missing application resource.\n\nUsage: spark-submit [options]\n")
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    assert _said_at_its_end(log, 0) == "Missing application resource."
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 1g")
    assert _said_at_its_end(log, 0) == "PYSPARK_SUBMIT_ARGS must end with pyspark-shell"
    taken = "Failed to bind to /0.0.0.0:4040: Service 'SparkUI' failed after 16 retries (starting from 4040)! Consider setting"
    log.write_text(
        f"ERROR SparkUI: Failed to bind SparkUI\njava.net.BindException: {taken}\n\tat a.B(C.java:1)\n"
    )
    assert _said_at_its_end(log, 0) == taken
    log.write_text(
        'Caused by: an.Earlier: one\nException in thread "main" java.lang.ExceptionInInitializerError\n\tat a.B(C.java:1)\n'
        "Caused by: java.net.SocketException: No network interfaces configured\n\tat a.B(C.java:1)\n\t... 9 more\n"
    )
    assert _said_at_its_end(log, 0) == "java.net.SocketException: No network interfaces configured"


def test_an_old_spark():
    class Old(SparkSession):
        version = "3.5.6"

        def __init__(self):
            """Starts nothing."""

    assert (
        refusal(check_session, Old())
        == "stormspark needs Spark 4.0 or later, but this session has Spark 3.5.6: see docs/versions.md"
    )


def test_a_driver_without_pandas(monkeypatch):
    """Spark needs it there for each stage in Python, and told so only when the first batch began."""

    class New(SparkSession):
        version = "4.2.0"

        def __init__(self):
            """Starts nothing."""

    monkeypatch.setattr(session, "first_missing", lambda modules: "pandas" if "pandas" in modules else None)
    assert (
        refusal(check_session, New())
        == "the driver of a topology on Spark needs pandas: pip install 'stormspark[pandas]'"
    )


def test_settings_that_come_too_late_for_a_session():
    has = {"spark.executor.memory": "2g", "spark.sql.shuffle.partitions": "8"}
    session: Any = SimpleNamespace(conf=has)
    asked = {"spark.jars": "a.jar", "spark.executor.memory": "4g", "spark.sql.shuffle.partitions": 8, "x": 1}
    assert without_effect(session, asked) == ["spark.executor.memory", "spark.jars"]


def test_settings_that_a_session_has_in_another_form_are_not_too_late():
    """The session of the first ``submit`` in a notebook has what the second one asks for, too."""
    has = {
        "spark.jars": "file:///work/a.jar,file:///home/b.jar",
        "spark.driver.extraClassPath": "/site-packages/ours.jar:c.jar",
        "spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=ours -Xss4m -Dx=1",
        "spark.ui.enabled": "true",
    }
    session: Any = SimpleNamespace(conf=has)
    asked = {
        "spark.jars": "a.jar,/home/b.jar",
        "spark.driver.extraClassPath": "c.jar",
        "spark.driver.extraJavaOptions": "-Xss4m -Dx=1",
        "spark.ui.enabled": True,
    }
    assert without_effect(session, asked) == []
    assert without_effect(session, {"spark.jars": "a.jar,c.jar"}) == ["spark.jars"]


def test_a_spark_connect_session():
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    assert "a Spark Connect session can't run a topology" in refusal(check_session, connect())


def test_something_else():
    assert "expected a SparkSession, got 'spark' of type str" in refusal(check_session, "spark")


def test_what_the_user_has_set_for_all_sessions(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in ("SPARK_EXECUTOR_MEMORY", "SPARK_EXECUTOR_CORES"):
        monkeypatch.delenv(name, raising=False)
    assert spark_defaults() == {}
    lines = "# a comment\n\nspark.ui.enabled true\n  spark.ui.port=4050\nspark.master: local\nspark.a  b = c \nspark.empty\n"
    (tmp_path / "spark-defaults.conf").write_text(lines)
    in_file = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "4050",
        "spark.master": "local",
        "spark.a": "b = c",
        "spark.empty": "",
    }
    assert spark_defaults() == in_file
    monkeypatch.setenv("SPARK_EXECUTOR_MEMORY", "3g")
    assert spark_defaults() == in_file | {"spark.executor.memory": "3g"}


def test_a_topology_whose_jvm_logs_elsewhere_says_where(monkeypatch, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    monkeypatch.setattr("stormspark.spark.session._jvm_logs", [])
    say_where_the_jvm_logs(str(first))  # the JVM is the user's own
    monkeypatch.setattr("stormspark.spark.session._jvm_logs", [first / "spark.log"])
    for folder in (first, second):
        say_where_the_jvm_logs(str(folder))
    assert not (first / "spark.log").exists()
    text = (second / "spark.log").read_text(encoding="utf-8")
    assert (
        text
        == f"Spark's JVM was started before this topology, and writes its output to {first / 'spark.log'}\n"
    )


def test_a_jvm_that_ends_while_it_starts_spark_is_told_in_one_sentence(monkeypatch, tmp_path):
    """Py4J finds nobody at the JVM's port then. What Spark has said is in its log."""

    def start(settings, log):
        log.path.write_text(
            "java.net.BindException: Failed to bind to /0.0.0.0:4040: Service 'SparkUI' failed after 16 retries"
        )
        raise ConnectionRefusedError(111, "Connection refused")  # fmt: skip

    ended = []
    monkeypatch.setattr(session, "require_java", lambda: None)
    monkeypatch.setattr(session, "starts_jvm", lambda: True)
    monkeypatch.setattr(session, "_start_jvm", start)
    monkeypatch.setattr(session, "_end_start", lambda: ended.append(True))
    # Another test may have left one.
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    conf = {"stormspark.log.dir": str(tmp_path)}
    with pytest.raises(UnsupportedEnvironmentError) as told:
        local_session(1, conf, master="local[2]")
    log = next(tmp_path.rglob("spark.log"))
    assert str(told.value) == (
        f"Spark did not start with the master 'local[2]' (Failed to bind to /0.0.0.0:4040: Service 'SparkUI' failed after 16 "
        f"retries); read {log} for more"
    )
    assert ended == [True]
