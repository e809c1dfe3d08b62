"""Checkpoints of transactions that can't be gone on from, and drivers that are not alone."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    OutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.driver.start_steps import current_step
from stormspark.errors import CheckpointError, FencedError
from stormspark.spark import SparkTopology
from stormspark.testing import TestWordSpout
from tests.waiting import wait_for, wait_for_batches

pytestmark = pytest.mark.spark


class Count(StatefulBolt[KeyValueState[str, int]]):
    """Counts words."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector

    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.state = state

    def execute(self, tup: Tuple) -> None:
        self.state[tup["word"]] = self.state.get(tup["word"], 0) + 1
        self.collector.ack(tup)


def topology(name: str, tasks: int = 1) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", Count(), tasks).shuffle_grouping("words")
    return builder.create_topology(name)


Start = Callable[..., SparkTopology]


def run(start: Start, name: str, checkpoint: Path) -> None:
    """Some batches, and a graceful end."""
    running = start(topology(name), checkpoint=checkpoint)
    wait_for_batches(running, 3)
    running.stop()
    assert running.error is None


def test_of_two_drivers_on_one_checkpoint_the_first_is_fenced_off(start: Start, tmp_path: Path) -> None:
    """C38: the one that came later goes on; the other one writes nothing more, and says why it ends."""
    first = start(topology("fenced-1"), checkpoint=tmp_path / "checkpoint")
    wait_for_batches(first, 2)
    # The same name would be refused in this process: it is the table that is looked at, not the driver's name.
    control = json.loads((tmp_path / "checkpoint/stormspark/control.json").read_text())
    control["topology"] = "fenced-2"
    (tmp_path / "checkpoint/stormspark/control.json").write_text(json.dumps(control))
    second = start(topology("fenced-2"), checkpoint=tmp_path / "checkpoint")
    wait_for(lambda: first.wait(0), message="the first driver's end")
    assert isinstance(first.error, FencedError), first.error
    assert "belongs to another driver now" in str(first.error)
    wait_for_batches(second, 2)


def test_a_table_and_offsets_of_different_pasts_are_refused(start: Start, tmp_path: Path) -> None:
    """G8: batches that were committed are not run again under other offsets, nor left out."""
    checkpoint = tmp_path / "checkpoint"
    run(start, "pasts", checkpoint)
    shutil.rmtree(checkpoint / "spark")
    with pytest.raises(CheckpointError, match="do not fit together"):
        start(topology("pasts"), checkpoint=checkpoint)
    assert current_step() == "the state is read", "as `stormspark run` shows it meanwhile"


@pytest.mark.parametrize("what", ["newer", "half-written", "gone", "tasks"])
def test_what_is_wrong_with_a_checkpoint_is_reported_at_once(
    what: str, start: Start, spark: SparkSession, tmp_path: Path
) -> None:
    """C36: and nothing is changed by looking."""
    checkpoint = tmp_path / "checkpoint"
    run(start, "wrong", checkpoint)
    table = checkpoint / "stormspark/state"
    tasks, expected = 1, ""
    log = sorted((table / "_delta_log").glob("*.json"))
    if what == "newer":
        log[0].write_text(
            log[0].read_text().replace('"stormspark.state.format":"1"', '"stormspark.state.format":"99"')
        )
        expected = "newer stormspark"
    elif what == "half-written":
        log[-1].write_bytes(log[-1].read_bytes()[:40])
        expected = "can't be read"
    elif what == "gone":
        next(iter(sorted((table / "changes").glob("*.parquet")))).unlink()
        expected = "lacks changes/"
    else:
        tasks, expected = 2, r"has 2 tasks, but its state in .* is of 1"
    with pytest.raises(CheckpointError, match=expected) as caught:
        start(topology("wrong", tasks), checkpoint=checkpoint)
    assert "checkpoint" in str(caught.value)


class Waits(BasicBolt):
    """Waits for a file, once it has written that it does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        (self.folder / "begun").touch()
        while not (self.folder / "go").exists():
            time.sleep(0.05)


@pytest.mark.long  # the local engine has it, too
def test_a_call_that_does_not_return_holds_up_a_stop_for_some_seconds_only(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """C44: the batch that could not end stays uncommitted, and the next start does it again."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", Count()).shuffle_grouping("words")
    builder.set_bolt("waits", Waits(tmp_path)).shuffle_grouping("words")
    waits = builder.create_topology("waits")
    checkpoint = tmp_path / "checkpoint"
    running = start(waits, checkpoint=checkpoint)
    wait_for((tmp_path / "begun").exists, message="the call that waits")
    running.stop()
    assert running.error is None
    warnings = [
        one.getMessage() for one in caplog.records if "so a later start does it again" in one.getMessage()
    ]
    assert len(warnings) == 1
    assert "execute of waits[0] (" in warnings[0]
    committed = [int(file.name) for file in (checkpoint / "spark" / "commits").glob("[0-9]*")]
    batch = len(committed)
    assert f"before batch {batch} is committed" in warnings[0]

    (tmp_path / "go").touch()
    running = start(waits, checkpoint=checkpoint)
    wait_for_batches(running, 2)
    running.stop()
    assert running.error is None
    assert (checkpoint / "spark" / "commits" / str(batch)).exists()
