"""A session that Databricks or spark-submit gives to the program: it is taken, and it stays when something is wrong."""

from __future__ import annotations

import logging
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.cores import cores_of_master
from stormspark.errors import CheckpointError, UnsupportedEnvironmentError
from stormspark.plan import plan_topology
from stormspark.spark import topology as on_spark
from stormspark.spark.checkpoint_folder import CheckpointFolder, local_path
from stormspark.spark.session import check_session
from stormspark.spark.spark_state_table import is_for_spark
from stormspark.state_reading import state_table_of
from stormspark.testing import FixedTupleSpout
from stormspark.ui import Interrupts

RUNTIME, GATEWAY = "DATABRICKS_RUNTIME_VERSION", "PYSPARK_GATEWAY_PORT"


class Given:
    """A session that is too old to run anything, and notes whether it is stopped."""

    version = "4.1.1"
    stopped = False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    session = Given()
    builder = SimpleNamespace(getOrCreate=lambda: session)
    monkeypatch.setattr(
        on_spark, "SparkSession", SimpleNamespace(builder=builder, getActiveSession=lambda: None)
    )
    monkeypatch.setattr(on_spark, "require_classic", lambda found: found)
    monkeypatch.setattr(on_spark, "without_effect", lambda *_: [])
    monkeypatch.setattr(on_spark, "check_session", lambda found: refuse(found, session))
    monkeypatch.setattr(on_spark, "local_session", lambda *_, **__: pytest.fail("another Spark is started"))
    monkeypatch.setattr(on_spark, "SparkContext", SimpleNamespace(_active_spark_context=None))
    return session


def refuse(found: object, expected: object) -> Any:
    assert found is expected
    msg = "it is too old"
    raise UnsupportedEnvironmentError(msg)


def topology() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout([("a",)], Fields("word")))
    return builder.create_topology("given")


@pytest.mark.parametrize("variable", [RUNTIME, GATEWAY])
def test_a_session_that_somebody_else_has_made_is_taken_and_never_stopped(monkeypatch, given, variable):
    monkeypatch.setenv(variable, "19.3")
    with pytest.raises(UnsupportedEnvironmentError, match="it is too old"):
        on_spark.submit(topology())
    assert not given.stopped


def test_ctrl_c_still_stops_the_topology_where_pyspark_sets_a_handler_of_its_own(monkeypatch, given):
    """PySpark does so with its first session in a process. Its handler would end `stormspark run` in the middle of a batch."""

    def first_session():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return given

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setenv(GATEWAY, "4711")
    monkeypatch.setattr("stormspark.spark.topology.SparkSession.builder.getOrCreate", first_session)
    try:
        with Interrupts() as interrupts:
            with pytest.raises(UnsupportedEnvironmentError, match="it is too old"):
                on_spark.submit(topology())
            signal.raise_signal(signal.SIGINT)
        assert interrupts.count == 1
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_the_given_spark_starts_is_told_once(monkeypatch, given, caplog):
    """Py4J logs its traceback and raises it, too. In a driver of ``stormspark submit``, SIGTERM came with forty lines."""
    monkeypatch.setenv(GATEWAY, "4711")
    for name in (None, "py4j.clientserver"):
        monkeypatch.setattr(logging.getLogger(name), "filters", [])
    with pytest.raises(UnsupportedEnvironmentError, match="it is too old"):
        on_spark.submit(topology())
    logging.getLogger().error("KeyboardInterrupt while sending command.")
    logging.getLogger("py4j.clientserver").error("Exception occurred while shutting down connection")
    logging.getLogger().error("something else")
    assert caplog.messages == ["something else"]


@pytest.mark.parametrize("variable", [RUNTIME, GATEWAY])
def test_only_the_cluster_knows_its_cores(monkeypatch, variable):
    assert cores_of_master(None, {}) is not None
    monkeypatch.setenv(variable, "4711")
    assert cores_of_master(None, {}) is None
    assert cores_of_master("local[3]", {}) == 3


def test_a_session_of_spark_connect_on_databricks_says_which_compute_to_use(monkeypatch):
    monkeypatch.setenv(RUNTIME, "19.3")
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(UnsupportedEnvironmentError, match="use compute with dedicated access mode"):
        check_session(connect())


def test_a_session_of_spark_connect_is_refused_before_its_cores_are_counted(monkeypatch):
    """`stormspark run` asks the session for its cores, and one of Spark Connect knows none."""
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    monkeypatch.setattr(on_spark, "SparkSession", SimpleNamespace(getActiveSession=lambda: connect))
    with pytest.raises(UnsupportedEnvironmentError, match="a Spark Connect session can't run a topology"):
        on_spark.session_for(plan_topology(topology()), {}, None, None)


def test_checkpoints_on_databricks(monkeypatch):
    """Spark there reaches a volume by ``dbfs:``, and Java can't open files of a volume by their path."""
    session: Any = None
    assert local_path("/Volumes/main/default/flow") == "/Volumes/main/default/flow"
    monkeypatch.setenv(RUNTIME, "19.3")
    for location, url in (
        ("/Volumes/main/default/flow", "dbfs:/Volumes/main/default/flow"),
        ("/Volumes/main/default/flow/", "dbfs:/Volumes/main/default/flow"),
        ("file:/Volumes/main/default/flow", "dbfs:/Volumes/main/default/flow"),
        ("/dbfs/flow", "dbfs:/flow"),
        ("dbfs:/flow", "dbfs:/flow"),
        ("abfss://c@a.dfs.core.windows.net/flow", "abfss://c@a.dfs.core.windows.net/flow"),
    ):
        folder = CheckpointFolder(session, location)
        assert (str(folder), folder.local, folder.spark) == (url, None, f"{url}/spark")
    assert CheckpointFolder(session, "/local_disk0/flow").local == "/local_disk0/flow"
    assert state_table_of("/Volumes/main/default/flow") == "dbfs:/Volumes/main/default/flow/stormspark/state"
    for place in (
        "dbfs:/Volumes/main/default/flow",
        "abfss://c@a.dfs.core.windows.net/flow",
        "s3://bucket/flow",
    ):
        assert is_for_spark(None, f"{place}/stormspark/state"), "only Spark has the credentials"
    assert not is_for_spark(None, "/local_disk0/flow/stormspark/state")


def test_a_checkpoint_in_the_workspace_is_refused(monkeypatch):
    monkeypatch.setenv(RUNTIME, "19.3")
    with pytest.raises(
        CheckpointError, match="in the workspace, to which executors can't write: give a folder in a volume"
    ):
        local_path("/Workspace/Users/me/flow")
