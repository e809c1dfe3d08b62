"""A topology that sets no number of workers has as many as the session has cores, and may change them between two runs (A16)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import stormspark
from stormspark.config import merged
from stormspark.testing import complete_topology
from tests.conformance.components import EFFECTS
from tests.spark.test_state import BY_KEYS, topology
from tests.spark.topologies import FOLDER, counted, expected_counts, word_count
from tests.waiting import wait_for_batches, wait_until_idle, worker_processes

pytestmark = pytest.mark.spark

UNSET = {"topology.workers": None}
TOTAL = 500


def test_there_is_a_worker_per_core_of_the_session(start: Callable[..., Any], tmp_path: Path) -> None:
    """The session of the tests has three threads. Counts are exact, as with any number of workers."""
    running = start(word_count(TOTAL), conf=UNSET | {FOLDER: str(tmp_path)})
    try:
        wait_until_idle(running)
        assert len(worker_processes(running.name)) == running.plan.workers == 3
    finally:
        running.stop()
    assert running.error is None
    assert running.plan.workers_reason == "topology.workers is not set: one per core, and the engine offers 3"
    assert counted(tmp_path) == expected_counts(TOTAL)
    assert running.statistics().components["sentences"].acked == TOTAL


@pytest.mark.parametrize("conf", [{"topology.max.spout.pending": 20}, {"topology.max.task.parallelism": 1}])
def test_a_topology_with_little_to_do_keeps_one(
    start: Callable[..., Any], tmp_path: Path, conf: dict[str, Any]
) -> None:
    running = start(word_count(100), conf=UNSET | conf | {FOLDER: str(tmp_path)})
    try:
        wait_until_idle(running)
        assert len(worker_processes(running.name)) == 1
    finally:
        running.stop()
    assert "more workers would not help" in running.plan.workers_reason
    assert counted(tmp_path) == expected_counts(100)


def test_the_testing_kit_runs_on_all_cores_too(spark: SparkSession, tmp_path: Path) -> None:
    done = complete_topology(word_count(20), conf={FOLDER: str(tmp_path)}, engine="spark", spark=spark)
    assert sum(1 for _ in done.read_tuples("split")) == sum(expected_counts(20).values())


@pytest.mark.long  # tests/spark/test_state.py deals state out anew
def test_a_run_may_have_other_cores_than_the_one_before(
    start: Callable[..., Any], spark: SparkSession, tmp_path: Path
) -> None:
    """State goes by a task's index, and ids of tasks stay the same. The second run is killed in the middle of a batch."""
    effects = tmp_path / "effects"
    effects.mkdir()
    conf = UNSET | {"stormspark.exactly.once": True, EFFECTS: str(effects)}
    checkpoint = tmp_path / "checkpoint"
    ids, workers = [], []
    for n, slots in ((100, 8), (1000, 2), (1000, 3), (1100, 1)):
        running = start(
            topology(n, 4, **BY_KEYS),
            checkpoint=checkpoint,
            conf=merged(conf, {"nimbus.slots.perTopology": slots}),
        )
        try:
            wait_for_batches(running, 1) if slots == 2 else wait_until_idle(running)
        finally:
            running.kill() if slots == 2 else running.stop()
        assert running.error is None
        workers.append(running.plan.workers)
        ids.append({id: (task.component, task.index) for id, task in running.plan.tasks.items()})
    assert workers == [3, 2, 3, 1]
    assert ids[0] == ids[1] == ids[2] == ids[3]
    counts = stormspark.state(str(checkpoint), "sums", spark=spark)
    assert {row["key"]: row["value"] for row in counts.collect()} == dict.fromkeys(range(10), 110)
