"""A topology that has nothing to do waits, and nobody waits for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.spark import SparkTopology, pacing
from tests.conformance.components import EFFECTS, Record
from tests.waiting import wait_for_acks, wait_for_batches

pytestmark = pytest.mark.spark


class Doorman(Spout):
    """Emits one tuple when a file is there."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.emitted = collector, False

    def next_tuple(self) -> None:
        if not self.emitted and self.file.exists():
            self.emitted = True
            self.collector.emit((1,), message_id=1)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


def test_a_spout_that_has_something_ends_the_pause_and_so_does_the_end(
    start: Callable[..., SparkTopology], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch in which nothing happens is followed by a pause of an hour."""
    monkeypatch.setattr(pacing, "_SHARE", 1e9)
    builder = TopologyBuilder()
    builder.set_spout("doorman", Doorman(tmp_path / "come"))
    builder.set_bolt("record", Record(), 2).shuffle_grouping("doorman")
    conf = {"topology.workers": 2, EFFECTS: str(tmp_path), "stormspark.idle.pause.ms": 3_600_000}
    topology = start(builder.create_topology("patient"), conf=conf)
    wait_for_batches(topology, 2)
    (tmp_path / "come").touch()
    wait_for_acks(topology, "doorman", 1)
    said = topology.statistics().as_json()["phases_ms"]
    assert {"between", "exchanges", "workers", "commit", "pause", "spark.walCommit"} <= said.keys()
    topology.stop()
    assert topology.error is None
