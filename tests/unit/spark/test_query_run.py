"""What a run of a query knows of its batches; its batches themselves need Spark."""

from __future__ import annotations

import pickle
import threading
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark.driver.throttle import Throttle
from stormspark.plan import plan_topology
from stormspark.spark.query_run import QueryRun
from stormspark.worker.step import WorkerReport
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import two


class Run(QueryRun):
    """Whose rounds go well."""

    def _work_off(self) -> list[Any]:
        return []

    def _end_batch(self, *, idle: bool, at_rest: bool) -> None:
        pass


class Round(QueryRun):
    """Whose rounds are real, and whose pauses are short."""

    def _end_batch(self, *, idle: bool, at_rest: bool) -> None:
        pass


def test_a_batch_has_succeeded_when_spark_asks_for_the_next_one() -> None:
    """Before that its commit may fail, and then it comes again however often: each time as the first batch of a run."""
    limits = MagicMock()
    limits.observe.return_value = []
    flags = threading.Event(), threading.Event(), threading.Event()
    plan = plan_topology(two(Collect(), Script([])).create_topology("run"), {})
    run = Run(MagicMock(), plan, MagicMock(), MagicMock(), MagicMock(), limits, *flags)
    assert not run.succeeded
    run.batch(MagicMock(), 7)
    assert not run.succeeded
    run.batch(MagicMock(), 8)
    assert run.succeeded


def test_what_spark_has_read_is_not_held_between_two_batches() -> None:
    """A pause may be long, and what a batch has shuffled is only cleaned up when nobody holds it any more."""
    limits = MagicMock()
    limits.observe.return_value = []
    flags = threading.Event(), threading.Event(), threading.Event()
    plan = plan_topology(two(Collect(), Script([])).create_topology("run"), {})
    run = Round(MagicMock(), plan, MagicMock(), MagicMock(), Throttle(plan), limits, *flags)
    frames = MagicMock()
    reports = [WorkerReport(worker, 0, 0, {}, (), None, 0) for worker in range(plan.workers)]
    frames.collect.return_value = [MagicMock(payload=pickle.dumps(report)) for report in reports]
    run.batch(frames, 0)
    frames.collect.assert_called_once()
    assert all(held is not frames for held in vars(run).values())
