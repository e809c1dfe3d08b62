"""The word count, end to end, with exact figures."""

from __future__ import annotations

import pytest

from tests.spark.topologies import FOLDER, counted, expected_counts, large_tuple, word_count
from tests.waiting import wait_until_gone, wait_until_idle, worker_processes

pytestmark = pytest.mark.spark

TOTAL = 2000


@pytest.mark.parametrize(
    ("workers", "partitions"),
    [
        (1, 0),
        pytest.param(2, 0, marks=pytest.mark.long),
        pytest.param(3, 0, marks=pytest.mark.long),
        (3, 2),  # as with more than 32 workers, some share a partition
    ],
)
def test_counts_are_exact_on_any_number_of_workers(start, tmp_path, workers, partitions):
    conf = {"topology.workers": workers, "stormspark.superstep.partitions": partitions}
    running = start(word_count(TOTAL), conf={**conf, FOLDER: str(tmp_path)})
    try:
        wait_until_idle(running)
        processes = worker_processes(running.name).values()
        assert len(processes) == workers
    finally:
        running.stop()
    wait_until_gone(processes)
    assert running.error is None
    assert counted(tmp_path) == expected_counts(TOTAL)
    components = running.statistics().components
    words = sum(expected_counts(TOTAL).values())
    assert (components["sentences"].emitted, components["sentences"].acked) == (TOTAL, TOTAL)
    assert (components["split"].executed, components["split"].emitted) == (TOTAL, words)
    assert (components["count"].executed, components["count"].acked) == (words, words)
    assert running.statistics().total("failed") == 0


def test_a_tuple_of_50_megabytes_passes_between_workers(start, tmp_path):
    size = 50 * 1024 * 1024
    running = start(large_tuple(size), conf={"topology.workers": 2, FOLDER: str(tmp_path)})
    try:
        wait_until_idle(running)
    finally:
        running.stop()
    assert sorted(file.read_text() for file in tmp_path.glob("size-*")) == [f"{size} end"] * 2
    assert running.statistics().components["large"].acked == 1
