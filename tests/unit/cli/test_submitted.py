"""The driver of `stormspark submit`: what it leaves on the terminal."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext

from stormspark.cli import submitted
from stormspark.cli.child import DRIVER_FILE
from stormspark.spark import jvm


@pytest.mark.parametrize(
    ("is_here", "level", "levels"),
    [(True, "WARN", ["OFF"]), (True, "INFO", []), (True, None, []), (False, "WARN", [])],
)
def test_spark_is_silent_after_the_last_line_of_a_topology(tmp_path, monkeypatch, is_here, level, levels):
    """Unless somebody wants to see what it logs, or the driver is on the cluster, where the log is a file."""
    set_levels: list[str] = []
    context = SimpleNamespace(
        getConf=lambda: {} if level is None else {"spark.log.level": level}, setLogLevel=set_levels.append
    )

    def run(arguments: list[str]) -> None:
        assert set_levels == []
        raise SystemExit(2)

    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    monkeypatch.setattr(submitted, "main", run)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(DRIVER_FILE, raising=False)
    if is_here:
        monkeypatch.setenv(DRIVER_FILE, str(tmp_path / "driver.pid"))
    with pytest.raises(SystemExit):
        submitted.run_submitted()
    assert set_levels == levels


def test_a_jvm_that_is_dead_hides_no_error(monkeypatch):
    def dead() -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(getConf=dead))
    jvm.end_warnings()
