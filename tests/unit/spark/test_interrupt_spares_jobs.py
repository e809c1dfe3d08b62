"""Which Spark jobs an interrupt cancels, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from stormspark.spark.interrupts import _cancel_others


def test_a_job_of_a_topology_that_begins_meanwhile_is_spared() -> None:
    """Batches follow each other, so between two questions to Spark one may end and the next one begin."""
    cancelled: list[int] = []
    jobs = {1: "user", 2: "topology"}

    class Tracker:
        def getActiveJobsIds(self) -> list[int]:  # noqa: N802 - Spark's names
            return self.then(list(jobs))

        def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802
            return self.then([job for job, of in jobs.items() if of == group])

        def then(self, answer: list[int]) -> list[int]:
            jobs[len(jobs) + 1] = "topology"
            return answer

    context: Any = SimpleNamespace(
        statusTracker=Tracker, _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(cancelJob=cancelled.append))
    )
    _cancel_others(context, lambda: ["topology"])
    assert cancelled == [1]
