"""Which topologies need Delta's jars, what is added to a session's configuration, and where the jars come from later."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from stormspark import TopologyBuilder
from stormspark.api import SourceSpout
from stormspark.config import DELTA_PACKAGE
from stormspark.connectors import DataFrameSpout, DeltaBolt, DeltaSpout
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.spark import delta_jars
from stormspark.spark.delta_jars import (
    conf_of_session,
    known_jars,
    remember_jars,
    who_needs_delta,
    with_delta,
)
from tests.no_home import without_home

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"


class OwnSource(SourceSpout):
    """Reads Delta by its own ``stream``."""

    def stream(self, spark: Any) -> Any:
        return spark.readStream.load("/data", format="delta")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def planned(spout: SourceSpout, **conf: Any) -> PhysicalPlan:
    builder = TopologyBuilder()
    builder.set_spout("rows", spout)
    builder.set_bolt("table", DeltaBolt("/out")).shuffle_grouping("rows")
    return plan_topology(
        builder.create_topology("t", {key.replace("_", "."): value for key, value in conf.items()})
    )


def rate() -> SourceSpout:
    return DataFrameSpout(lambda spark: spark.readStream.format("rate").load().alias("delta"), ["n"])


@pytest.mark.parametrize(
    "spout",
    [
        DeltaSpout("/data", ["n"]),
        DataFrameSpout(lambda spark: spark.readStream.format("delta").load("/data"), ["n"]),
        OwnSource(["n"]),
    ],
)
def test_a_source_of_delta_needs_the_jars(spout: SourceSpout) -> None:
    assert "'rows'" in str(who_needs_delta(planned(spout), None))


def test_other_sources_and_delta_bolts_need_none() -> None:
    assert who_needs_delta(planned(rate()), None) is None


def test_a_state_table_that_spark_writes_needs_them() -> None:
    exact = planned(rate(), stormspark_exactly_once=True)
    assert who_needs_delta(exact, "/checkpoint") is None
    assert "stormspark.state.table" in str(who_needs_delta(exact, "hdfs://name/checkpoint"))
    by_spark = {"stormspark.state.table": "spark"}
    builder = TopologyBuilder()
    builder.set_spout("rows", rate())
    plan = plan_topology(builder.create_topology("t", {"stormspark.exactly.once": True, **by_spark}))
    assert who_needs_delta(plan, None)


def test_settings_are_added_to_those_of_the_user() -> None:
    conf = with_delta({"spark.jars.packages": "g:a:1", "spark.sql.extensions": "a.B", "spark.task.cpus": 1})
    assert conf["spark.jars.packages"] == f"g:a:1,{DELTA_PACKAGE}"
    assert conf["spark.sql.extensions"] == f"a.B,{EXTENSION}"
    assert conf["spark.task.cpus"] == 1
    assert conf["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    assert with_delta({"spark.sql.catalog.spark_catalog": "own"})["spark.sql.catalog.spark_catalog"] == "own"
    assert with_delta(conf) == conf


@pytest.mark.parametrize("key", ["spark.jars", "spark.driver.extraClassPath", "spark.jars.packages"])
def test_jars_that_the_user_brings_are_not_fetched(key: str) -> None:
    conf = with_delta({key: "/lib/delta-spark_4.2_2.13-4.4.0.jar"})
    assert conf[key] == "/lib/delta-spark_4.2_2.13-4.4.0.jar"
    assert conf.keys() - {key} == {"spark.sql.extensions", "spark.sql.catalog.spark_catalog"}


def test_fetched_jars_are_found_the_next_time(tmp_path: Path) -> None:
    names = (
        "io.delta_delta-spark_4.2_2.13-4.4.0.jar",
        "io.unitycatalog_unitycatalog-client-0.6.0.jar",
        "g_a-1.jar",
    )
    jars = [tmp_path / name for name in names]
    for jar in jars:
        zipfile.ZipFile(jar, "w").close()
    assert known_jars() == []
    remember_jars(with_delta({"spark.jars": str(jars[2])}), ",".join(f"file://{jar}" for jar in jars))
    assert known_jars() == [str(jar) for jar in jars[:2]]
    conf = with_delta({"spark.jars": "x.jar"})
    assert conf["spark.jars"] == f"x.jar,{jars[0]},{jars[1]}"
    assert "spark.jars.packages" not in conf
    assert with_delta({"spark.jars.packages": "g:a:1"})["spark.jars.packages"] == f"g:a:1,{DELTA_PACKAGE}"
    jars[0].write_bytes(b"PK")  # a full disk, or a copy that was interrupted
    assert known_jars() == []
    jars[1].unlink()
    assert known_jars() == []


def test_a_user_without_a_home_fetches_them_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may run as a user that has neither a name nor HOME."""
    without_home(monkeypatch)
    monkeypatch.chdir(tmp_path)
    jar = tmp_path / "io.delta_delta-spark_4.2_2.13-4.4.0.jar"
    zipfile.ZipFile(jar, "w").close()
    remember_jars(with_delta({}), f"file://{jar}")
    assert known_jars() == [] and list(tmp_path.iterdir()) == [jar]


def test_what_the_user_asks_for_is_not_excluded_with_deltas_dependencies() -> None:
    conf = with_delta(
        {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.5.0", "spark.jars.excludes": "a:b"}
    )
    excluded = conf["spark.jars.excludes"].split(",")
    assert "org.apache.hadoop:*" not in excluded
    assert {"a:b", "org.slf4j:*"} <= set(excluded)


def test_other_packages_are_not_taken_for_deltas(tmp_path: Path) -> None:
    remember_jars({"spark.jars.packages": "g:a:1"}, str(tmp_path / "g_a-1.jar"))
    remember_jars({"spark.jars.packages": DELTA_PACKAGE}, "")
    assert known_jars() == []


def test_a_jvm_that_runs_gets_no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = {"spark.task.cpus": "1"}
    monkeypatch.setattr(delta_jars, "starts_jvm", lambda: False)
    assert conf_of_session(planned(DeltaSpout("/data", ["n"])), conf, None) is conf
    monkeypatch.setattr(delta_jars, "starts_jvm", lambda: True)
    assert conf_of_session(planned(rate()), conf, None) is conf
    needed = conf_of_session(planned(DeltaSpout("/data", ["n"])), conf, None)
    assert EXTENSION in needed["spark.sql.extensions"]
