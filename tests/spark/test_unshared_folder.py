"""A checkpoint in a folder that the workers' hosts do not share with the driver's."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import stormspark
from stormspark import Fields, Topology, TopologyBuilder
from stormspark.api import SourceSpout
from stormspark.api.state import StatefulBolt
from stormspark.connectors import DataFrameSpout
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.spark import SparkTopology
from tests.conformance.components import EFFECTS, Record
from tests.spark.test_sources import numbers_in, write_numbers
from tests.spark.unshared_folder import python_without
from tests.waiting import wait_for, wait_for_acks, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults]
Start = Callable[..., SparkTopology]


class Count(StatefulBolt[Any]):
    """Counts numbers by their last digit."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: Any) -> None:
        self.counts = state

    def execute(self, tup: Any) -> None:
        digit = tup["n"] % 10
        self.counts[digit] = self.counts.get(digit, 0) + 1
        self.collector.ack(tup)


def counting(folder: Path) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(numbers_in(folder / "in"), ["n", "text"]), parallelism=2)
    builder.set_bolt("count", Count(), 3).fields_grouping("numbers", Fields("n"))
    return builder.create_topology("unshared", {"topology.workers": 2})


def recording(folder: Path) -> Topology:
    builder = TopologyBuilder()
    spout: SourceSpout = DataFrameSpout(numbers_in(folder / "in"), ["n", "text"])
    builder.set_spout("numbers", spout, parallelism=2)
    builder.set_bolt("record", Record(), 2).fields_grouping("numbers", Fields("n"))
    return builder.create_topology("unshared", {"topology.workers": 2, EFFECTS: str(folder)})


def counted(checkpoint: Path) -> int:
    return sum(row["value"] for row in stormspark.state(checkpoint, "count").to_dict("records"))


@pytest.fixture
def checkpoint(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that no worker sees as the driver does."""
    folder = tmp_path / "checkpoint"
    python = python_without(folder, tmp_path / "python")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    return folder


def test_state_that_workers_would_keep_elsewhere_is_refused_at_the_start(
    start: Start, checkpoint: Path, tmp_path: Path
) -> None:
    """C36, W3: in one line, with what to do, before a batch is committed."""
    write_numbers(tmp_path / "in", "a.json", range(100))
    running = start(counting(tmp_path), checkpoint=checkpoint)
    assert running.wait(120)
    assert isinstance(running.error, UnsupportedEnvironmentError), running.error
    said = str(running.error)
    assert "\n" not in said
    assert f"does not see the folder {checkpoint}/stormspark of the driver on " in said
    assert "Give a checkpoint folder that all hosts share" in said
    assert "stormspark.state.table to driver" in said
    assert running.statistics().components["numbers"].acked == 0
    assert not list((checkpoint / "stormspark").glob("seen-*")), "nothing of it is left"


@pytest.mark.long  # tests/unit/worker/test_durable_state.py has that way without Spark
def test_state_goes_by_way_of_the_driver_where_that_is_set(
    start: Start, checkpoint: Path, tmp_path: Path
) -> None:
    """C35, C36: kill -9 of a worker, and another driver: each number counts once."""
    conf = {"stormspark.state.table": "driver"}
    write_numbers(tmp_path / "in", "a.json", range(1000))
    running = start(counting(tmp_path), checkpoint=checkpoint, conf=conf)
    wait_for_acks(running, "numbers", 1000)
    os.kill(worker_processes("unshared")[0].pid, signal.SIGKILL)
    write_numbers(tmp_path / "in", "b.json", range(1000, 2000))
    wait_for(lambda: counted(checkpoint) == 2000, message="what came after the kill")
    running.stop()
    assert running.error is None
    write_numbers(tmp_path / "in", "c.json", range(2000, 2500))
    running = start(counting(tmp_path), checkpoint=checkpoint, conf=conf)
    wait_for_acks(running, "numbers", 500)
    running.stop()
    assert running.error is None
    assert counted(checkpoint) == 2500


def test_rows_that_could_not_be_kept_are_refused_unless_the_user_allows_it(
    start: Start, checkpoint: Path, tmp_path: Path
) -> None:
    """E16: what the acker query has in its state is written by the executors beside the workers."""
    write_numbers(tmp_path / "in", "a.json", range(100))
    running = start(recording(tmp_path), checkpoint=checkpoint)
    assert running.wait(120)
    assert isinstance(running.error, UnsupportedEnvironmentError), running.error
    assert "set stormspark.acker.durable to false" in str(running.error)
    running = start(recording(tmp_path), checkpoint=checkpoint, conf={"stormspark.acker.durable": False})
    wait_for_acks(running, "numbers", 100)
    running.stop()
    assert running.error is None
