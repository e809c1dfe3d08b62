"""What a topology leaves in the memory of the process that has run it."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stormspark.spark import SparkTopology, submit
from stormspark.spark.query_run import QueryRun
from stormspark.spark.trigger_limits import NewLimit
from tests.spark.test_what_spark_shows import count_words
from tests.waiting import wait_for, wait_for_batches, worker_processes

pytestmark = pytest.mark.spark


def run_of(running: SparkTopology) -> weakref.ref[QueryRun]:
    assert running._now.query_run is not None
    return weakref.ref(running._now.query_run)


def is_gone(spark: SparkSession, run: weakref.ref[QueryRun]) -> bool:
    """Look after both languages have collected their garbage."""
    gc.collect()
    assert spark._jvm is not None
    spark._jvm.System.gc()
    return run() is None


def set_a_new_limit(running: SparkTopology) -> None:
    """Spark's query then ends, and another one goes on with the same attempt."""
    limit, before = NewLimit("sentences", "rows", 2, 1, "a test wants it"), run_of(running)
    with pytest.MonkeyPatch.context() as patch:
        limits = running._premises.limits
        patch.setattr(
            limits, "observe", lambda *_, **__: [limit] if running._now.query_run is before() else []
        )
        wait_for(lambda: running._now.query_run is not before())


@pytest.mark.long
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_no_run_of_a_query_stays_in_memory(spark: SparkSession, tmp_path: Path, end: str) -> None:
    """Not after a new limit, not after a new attempt, and not after the topology. What Py4J keeps for Spark goes, too."""
    assert spark.sparkContext._gateway is not None
    kept = spark.sparkContext._gateway.gateway_property.pool
    before = len(kept)
    running = submit(count_words("kept"), spark, conf={"topology.workers": 1, "test.folder": str(tmp_path)})
    wait_for_batches(running, 2)
    planned = run_of(running)
    set_a_new_limit(running)
    wait_for(lambda: is_gone(spark, planned))
    wait_for_batches(running, 2)
    first = run_of(running)
    killed = worker_processes("kept")[0]
    killed.kill()
    wait_for(lambda: worker_processes("kept").get(0) not in (None, killed))
    wait_for_batches(running, 2)
    second = run_of(running)
    wait_for(lambda: is_gone(spark, first))
    assert second() is not None
    getattr(running, end)()
    running.wait()
    del running
    wait_for(lambda: is_gone(spark, second) and len(kept) <= before, message=lambda: str(kept.dict))
