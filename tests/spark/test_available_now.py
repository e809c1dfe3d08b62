"""``trigger="available-now"``: what is there is worked off, then the topology ends by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Bolt, Fields, TopologyBuilder
from stormspark.connectors import DataFrameSpout
from stormspark.errors import InvalidTopologyError
from stormspark.spark import SparkTopology
from tests.conformance.components import EFFECTS, Record
from tests.spark.test_sources import numbers_in, recorded, write_numbers
from tests.waiting import PATIENCE_SECS

pytestmark = pytest.mark.spark


class FailsOnce(Bolt):
    """Passes tuples on a second later; fails each multiple of 50 once."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.context, self.failed, self.held = collector, context, set(), []
        context.set_timer(1.0, self.flush)

    def execute(self, tup: Any) -> None:
        self.held.append(tup)

    def flush(self) -> None:
        for tup in self.held:
            if tup["n"] % 50 == 0 and tup["n"] not in self.failed:
                self.failed.add(tup["n"])
                self.collector.fail(tup)
            else:
                self.collector.emit((tup["n"],), anchors=[tup])
                self.collector.ack(tup)
        self.held = []

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["n"])


def test_a_backfill_ends_when_all_is_acked_and_an_ordinary_run_goes_on_behind_it(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """Several batches of files, tuples that are held beyond their batch, retries; then the same checkpoint, both ways."""
    (tmp_path / "out").mkdir()
    for part in range(4):
        write_numbers(tmp_path / "in", f"{part}.json", range(part * 100, part * 100 + 100))

    def read(spark: Any) -> Any:
        reader = spark.readStream.schema("n long, text string").option("maxFilesPerTrigger", 1)
        return reader.json(str(tmp_path / "in")).select("n")

    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(read, ["n"]), parallelism=2)
    builder.set_bolt("later", FailsOnce(), 2).fields_grouping("numbers", Fields("n"))
    builder.set_bolt("record", Record(), 2).shuffle_grouping("later")

    def run(trigger: str) -> SparkTopology:
        return start(
            builder.create_topology("backfill"),
            conf={"topology.workers": 2, EFFECTS: str(tmp_path / "out")},
            checkpoint=tmp_path / "checkpoint",
            trigger=trigger,
        )

    backfill = run("available-now")
    assert backfill.wait(PATIENCE_SECS), backfill.statistics()
    assert backfill.error is None
    numbers = backfill.statistics().components["numbers"]
    assert (numbers.acked, numbers.failed, numbers.pending) == (400, 8, 0)
    assert recorded(tmp_path / "out") == Counter(range(400))

    write_numbers(tmp_path / "in", "4.json", range(400, 500))
    continuous = run("continuous")
    while continuous.statistics().components["numbers"].acked < 100:
        assert not continuous.wait(0.1), continuous.error
    continuous.stop()
    assert recorded(tmp_path / "out") == Counter(range(500))

    write_numbers(tmp_path / "in", "5.json", range(500, 510))
    again = run("available-now")
    assert again.wait(PATIENCE_SECS) and again.error is None
    assert recorded(tmp_path / "out") == Counter(range(510))


def test_with_nothing_there_it_ends_soon(start: Callable[..., SparkTopology], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(numbers_in(tmp_path / "in"), ["n", "text"]))
    running = start(builder.create_topology("nothing"), trigger="available-now")
    assert running.wait(PATIENCE_SECS) and running.error is None
    assert running.statistics().components["numbers"].emitted == 0


def test_an_unknown_trigger_is_refused(start: Callable[..., SparkTopology]) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(numbers_in(Path("/")), ["n", "text"]))
    with pytest.raises(InvalidTopologyError, match="one of continuous, available-now, got 'once'"):
        start(builder.create_topology("nothing"), trigger="once")
