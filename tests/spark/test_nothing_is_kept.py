"""What a topology leaves in the memory of the process that has run it."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stormspark.spark import SparkTopology, submit
from stormspark.spark.query_run import QueryRun
from tests.spark.test_what_spark_shows import count_words
from tests.waiting import wait_for, wait_for_batches, worker_processes

pytestmark = pytest.mark.spark


def attempt_of(running: SparkTopology) -> weakref.ref[QueryRun]:
    assert running._run is not None
    return weakref.ref(running._run)


def is_gone(spark: SparkSession, attempt: weakref.ref[QueryRun]) -> bool:
    """Look after both languages have collected their garbage."""
    gc.collect()
    assert spark._jvm is not None
    spark._jvm.System.gc()
    return attempt() is None


@pytest.mark.long
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_no_attempt_stays_in_memory(spark: SparkSession, tmp_path: Path, end: str) -> None:
    """Not after a restart within the topology, and not after the topology. What Py4J keeps for Spark's queries goes, too."""
    assert spark.sparkContext._gateway is not None
    kept = spark.sparkContext._gateway.gateway_property.pool
    before = len(kept)
    running = submit(count_words("kept"), spark, conf={"topology.workers": 1, "test.folder": str(tmp_path)})
    wait_for_batches(running, 2)
    first = attempt_of(running)
    killed = worker_processes("kept")[0]
    killed.kill()
    wait_for(lambda: worker_processes("kept").get(0) not in (None, killed))
    wait_for_batches(running, 2)
    second = attempt_of(running)
    wait_for(lambda: is_gone(spark, first))
    assert second() is not None and second is not first
    getattr(running, end)()
    running.wait()
    del running
    wait_for(lambda: is_gone(spark, second))
    wait_for(lambda: is_gone(spark, second) and len(kept) <= before, message=lambda: str(kept.dict))
