"""What depends on the version of Spark, without Spark: names, hashes, and what is said of a version that is too old."""

from __future__ import annotations

import doctest
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from stormspark.config import delta_artifact
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.spark import versions
from stormspark.spark.versions import (
    bare_manager,
    checkpoint_managers,
    keep_ticking,
    keys_of_partitions,
    number_of_streams,
    release,
    require_delta,
    require_spark,
)


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(versions).failed == 0


@pytest.mark.parametrize("version", ["4.0.0", "4.0.5", "4.1.4", "4.2.1", "4.3.0", "4.0.0.dev1", "5.0.0"])
def test_versions_that_are_new_enough(version: str) -> None:
    require_spark(version)


@pytest.mark.parametrize("version", ["3.5.9", "3.5", "2.4.8", "unknown"])
def test_versions_that_are_too_old(version: str) -> None:
    with pytest.raises(
        UnsupportedEnvironmentError, match=f"needs Spark 4.0 or later, .* has Spark {version}: "
    ):
        require_spark(version)


def test_files_of_a_checkpoint_have_moved() -> None:
    assert release(bare_manager("4.1.0").rpartition(".")[0]) == (0, 0)
    assert bare_manager("4.1.0").replace("checkpointing.", "") == bare_manager("4.0.5")


def test_a_class_that_is_not_where_it_was_is_looked_for_where_it_is_now() -> None:
    """Runtimes of vendors may have it in either place, whatever their version is."""
    package: Any = SimpleNamespace(CheckpointFileManager="a package, says Py4J of what it does not find")
    package.checkpointing = SimpleNamespace(CheckpointFileManager="found")
    streaming = SimpleNamespace(streaming=package)
    jvm = SimpleNamespace(
        org=SimpleNamespace(
            apache=SimpleNamespace(spark=SimpleNamespace(sql=SimpleNamespace(execution=streaming)))
        )
    )
    assert checkpoint_managers(jvm) == "found"


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 64, 257])
def test_there_is_a_key_for_each_partition(partitions: int) -> None:
    """tests/spark/test_versions.py compares with Spark's own hash."""
    keys = keys_of_partitions(partitions)
    assert [versions._hash_of_int(key) % partitions for key in keys] == list(range(partitions))


def test_deltas_jar_is_named_after_spark_since_delta_4_1() -> None:
    assert delta_artifact("4.0.5", "4.0.1") == "io.delta:delta-spark_2.13:4.0.1"
    assert delta_artifact("4.0.5", "4.4.0") == "io.delta:delta-spark_4.0_2.13:4.4.0"
    assert delta_artifact("4.2.0", "4.4.0") == "io.delta:delta-spark_4.2_2.13:4.4.0"


def test_a_spark_without_a_release_of_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of Delta that is installed will be the right one."""
    monkeypatch.setattr(versions, "find_spec", lambda name: None)
    require_delta("spout 'rows'", "4.2.1")
    with pytest.raises(
        UnsupportedEnvironmentError, match=r"spout 'rows' needs Delta, .* is for Spark 4.3.0: use Spark 4.2"
    ):
        require_delta("spout 'rows'", "4.3.0")
    monkeypatch.setattr(versions, "find_spec", lambda name: object())
    require_delta("spout 'rows'", "4.3.0")


def test_ticks_that_can_not_go_on_are_an_error() -> None:
    class NoSources:
        def size(self) -> int:
            return 0

    execution = SimpleNamespace(sources=NoSources)
    query: Any = SimpleNamespace(_jsq=SimpleNamespace(streamingQuery=lambda: execution))
    with pytest.raises(LookupError, match="no source of ticks that can go on"):
        keep_ticking(query)


def test_each_place_where_a_plan_reads_a_stream_has_an_offset() -> None:
    """Spark logs an offset for each, also if all read the same stream, and none for a reference to a WITH."""

    def leaf(kind: str, *, streams: bool) -> SimpleNamespace:
        return SimpleNamespace(
            isStreaming=lambda: streams,
            hashCode=lambda: 1,
            getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind),
        )

    leaves = [
        leaf("StreamingRelationV2", streams=True),
        leaf("StreamingRelationV2", streams=True),
        leaf("StreamingRelation", streams=True),
        leaf("CTERelationRef", streams=True),
        leaf("LogicalRelation", streams=False),
    ]
    found = SimpleNamespace(size=lambda: len(leaves), apply=leaves.__getitem__)
    plan = SimpleNamespace(collectLeaves=lambda: found)
    rows: Any = SimpleNamespace(
        _jdf=SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: plan))
    )
    assert number_of_streams(rows) == 3
