"""What a run of a query knows of its batches; its batches themselves need Spark."""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark.plan import plan_topology
from stormspark.spark.query_run import QueryRun
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import two


class Run(QueryRun):
    """Whose rounds go well."""

    def _work_off(self) -> list[Any]:
        return []

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
